"""Which libzmq this is."""

from __future__ import annotations


def described() -> str:
    """'4.3.5, curve yes', for rtmms doctor."""
    import zmq

    return f"{zmq.zmq_version()}, curve {'yes' if zmq.has('curve') else 'no'}"
