"""CURVE keys in files: a plant's pair, pairs of its peers, and the folder of admitted keys.

A folder of keys has mode 0700. Each file has mode 0600 and the format of pyzmq's certificates:

    server.key  server.key_secret      the plant's pair
    client.key  client.key_secret      a peer's pair
    clients/*.key                      public keys of the peers that the plant admits

A plant needs server.key_secret and clients/. A peer needs server.key and its own secret.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from time import monotonic_ns

from rtmms.base.errors import ModelError
from rtmms.wire.libzmq import key_pairs
from rtmms.wire.libzmq.key_pairs import ClientKeys

SERVER = "server"
CLIENT = "client"
ALLOWED = "clients"
_PUBLIC = ".key"
_SECRET = ".key_secret"
_TEXT = '#   {what}\n\nmetadata\ncurve\n    public-key = "{public}"\n'
_MAX_KEYS = 4096
_CHECK_NS = 1_000_000_000


@dataclass(frozen=True)
class ServerKeys:
    """Key pair of a plant, and its folder of admitted keys.

    Parameters
    ----------
    public, secret : bytes
        The plant's keys, each 40 characters of z85.
    allowed : Path
        Folder with the public keys of admitted peers.
    """

    public: bytes
    secret: bytes
    allowed: Path


def make_keys(directory: Path, client: str = CLIENT) -> list[Path]:
    """Write a key pair for a peer, admit the peer, and write the plant's pair if there is none yet.

    Parameters
    ----------
    directory : Path
        Folder of the keys.
    client : str, default CLIENT
        Name of the peer.

    Returns
    -------
    list[Path]
        The files written. No file is ever overwritten.

    Raises
    ------
    ModelError
        If a file exists already, or if the folder cannot be made or is open to others; it names the file or the folder.
    """
    if not client or client == SERVER or not all(c.isalnum() or c in "-_." for c in client) or client[0] == ".":
        raise ModelError(
            f"keys: expected a name of letters, digits, '-', '_' and '.' other than 'server', got '{client}'"
        )
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_private(directory, 0o700)
        (directory / ALLOWED).mkdir(mode=0o700, exist_ok=True)
    except OSError as fault:
        raise ModelError(f"keys: cannot make the folder '{directory}': {fault.strerror}") from None
    files: dict[Path, str] = {}
    if not (directory / (SERVER + _SECRET)).exists():
        files |= _pair(directory, SERVER, "the plant")
    pair = _pair(directory, client, f"the peer {client}")
    files |= pair
    files[directory / ALLOWED / (client + _PUBLIC)] = pair[directory / (client + _PUBLIC)]
    there = [path for path in files if path.exists()]
    if there:
        raise ModelError(
            f"keys: '{there[0]}' exists already, and keys are never overwritten; choose another folder, or "
            "another peer by --client NAME"
        )
    written: list[Path] = []
    try:
        for path, text in files.items():
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            written.append(path)
            with os.fdopen(handle, "w", encoding="ascii") as file:
                file.write(text)
    except OSError as fault:
        for path in written:
            path.unlink(missing_ok=True)
        raise ModelError(f"keys: cannot write into '{directory}': {fault.strerror}") from None
    return written


def _pair(directory: Path, name: str, whose: str) -> dict[Path, str]:
    public, secret = (key.decode() for key in key_pairs.new_pair())
    open_text = _TEXT.format(what=f"public key of {whose}: may be shown to everyone", public=public)
    kept_text = _TEXT.format(what=f"SECRET key of {whose}: keep it to yourself", public=public)
    return {
        directory / (name + _PUBLIC): open_text,
        directory / (name + _SECRET): kept_text + f'    secret-key = "{secret}"\n',
    }


def read_server(directory: Path) -> ServerKeys:
    """Return the keys of a plant.

    Parameters
    ----------
    directory : Path
        Folder of the keys.

    Returns
    -------
    ServerKeys
        The plant's keys.

    Raises
    ------
    ModelError
        If a file is missing, broken, another user's or open to others; it names the file.
    """
    path = _needed(directory, SERVER + _SECRET)
    _check_unwritable(directory, 0o700)
    _check_clients(directory / ALLOWED)
    public, secret = _read_secret(path)
    return ServerKeys(public, secret, directory / ALLOWED)


def read_client(directory: Path) -> ClientKeys:
    """Return the keys of a peer.

    The peer's secret is in client.key_secret, or in the only other secret file.

    Parameters
    ----------
    directory : Path
        Folder of the keys.

    Returns
    -------
    ClientKeys
        The peer's keys.

    Raises
    ------
    ModelError
        If a file is missing, broken, another user's or open to others; it names the file.
    """
    path = _needed(directory, SERVER + _PUBLIC)
    _check_unwritable(directory, 0o700)
    _check_unwritable(path, 0o600)  # Anybody who can write the file could pretend to be the plant.
    server, _ = _read(path)
    path = directory / (CLIENT + _SECRET)
    if not path.exists():
        others = sorted(p for p in directory.glob("*" + _SECRET) if p.name != SERVER + _SECRET)
        if len(others) > 1:
            names = ", ".join(other.name for other in others)
            raise ModelError(
                f"keys: '{directory}' has the secret keys of several peers ({names}); expected one, so remove "
                "the others"
            )
        path = others[0] if others else _needed(directory, CLIENT + _SECRET)
    public, secret = _read_secret(path)
    return ClientKeys(public, secret, server)


def read_allowed(directory: Path) -> dict[bytes, str] | None:
    """Return the public keys of the peers that a plant admits.

    Files without a key, and files that others can write, are left out.

    Parameters
    ----------
    directory : Path
        Folder of the admitted keys.

    Returns
    -------
    dict[bytes, str] | None
        Names by key (32 bytes). None if others can write into the folder, because its contents are then unreliable.
    """
    allowed: dict[bytes, str] = {}
    try:
        _check_unwritable(directory, 0o700)
        paths = sorted(directory.glob("*" + _PUBLIC))[:_MAX_KEYS]
    except ModelError:
        return None
    except OSError:
        return {}
    for path in paths:
        try:
            _check_unwritable(path, 0o600)
            allowed[key_pairs.key_bytes(_read(path)[0])] = path.name.removesuffix(_PUBLIC)
        except (ModelError, OSError):
            continue
    return allowed


class AdmittedKeys:
    """Public keys that a plant admits.

    The keys are read again when their folder has changed. The folder is checked once a second.

    Parameters
    ----------
    keys : ServerKeys
        The plant's keys.

    Attributes
    ----------
    names : dict of bytes to str
        Name of its file for each key (32 bytes).
    changes : int
        Number of changes of the keys.
    taken_away : bool
        Whether a key was missing at the last reading.
    """

    def __init__(self, keys: ServerKeys) -> None:
        self._folder = keys.allowed
        self.names: dict[bytes, str] = {}
        self.changes = 0
        self.taken_away = False
        self._stamp: tuple[int, int] | None = None
        self._again = False
        self._looked_ns = 0
        self.look(monotonic_ns())

    def name_of(self, key: bytes) -> str | None:
        """Return the name of an admitted key.

        Parameters
        ----------
        key : bytes
            Public key, 32 bytes.

        Returns
        -------
        str | None
            None if the key is not admitted.
        """
        return self.names.get(key)

    def look(self, now_ns: int) -> None:
        """Read the keys again if their folder has changed.

        The loop calls this in the slack. It costs a stat once a second, and reads files only after a change.

        Parameters
        ----------
        now_ns : int
            Present instant of CLOCK_MONOTONIC, ns.
        """
        if self._stamp is not None and now_ns - self._looked_ns < _CHECK_NS:
            return
        self._looked_ns = now_ns
        before = self._stamp
        try:
            result = os.stat(self._folder)
            stamp = (max(result.st_mtime_ns, result.st_ctime_ns), result.st_ino)
        except OSError:  # without a folder no key is admitted
            stamp = (0, 0)
        if stamp != before or self._again:  # Read once more after a change: a file may exist before its content does.
            self._again, self._stamp = stamp != before, stamp
            names = read_allowed(self._folder)
            if names is None:  # other users can write there: admit no new key, and refuse no admitted one
                return
            self.changes += names != self.names
            self.taken_away = not set(self.names) <= set(names)
            self.names = names


def _needed(directory: Path, name: str) -> Path:
    path = directory / name
    if not path.is_file():
        raise ModelError(f"keys: there is no file '{path}'; make a folder of keys with: rtmms keys DIR")
    return path


def _read_secret(path: Path) -> tuple[bytes, bytes]:
    _check_private(path, 0o600)
    public, secret = _read(path)
    if secret is None or key_pairs.public_of(secret) != public:
        raise ModelError(f"keys: '{path}' has no pair of keys; make one with: rtmms keys DIR")
    return public, secret


def _read(path: Path) -> tuple[bytes, bytes | None]:
    """Return public and secret key, each 40 characters of z85."""
    try:
        public, secret = key_pairs.certificate(path)
        if any(len(key) != 40 or len(key_pairs.key_bytes(key)) != 32 for key in (public, secret) if key is not None):
            raise ValueError("not a key")
    except ModelError:
        raise
    except Exception:  # the decoder of z85 raises any kind of exception
        raise ModelError(f"keys: '{path}' has no CURVE key; make one with: rtmms keys DIR") from None
    return public, secret


def _check_private(path: Path, mode: int) -> None:
    """Raise ModelError for a secret that others can read."""
    _check_ours(path, mode, 0o077, "open to others")


def _check_unwritable(path: Path, mode: int) -> None:
    """Raise ModelError for a file or folder into which others could write keys of their own."""
    _check_ours(path, mode, 0o022, "writable by others")


def _check_ours(path: Path, mode: int, refused: int, what: str) -> None:
    """Raise ModelError if a file is another user's (root's is accepted) or has one of the refused modes."""
    if not hasattr(os, "geteuid"):
        return
    result = path.stat()
    if result.st_uid not in (0, os.geteuid()):
        raise ModelError(f"keys: '{path}' belongs to another user (uid {result.st_uid}): "
                         f"chown {os.geteuid()} '{path}' && chmod {mode:o} '{path}'")  # fmt: skip
    if stat.S_IMODE(result.st_mode) & refused:
        raise ModelError(f"keys: '{path}' is {what} (mode {stat.S_IMODE(result.st_mode):04o}): chmod {mode:o} '{path}'")


def _check_clients(directory: Path) -> None:
    """Check the folder of admitted keys, and each file in it."""
    if not directory.exists():
        return  # no key is admitted
    _check_unwritable(directory, 0o700)
    for path in sorted(directory.glob("*" + _PUBLIC))[:_MAX_KEYS]:
        _check_unwritable(path, 0o600)
