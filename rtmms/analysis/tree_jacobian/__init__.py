"""A and B of one step of a tree by the structure of its equations (rtmms.analysis.structures)."""
