"""The command `rtmms`: one command a file; a line in main.py names each, words.py reads what is typed.

What a run is made of lies in running/.
"""
