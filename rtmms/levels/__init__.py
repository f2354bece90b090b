"""A plant with cheaper variants of itself, one of which steps at a time: what `--degrade` runs.

Which variants there are, and how a state goes from one to another, is the plant's own (rtmms.plant.Degradable).
"""
