"""Keys of CURVE as libzmq makes, writes and reads them; each 40 characters of z85, or 32 bytes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rtmms.base.errors import ModelError
from rtmms.base.files import read_input

MAX_BYTES = 1 << 16
"""Of a file with a key."""


def described() -> str:
    """'4.3.5, curve yes', for rtmms doctor."""
    import zmq

    return f"{zmq.zmq_version()}, curve {'yes' if zmq.has('curve') else 'no'}"


@dataclass(frozen=True)
class ClientKeys:
    """A peer's pair, and the public key by which it knows the plant; z85."""

    public: bytes
    secret: bytes
    server: bytes


def new_pair() -> tuple[bytes, bytes]:
    """Public and secret key, z85."""
    import zmq

    return zmq.curve_keypair()


def public_of(secret: bytes) -> bytes:
    """The public key of a secret one, both z85."""
    import zmq

    return zmq.curve_public(secret)


def plain(key: bytes) -> bytes:
    """The bytes of a key in z85. For what is none, whatever the decoder happens to meet is raised."""
    from zmq.utils import z85

    return z85.decode(key)


def certificate(path: Path) -> tuple[bytes, bytes | None]:
    """Public and secret key of a file, as they stand there; ModelError where it cannot be read or has no key."""
    text = read_input(path, place="keys:", max_bytes=MAX_BYTES, expected="a file of a key")
    found: dict[bytes, bytes] = {}
    for line in text.splitlines():  # as pyzmq reads its certificates
        name, equals, value = line.strip().partition(b"=")
        if equals and not name.startswith(b"#"):
            found.setdefault(name.strip(), value.strip(b" \t'\""))
    if b"public-key" not in found:
        raise ModelError(f"keys: '{path}' has no public-key")
    return found[b"public-key"], found.get(b"secret-key")
