"""What a fluid does to bodies: one force model a file, and the fluid's own motion (ambient.py).
Nothing of one robot."""
