"""Bridges, one a file, as entry points of group rtmms.bridges; template.py is the start of a new one.

Common parts are in packages: motion, lines, bus, sea, autopilot, federation, messages. examples/NAME.toml configures
each bridge.
"""
