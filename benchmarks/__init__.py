"""Benchmarks, their references, and the last results; run by `rtmms bench NAME`."""
