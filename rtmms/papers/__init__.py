"""Reproductions of papers.

NAME.py has `main`, which an entry point names (group rtmms.papers), and the paper's claims; NAME_*.py have our runs and
figures. No other package imports them.
"""
