"""A controller whose update is compiled: the one room of a peer's side that loads numba, and only for such a one."""
