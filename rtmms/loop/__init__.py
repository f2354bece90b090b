"""Time: when a step is due, who is waited for, what stands in for what is late, what is counted, whose fault it was.

Knows a Plant and the ports in ports.py; no robot, no socket. loop.py puts the parts together, paces/ has the modes.
"""
