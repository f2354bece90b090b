"""Transport of bytes: addresses, sockets, frames on a serial line, packed structures, queues, pacing.

The package does not know the meaning of the bytes in any protocol.
"""
