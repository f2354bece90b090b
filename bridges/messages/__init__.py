"""Types and names of other protocols: ROS 2's and Foxglove's messages, LCM's (rtmms.lcm), topics, selected outputs.

Each is for the bridge of its protocol, and for programs that use the same.
"""
