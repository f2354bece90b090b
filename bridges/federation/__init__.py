"""Common parts of bridges to co-simulation engines: frames on a grid of the plant's steps, grants for the log.

A plant steps at 1 kHz, a federation at 10 to 100 Hz; in real time no step waits for it.
"""
