"""Robots on wheels that their shape's motion drives (Boyer and Porez 2015, section 5): one a file, what they share in
parts.py."""
