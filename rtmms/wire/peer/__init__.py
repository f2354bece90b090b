"""A peer's side: `connect` and its link, controllers and how they are found and run.

Starts quickly: neither numba nor scipy, and nothing of the loop."""
