"""Words of endpoints, commands and options that are wrong: refused in a sentence, before anything is begun."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import rtmms
from rtmms.base.errors import ModelError
from rtmms.cli.main import rtmms as command
from rtmms.wire.addresses import DEFAULTS, check_endpoint
from rtmms.wire.plant.sockets import Sockets
from rtmms.wire.protocol.errors import AddressError
from tests.wire.bench import Host
from tests.wire.looping import Looping

FREE = "tcp://127.0.0.1:*"


@pytest.mark.parametrize("values", [None, [1, 2], 3, {"left.front": object()}])
def test_a_command_that_is_no_map_of_numbers_is_refused(make_host: Callable[..., Host], values: Any) -> None:
    with Looping(make_host(token=None)) as running, rtmms.connect(running.host.exchange, claim="left.*") as link:
        next(link)
        with pytest.raises(ModelError, match=r"expected (actuator names and numbers|a finite number), got"):
            link.command(values)
        link.command({"left.front": 0.25})
        assert next(s for s in link if s.applied.seq > 0)["position"][0] == 0.25


@pytest.mark.parametrize("args", [[1, 2], 3, {"seed": object()}])
def test_arguments_that_are_no_map_are_refused(make_host: Callable[..., Host], args: Any) -> None:
    with (
        Looping(make_host(token=None)) as running,
        rtmms.connect(running.host.exchange, claim="left.*") as link,
        pytest.raises(ModelError, match="request 'reset': expected arguments by name, got"),
    ):
        link.request("reset", args)


def test_two_endpoints_at_one_address_are_refused() -> None:
    with pytest.raises(AddressError, match=r"step endpoint 'ipc://@x': the exchange endpoint has this address too"):
        Sockets("ipc://@x", "ipc://@x", FREE)
    with pytest.raises(AddressError, match="the exchange endpoint has this address too; give each endpoint another"):
        Sockets(step=DEFAULTS["exchange"], free_ports=False)
    Sockets(FREE, FREE, FREE).close()


def test_an_ipc_path_with_folders_that_are_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AddressError, match=f"the folder '{tmp_path}/nowhere' does not exist"):
        Sockets(f"ipc://{tmp_path}/nowhere/a/b", FREE, FREE)


def test_an_ipc_path_that_is_too_long_is_refused_with_the_limit() -> None:
    with pytest.raises(AddressError, match=r"expected a path of at most 10\d bytes, got 151; .*ipc://NAME"):
        check_endpoint("ipc:///" + 150 * "x", "exchange")


@pytest.mark.parametrize("text", ["nan", "-1", "inf", "soon"])
def test_a_timeout_that_is_none_is_refused(text: str) -> None:
    output = CliRunner().invoke(command, ["control", "gait", "--exchange", "tcp://127.0.0.1:1", "--timeout", text])
    assert output.exit_code == 2
    assert f"expected a number >= 0 s, got '{text}'" in output.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["loop", "--blocks", "0"], "bench loop: --blocks: expected at least 1, got 0"),
        (["loop", "--seconds", "0"], "bench loop: --seconds: expected at least 0.1, got 0"),
        (["exchange", "--blocks", "0"], "bench exchange: --blocks: expected at least 1, got 0"),
        (["soak", "--rate", "0"], "bench soak: --rate: expected at least 0.01, got 0"),
        (
            ["soak", "--log", "missing/x"],
            "bench soak: --log missing/x: expected a folder that can be written, got 'missing': name another one",
        ),
    ],
)
def test_benchmarks_of_nothing_are_refused(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fault = CliRunner().invoke(command, ["bench", *arguments], standalone_mode=False).exception
    assert isinstance(fault, ModelError)
    assert str(fault) == message
