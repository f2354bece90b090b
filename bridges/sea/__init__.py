"""Common parts of marine bridges: readings of a robot's instruments, in a navigator's terms, and their sentences.

The bridges themselves are one level up, one a file.
"""
