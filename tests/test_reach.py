"""Which addresses stay on this machine, and what a scenario may open."""

from __future__ import annotations

import typing
from pathlib import Path
from typing import Annotated

import pytest

from rtmms.base.errors import ModelError
from rtmms.base.local_addresses import (
    NamesAddress,
    address_parameters,
    first_beyond,
    host_of,
    is_on_this_machine,
    refuse_endpoint,
)
from tests.cli.shell import rtmms

HOSTS = {
    "127.0.0.1": "127.0.0.1", "127.0.0.1:80": "127.0.0.1", "[::1]:80": "::1", "::1": "::1",
    "udp://10.0.0.1:5": "10.0.0.1", "tcp/192.168.0.1:7447?prio=1-3": "192.168.0.1", "evil.example/127.0.0.1":
    "evil.example/127.0.0.1", "evil@127.0.0.1": "evil@127.0.0.1", "https://a.example/b": "a.example",
    "/dev/ttyUSB0": "/dev/ttyUSB0", "[::1].evil": "[::1].evil", "localhost#.evil": "localhost#.evil",
    "127.0.0.1:80:evil": "127.0.0.1:80:evil", "": "",
}  # fmt: skip


@pytest.mark.parametrize(("text", "host"), HOSTS.items())
def test_host_of_an_address(text: str, host: str) -> None:
    assert host_of(text) == host


def test_loopback_is_this_machine_and_no_name_is_looked_up() -> None:
    for host in ("127.0.0.1", "127.9.8.7", "::1", "::1%lo", "localhost", "LOCALHOST"):
        assert is_on_this_machine(host), host
    for host in (
        "0.0.0.0",
        "::",
        "10.0.0.1",
        "evil.example",
        "localhost.evil.example",
        "",
        "0",
        "127.0.0.1.evil",
        "127.0.0.1%.evil",
        "127.0.0.1%lo",
        "localhost#.evil",
        "[::1].evil",
        "::1%.evil",
    ):
        assert not is_on_this_machine(host), host


def test_an_empty_address_listens_everywhere_and_connects_nowhere() -> None:
    assert first_beyond("", "listen") == ""
    assert first_beyond("", "connect") is None
    assert first_beyond((), "listen") is None
    assert first_beyond(("127.0.0.1:1", "10.0.0.1:2"), "connect") == "10.0.0.1:2"


def test_declared_addresses_are_found_in_unions_and_tuples() -> None:
    class Of:
        host: Annotated[str, NamesAddress("listen")]
        to: tuple[Annotated[str, NamesAddress("connect")], ...]
        may: Annotated[str, NamesAddress("connect")] | None
        name: str

    hints = typing.get_type_hints(Of, localns=globals(), include_extras=True)
    assert address_parameters(hints) == {"host": "listen", "to": "connect", "may": "connect"}


@pytest.mark.parametrize("option", ["exchange", "step", "telemetry"])
def test_a_scenario_opens_no_endpoint_to_others(option: str) -> None:
    for value in ("tcp://127.0.0.1:9970", "tcp://localhost:*", "tcp://[::1]:1", "ipc://mine"):
        refuse_endpoint(option, value)
    for value in (
        "tcp://0.0.0.0:9970", "tcp://*:9970", "tcp://[::]:1", "tcp://robot.example:1", "ipc:///home/me/.bashrc",
        "ipc://@open", "ipc://../s", "udp://127.0.0.1:1", "",
    ):  # fmt: skip
        with pytest.raises(ModelError, match="give other addresses on the command line"):
            refuse_endpoint(option, value)


BEYOND = {
    "keys": ('keys = "k"', "s.toml:2: keys: is named on the command line only"),
    "exchange": (
        'exchange = "tcp://0.0.0.0:9970"',
        "s.toml:2: exchange: expected tcp://127.0.0.1:PORT or ipc://NAME in a scenario, got 'tcp://0.0.0.0:9970'; give",
    ),
    "step": ('step = "tcp://*:9970"', "s.toml:2: step: "),
    "telemetry": ('telemetry = "ipc:///tmp/somewhere"', "s.toml:2: telemetry: "),
    "a listening bridge": ('[[bridge]]\nname = "udp"\nbind = "0.0.0.0"', "s.toml:4: bind: expected a value that"),
    "an empty host": ('[[bridge]]\nname = "ardupilot"\nhost = ""', "host: expected a value that"),
    "a sending bridge": ('[[bridge]]\nname = "udp"\nhost = "203.0.113.7"', "host: expected a value that"),
    "a config": ('[[bridge]]\nname = "udp"\nconfig = "c.toml"', "host: expected a value that"),
    "words in a name": ('[[bridge]]\nname = "udp:host=203.0.113.7"', "parameters are keys of the table"),
    "a list": ('[[bridge]]\nname = "estimator"\nto = "127.0.0.1:1+evil.example:2"', "to: expected a value that"),
    "a file in a name": ('[[bridge]]\nname = "estimator:sensors=../p.toml"', "parameters are keys of the table"),
    "a file of a controller": ('[[controller]]\nname = "shape"\ngait = "../g.csv"', "gait: expected a file in the"),
    "a file in a config": ('[[bridge]]\nname = "estimator"\nconfig = "f.toml"', "sensors: expected a file in the"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BEYOND.values(), ids=BEYOND)
def test_a_scenario_reaches_this_machine_and_its_folder_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    monkeypatch.chdir(inside)
    Path("c.toml").write_text('host = "203.0.113.7"\n')
    Path("f.toml").write_text('sensors = "../p.toml"\n')
    (tmp_path / "p.toml").write_text('profile = "typical"\n')
    Path("s.toml").write_text(f'robot = "cat"\n{text}\n')
    done = rtmms(inside, "run", "s.toml", "--quiet")
    assert done.status != 0
    assert message in done.err.replace("\n", " ")
    assert "Traceback" not in done.err


def test_a_bridge_of_the_command_line_replaces_those_of_the_scenario() -> None:
    from rtmms.cli.running.scenario import check_peers
    from rtmms.scenario import Scenario

    result = Scenario(Path("s.toml"), "cat", bridges=("udp:host=203.0.113.7",), places={(): 1})
    check_peers(result, {"bridges"})
    with pytest.raises(ModelError, match="expected a value that"):
        check_peers(result)
