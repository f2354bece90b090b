"""Keys in files: made as private pairs, never written over, read with every fault named."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from time import monotonic_ns
from typing import Any

import pytest
import zmq

import rtmms
from rtmms.wire.keys import ALLOWED, AdmittedKeys, make_keys, read_allowed, read_client, read_server


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def allowed(folder: Path) -> list[str]:
    result = read_allowed(folder / ALLOWED)
    assert result is not None
    return list(result.values())


# -- files ------------------------------------------------------------------------------------------------------------


def test_keys_are_private_pairs_and_the_peer_is_let_in(folder: Path) -> None:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    assert [path.relative_to(folder).as_posix() for path in files] == [
        "client.key", "client.key_secret", "clients/client.key", "server.key", "server.key_secret",
    ]  # fmt: skip
    assert {mode(path) for path in files} == {0o600}
    assert mode(folder) == mode(folder / ALLOWED) == 0o700
    server, client = read_server(folder), read_client(folder)
    assert client.server == server.public
    assert zmq.curve_public(client.secret) == client.public
    assert allowed(folder) == ["client"]


def test_keys_are_never_written_over_and_more_peers_are_added(folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*key*") if path.is_file()}
    with pytest.raises(rtmms.ModelError, match=r"client\.key' exists already.*--client NAME"):
        make_keys(folder)
    assert {path: path.read_bytes() for path in folder.rglob("*key*") if path.is_file()} == before
    added = make_keys(folder, "robot-2")
    assert [path.name for path in added] == ["robot-2.key", "robot-2.key_secret", "robot-2.key"]
    assert sorted(allowed(folder)) == ["client", "robot-2"]
    assert all(path.read_bytes() == text for path, text in before.items())


def test_nothing_half_written_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    left, real = [3], os.open

    def fill_up(path: Any, *remaining: Any) -> int:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        return real(path, *remaining)

    monkeypatch.setattr("rtmms.wire.keys.os.open", fill_up)
    with pytest.raises(rtmms.ModelError, match="No space left"):
        make_keys(tmp_path / "keys")
    assert [path for path in (tmp_path / "keys").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("name", ["", "server", "../x", "a/b", ".hidden", "a b"])
def test_a_peers_name_is_a_files_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(rtmms.ModelError, match="expected a name"):
        make_keys(tmp_path / "keys", name)
    assert not (tmp_path / "keys").exists()


def test_a_folder_or_a_secret_open_to_others_is_refused(folder: Path) -> None:
    (folder / "server.key_secret").chmod(0o640)
    with pytest.raises(rtmms.ModelError, match=r"server.key_secret' is open to others \(mode 0640\): chmod 600"):
        read_server(folder)
    folder.chmod(0o755)
    with pytest.raises(rtmms.ModelError, match="open to others"):
        make_keys(folder, "another")


@pytest.mark.parametrize("name", [".", "clients", "clients/client.key"])
def test_what_others_can_write_is_refused_at_the_start(folder: Path, name: str) -> None:
    path = folder / name
    path.chmod(stat.S_IMODE(path.stat().st_mode) | 0o022)
    stored = 600 if path.is_file() else 700
    with pytest.raises(rtmms.ModelError, match=rf"is writable by others \(mode 07?[0-7]{{2,3}}\): chmod {stored} "):
        read_server(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("name", [".", "clients", "clients/client.key", "server.key_secret"])
def test_what_is_another_users_is_refused_at_the_start(folder: Path, name: str) -> None:
    os.chown(folder / name, 12345, -1)
    with pytest.raises(rtmms.ModelError, match=r"belongs to another user \(uid 12345\): chown 0 .* && chmod [67]00 "):
        read_server(folder)


def test_a_peer_trusts_no_plant_s_key_that_others_can_write(folder: Path) -> None:
    (folder / "server.key").chmod(0o666)
    with pytest.raises(rtmms.ModelError, match=r"server.key' is writable by others \(mode 0666\): chmod 600"):
        read_client(folder)


def test_a_key_dropped_by_somebody_else_during_the_run_lets_nobody_in(folder: Path, tmp_path: Path) -> None:
    inside = AdmittedKeys(read_server(folder))
    known = dict(inside.names)
    assert len(known) == 1
    make_keys(tmp_path / "theirs", "thief")
    shutil.copy(tmp_path / "theirs" / "thief.key", folder / ALLOWED)
    (folder / ALLOWED / "thief.key").chmod(0o666)
    inside.look(monotonic_ns() + 2_000_000_000)
    assert inside.names == known
    (folder / ALLOWED).chmod(0o777)
    (folder / ALLOWED / "thief.key").chmod(0o600)
    inside.look(monotonic_ns() + 4_000_000_000)
    assert inside.names == known
    (folder / ALLOWED).chmod(0o700)
    inside.look(monotonic_ns() + 6_000_000_000)
    assert sorted(inside.names.values()) == ["client", "thief"]  # now it is the owner's word


def test_broken_and_missing_keys_are_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(rtmms.ModelError, match=r"no file '.*nowhere/server.key_secret'; make.*rtmms keys DIR"):
        read_server(tmp_path / "nowhere")
    (folder / "client.key_secret").write_text('public-key = "short"\n')
    with pytest.raises(rtmms.ModelError, match=r"client.key_secret' has no CURVE key"):
        read_client(folder)
    (folder / "client.key_secret").write_text((folder / "client.key").read_text())
    with pytest.raises(rtmms.ModelError, match="has no pair"):
        read_client(folder)
    (folder / "clients" / "junk.key").write_bytes(b"\xff\x00 public-key = 3")
    assert allowed(folder) == ["client"]


def test_a_peers_folder_holds_its_own_secret_under_any_name(folder: Path, tmp_path: Path) -> None:
    make_keys(folder, "arm")
    make_keys(folder, "leg")
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o700)
    shutil.copy(folder / "server.key", theirs)
    shutil.copy(folder / "arm.key_secret", theirs)
    assert read_client(theirs).public in (folder / "arm.key").read_bytes()
    shutil.copy(folder / "leg.key_secret", theirs)
    with pytest.raises(rtmms.ModelError, match=r"secret keys of several peers \(arm.key_secret, leg.key_secret\)"):
        read_client(theirs)


# -- coming in --------------------------------------------------------------------------------------------------------
