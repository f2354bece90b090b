"""Compiled parts of a step: replacement of missing commands, rows of the recorder, and counts.

They take arrays and whole numbers only, so that the compiled exchange can call them as well.
"""
