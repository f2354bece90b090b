"""Qu 2024, the manta: what the paper claims and what we get, in numbers and figures.

`rtmms reproduce qu2024` runs reproduce.py.
"""
