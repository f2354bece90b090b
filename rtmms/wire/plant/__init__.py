"""The plant's side of the wire: the loop's `Exchange`, its peers and their claims.

The loop's own thread makes each call. No call waits past the instant that it is given.
"""
