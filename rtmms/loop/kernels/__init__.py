"""What the loop does within a step as compiled code: the stand-in for commands that are not there. Arrays and whole
numbers only, so that the compiled exchange can call it as well."""
