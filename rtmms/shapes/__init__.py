"""Drawings of robots for viewers: parts in the body's frame, one robot a file; `visuals.py` has the looks.

Plain Python, from the plant's parameters and outputs.
"""
