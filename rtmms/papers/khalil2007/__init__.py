"""Khalil 2007, the eel: what the paper claims and what we get.

`rtmms reproduce khalil2007` runs reproduce.py.
"""
