"""One mode a file: when a step starts, how long commands are waited for, what is done between steps.

Each sees of the run what `rtmms.loop.pace.Run` declares, and no more.
"""
