"""What autopilots and ground stations share: MAVLink's frames, sensors for SITL, pulses, set-points, parameters.

No socket: bytes and numbers only.
"""
