"""The command `rtmms`: one command a file; main.py finds them, words.py reads what is typed.

What a run is made of lies in running/.
"""
