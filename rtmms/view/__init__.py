"""Views of a robot: what is drawn of a state (`scene`), on a stage (a browser, a film), from a run or from its log.

Only `stage.py` uses the library that shows things in a browser, only `render.py` the one that renders pictures.
"""
