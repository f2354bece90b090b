"""What viewers draw of a robot: its parts in the body's frame, one robot a file, `visuals.py` lists them.

Plain Python, from the plant's parameters and outputs.
"""
