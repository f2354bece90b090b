"""The loop: instants of steps, waits for commands, miss policies, counts, and the causes of misses.

It uses a Plant and the interfaces in ports.py; it uses no robot and no socket. loop.py combines the parts, modes.py has
the modes.
"""
