"""Porez 2014, the moth: what the paper claims and what we get, in numbers and figures.

`rtmms reproduce porez2014` runs reproduce.py.
"""
