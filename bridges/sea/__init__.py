"""What marine bridges share: what a robot's instruments read, in a navigator's terms, and the sentences about it.

No bridge itself: those are one level up, one a file.
"""
