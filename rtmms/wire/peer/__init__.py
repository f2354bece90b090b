"""The peer's side of the wire: `connect` and its link, and controllers.

It starts quickly: it imports neither numba nor scipy, and nothing of the loop.
"""
