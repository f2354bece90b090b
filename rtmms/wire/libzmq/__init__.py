"""Sockets by libzmq, with keys and within one program.

They implement the same `Messages` as rtmms.wire.stream. No other package imports zmq. Users import this one late, so
that a plant without keys starts without libzmq.
"""
