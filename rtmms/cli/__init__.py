"""The command `rtmms`: one command a file, each named in main.py; option_types.py reads the typed text.

The parts of a run are in running/.
"""
