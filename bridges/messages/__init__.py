"""Types and names on the far side: ROS 2's and Foxglove's messages, LCM's (rtmms.lcm), topics, chosen outputs.

A protocol's own vocabulary, for its one bridge and whoever speaks the same.
"""
