"""ZeroMQ's protocol on plain streams, without libzmq and without threads: a `Messages` for each use of a socket.

zmtp.py handles bytes only. All data are read and written by the one `Connection`.
"""
