"""Seeing a robot: what is drawn of a state (`picture`), on which stage (a browser, a film), from a run or from its log.

Only `coupling.py` knows the library that shows things in a browser, only `render.py` the one that renders pictures.
"""
