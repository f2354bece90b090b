"""The command `rtmms`: one command a file, each named in main.py; words.py reads the typed text.

The parts of a run are in running/.
"""
