"""Where the sides find each other: endpoints, sockets in files, the files of keys and of the session's token.

Nothing in here reads or writes a message."""
