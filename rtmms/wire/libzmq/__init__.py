"""The same Messages by libzmq: with keys, and within one program. Nowhere else is zmq imported.

Whoever needs it imports it late: a plant without keys starts without libzmq."""
