"""Messages and their meaning: names, checks, states and the interface of the transport.

The package has no socket and nothing that only a plant needs.
"""
