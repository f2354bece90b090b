"""Views of a robot: the picture of a state (`picture`), on a stage (a browser, a film), from a run or from its log.

Only `coupling.py` uses the library that shows things in a browser, only `render.py` the one that renders pictures.
"""
