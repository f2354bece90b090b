"""Where the robot is and how it moves, in the frames that others use: conversions, pose, IMU, joints.

No socket, and nothing of one protocol.
"""
