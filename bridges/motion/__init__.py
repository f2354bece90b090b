"""Place and motion of the robot in the frames of others: conversions, pose, IMU, joints.

The package has no socket, and nothing of a single protocol.
"""
