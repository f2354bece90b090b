"""Views of a robot and of runs: figures, tables, pages, films, and the browser.

`drawings.py` loads a robot's drawing and `visuals.py` gives its looks, `scene.py` draws a state. Only `stage.py` uses
the library that shows things in a browser, only `render.py` the one that renders pictures. No module steps a plant on a
schedule.
"""
