"""Where things stand in the flat arrays of a suite of sensors.

timing   (sensors, T_WIDTH)   when each samples and when its samples arrive
block    (blocks, B_WIDTH)    a vector that a sensor measures, and its errors; a sensor has one or two
state    (size,)              what goes from step to step: of each block its drift and turn-on error, of each
                              sensor its present reading, and the samples that are under way
readings of each sensor: READING_TIME (s, when it was sampled), READING_VALID, then its values
"""

from __future__ import annotations

T_RATE, T_PHASE, T_LATENCY, T_JITTER, T_DROPOUT = range(5)
T_BLOCK, T_BLOCKS, T_WIDTH_OF, T_READING, T_QUEUE, T_ROOM, T_COUNT, T_FAULT = range(5, 13)
T_WIDTH = 13
"""rate Hz, phase s, latency s, jitter s, share of samples lost; first block, blocks, values; where in the state what is
readings and the queue stand, how many samples the queue holds, where the count and the fault (kind, value) stand."""

B_KIND, B_SIZE, B_AT, B_WHITE, B_DRIFT, B_KEEP, B_TURN_ON, B_RANGE, B_STEP = range(9)
B_ROTATION, B_PLACE, B_MATRIX, B_OFFSET, B_MORE, B_DRIFTS, B_TURNED = 9, 18, 21, 30, 33, 39, 40
B_WIDTH = 41
"""kind, values, where among the sensor's values; standard deviation of the white part a sample and of the drift, how
much of the drift is kept from sample to sample, standard deviation of the turn-on error, range, quantum; mounting (9,
sensor to
body, and 3, m), scale and misalignment (9), constant offset (3), what the kind needs (6), where in the state drift and
turn-on stand."""

GYRO, ACCELEROMETER, MAGNETOMETER, DEPTH, DVL, RANGES, VECTOR, GPS, CAMERA = range(9)

SOUND, SILENT, STUCK, BIAS, SPIKES = range(5)
"""Faults of a sensor."""

READING_TIME, READING_VALID, READING_VALUES = range(3)

M_TIME, M_POSITION, M_QUATERNION, M_VELOCITY, M_RATE, M_BEFORE, M_EARLIER = 0, 1, 4, 8, 11, 14, 28
M_GRAVITY, M_VECTORS = 42, 45
"""The motion that is measured: time s, position (3) m world, quaternion (4), velocity and rate (3) body; the same
one step and two steps before (time < 0: there was none); gravity (3) m/s2, world; then the plant's vectors, one after
the other."""
