"""CURVE keys as libzmq creates, writes and reads them.

A key has 40 characters of z85, or 32 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rtmms.base.errors import ModelError
from rtmms.base.files import read_input

MAX_KEY_FILE_BYTES = 1 << 16
"""Most bytes of a key file that are read."""


def libzmq_version() -> str:
    """Return the version of libzmq and its support of CURVE, for rtmms doctor.

    Returns
    -------
    str
        For example '4.3.5, curve yes'.
    """
    import zmq

    return f"{zmq.zmq_version()}, curve {'yes' if zmq.has('curve') else 'no'}"


@dataclass(frozen=True)
class ClientKeys:
    """Key pair of a peer, and the public key of its plant.

    Parameters
    ----------
    public, secret : bytes
        The peer's keys, z85.
    server : bytes
        The plant's public key, z85.
    """

    public: bytes
    secret: bytes
    server: bytes


def new_pair() -> tuple[bytes, bytes]:
    """Return a new key pair.

    Returns
    -------
    tuple[bytes, bytes]
        Public and secret key, z85.
    """
    import zmq

    return zmq.curve_keypair()


def public_of(secret: bytes) -> bytes:
    """Return the public key of a secret key.

    Parameters
    ----------
    secret : bytes
        Secret key, z85.

    Returns
    -------
    bytes
        Public key, z85.
    """
    import zmq

    return zmq.curve_public(secret)


def key_bytes(key: bytes) -> bytes:
    """Return the bytes of a key.

    Parameters
    ----------
    key : bytes
        Key, z85.

    Returns
    -------
    bytes
        The key's 32 bytes.

    Raises
    ------
    Exception
        Any exception of the decoder, if the text is not z85.
    """
    from zmq.utils import z85

    return z85.decode(key)


def certificate(path: Path) -> tuple[bytes, bytes | None]:
    """Read the keys of a file without checking them.

    Parameters
    ----------
    path : Path
        The certificate, in the format of pyzmq.

    Returns
    -------
    tuple[bytes, bytes | None]
        Public key and secret key; the secret is None if the file has none.

    Raises
    ------
    ModelError
        If the file cannot be read or has no public key.
    """
    text = read_input(path, place="keys:", max_bytes=MAX_KEY_FILE_BYTES, expected="a file of a key")
    result: dict[bytes, bytes] = {}
    for line in text.splitlines():  # in the form of pyzmq's certificates
        name, equals, value = line.strip().partition(b"=")
        if equals and not name.startswith(b"#"):
            result.setdefault(name.strip(), value.strip(b" \t'\""))
    if b"public-key" not in result:
        raise ModelError(f"keys: '{path}' has no public-key")
    return result[b"public-key"], result.get(b"secret-key")
