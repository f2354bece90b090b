"""What every bridge stands on: rtmms.Bridge, its loop, parameters from words and files, rates, channels, time-outs.

Nothing of one protocol: that is in a bridge of its own, outside this package.
"""
