"""Messages between a plant and its peers over ZeroMQ; docs/protocol.md defines them.

Plant and peer are separate packages that never import each other.
"""
