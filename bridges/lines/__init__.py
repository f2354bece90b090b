"""How bytes come and go: addresses, sockets, frames on a serial line, packed structures, queues, who sets the pace.

Nothing here knows what the bytes mean to one protocol's peers.
"""
