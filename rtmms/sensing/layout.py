"""Places of the numbers in the flat arrays of a suite of sensors.

- timing (sensors, T_WIDTH): when each sensor samples and when its samples arrive
- block (blocks, B_WIDTH): a vector that a sensor measures, and its errors; a sensor has one or two
- state (size,): drift and turn-on error of each block, present reading and undelivered samples of each sensor
- readings of each sensor: READING_TIME (s, of the sample), READING_VALID, then its values
"""

from __future__ import annotations

T_RATE, T_PHASE, T_LATENCY, T_JITTER, T_DROPOUT = range(5)
T_BLOCK, T_BLOCKS, T_WIDTH_OF, T_READING, T_QUEUE, T_ROOM, T_COUNT, T_FAULT = range(5, 13)
T_WIDTH = 13
"""Columns of the timing: rate Hz, phase s, latency s, jitter s, share of lost samples; first block, blocks, values;
places in the state of the reading and of the queue, samples that the queue has room for, places of the count and of
the fault (kind, value).
"""

B_KIND, B_SIZE, B_AT, B_WHITE, B_DRIFT, B_KEEP, B_TURN_ON, B_RANGE, B_STEP = range(9)
B_ROTATION = 9
B_PLACE = 18
B_MATRIX = 21
B_OFFSET = 30
B_MORE = 33
B_DRIFTS = 39
B_TURNED = 40
B_WIDTH = 41
"""Columns of a block.

- kind, values, place among the sensor's values
- standard deviations of a sample's white noise and of the drift, factor of the drift from sample to sample
- standard deviation of the turn-on error, range, quantum
- mounting (9, sensor to body, and 3, m), scale and misalignment (9), constant offset (3)
- numbers that the kind needs (6), places of drift and turn-on error in the state
"""

GYRO, ACCELEROMETER, MAGNETOMETER, DEPTH, DVL, RANGES, VECTOR, GPS, CAMERA = range(9)

SOUND, SILENT, STUCK, BIAS, SPIKES = range(5)
"""Faults of a sensor."""

READING_TIME, READING_VALID, READING_VALUES = range(3)

M_TIME = 0
M_POSITION = 1
M_QUATERNION = 4
M_VELOCITY = 8
M_RATE = 11
M_BEFORE = 14
M_EARLIER = 28
M_GRAVITY = 42
M_VECTORS = 45
"""Columns of the measured motion: time s, position (3) m world, quaternion (4), velocity and rate (3) body; the same
one step and two steps before (time < 0: none); gravity (3) m/s2, world; then the plant's vectors, one after the
other.
"""
