"""One bridge a file, found by entry points of group rtmms.bridges; template.py is where a new one begins.

What several share lies in rooms: motion, shapes, lines, autopilot, messages. examples/NAME.toml configures each.
"""
