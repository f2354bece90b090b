"""What a robot looks like: smooth closed surfaces over the points and frames of its shape, one kind of robot a file.

`known.py` lists them. The shape is the model's own; what is added to it (a head, a tail, a deck) is a drawing.
"""
