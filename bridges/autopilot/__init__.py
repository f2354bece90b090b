"""Common parts for autopilots and ground stations: MAVLink's frames, sensors for SITL, pulses, set-points, parameters.

They handle bytes and numbers only, without sockets.
"""
