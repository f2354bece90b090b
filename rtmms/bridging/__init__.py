"""Common parts of all bridges: rtmms.Bridge, its loop, parameters from text and files, rates, channels, time-outs.

The package has nothing of a single protocol; each protocol has a bridge outside of it.
"""
