"""Parts of `run` and `serve`: plan, processes, display, loop and report, put together in session.py.

The package has no command of its own.
"""
