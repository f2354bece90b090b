"""What is measured, against what, and the last results; run by `rtmms bench NAME`."""
