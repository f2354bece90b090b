"""Controllers with a compiled update.

This is the only package of a peer's side that loads numba. Peers import it for such controllers only.
"""
