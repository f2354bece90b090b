"""A session of a lockstep run with a libzmq given as a file, by its C functions: what zeromq_client.js does.

python old_libzmq_client.py LIBZMQ EXCHANGE TOKEN_FILE
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import msgpack

DEALER = 5  # zmq.h
IDENTITY = 5  # zmq.h
LINGER = 17  # zmq.h
ROOM = 1 << 16


def load(path: Path) -> ctypes.CDLL:
    """libzmq, after the libraries that lie beside it (libsodium)."""
    for extra in sorted(path.parent.iterdir()):
        if extra != path and ".so" in extra.name:
            ctypes.CDLL(str(extra), ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL, use_errno=True)
    library.zmq_ctx_new.restype = ctypes.c_void_p
    library.zmq_socket.restype = ctypes.c_void_p
    library.zmq_socket.argtypes = [ctypes.c_void_p, ctypes.c_int]
    library.zmq_setsockopt.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t]
    library.zmq_connect.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    library.zmq_send.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int]
    library.zmq_recv.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int]
    return library


class Dealer:
    """A DEALER socket of one frame a message."""

    def __init__(self, library: ctypes.CDLL, context: int, endpoint: str, identity: bytes = b"") -> None:
        self._library, self._socket = library, library.zmq_socket(context, DEALER)
        self._room = ctypes.create_string_buffer(ROOM)
        linger = (1000).to_bytes(4, sys.byteorder)
        library.zmq_setsockopt(self._socket, LINGER, linger, len(linger))
        if identity:
            library.zmq_setsockopt(self._socket, IDENTITY, identity, len(identity))
        if library.zmq_connect(self._socket, endpoint.encode()):
            raise OSError(ctypes.get_errno(), endpoint)

    def send(self, message: dict[str, object]) -> None:
        data = msgpack.packb(message)
        if self._library.zmq_send(self._socket, data, len(data), 0) != len(data):
            raise OSError(ctypes.get_errno(), "zmq_send")

    def receive(self) -> dict[str, object]:
        size = self._library.zmq_recv(self._socket, self._room, ROOM, 0)
        if not 0 <= size <= ROOM:
            raise OSError(ctypes.get_errno(), "zmq_recv")
        message: dict[str, object] = msgpack.unpackb(self._room.raw[:size])
        return message


def main(path: str, exchange: str, token_file: str) -> None:
    library = load(Path(path))
    context = library.zmq_ctx_new()
    door = Dealer(library, context, exchange)
    token = Path(token_file).read_text("ascii").strip()
    door.send({"type": "hello", "protocol": 1, "name": "old", "claim": ["*"], "token": token})
    welcome = door.receive()
    if welcome["type"] != "welcome":
        sys.exit(str(welcome))
    data = Dealer(library, context, welcome["step_endpoint"], bytes(welcome["identity"]))  # type: ignore[arg-type, call-overload]
    values = dict.fromkeys(welcome["granted"], 0.1)  # type: ignore[call-overload]
    seq = answered = 0
    while (output := data.receive())["type"] != "bye":
        if output["type"] != "state":
            sys.exit(str(output))
        seq, step = seq + 1, output["step"]
        ahead = isinstance(step, int) and step < 0  # a warm-up, which no step follows
        data.send({"type": "command", "seq": seq, "step": step, "values": {} if ahead else values})
        answered += not ahead
    print(f"{answered} states answered", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
