"""What `run` and `serve` are made of: plan, processes, display, loop and report, put together in session.py.

No command of its own.
"""
