"""`rtmms bridge`: run a bridge against a plant that is there, or is about to be."""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import sys
from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Any

import click

from rtmms.base.errors import ModelError, RtmmsError
from rtmms.base.files import KINDS, new_file_beside, refuse_output
from rtmms.base.terminal import print_text
from rtmms.base.trust import own_lines
from rtmms.bridging.bridge import WritesDbc
from rtmms.bridging.config import GROUP, build_bridge
from rtmms.bridging.runner import Runner
from rtmms.cli.control import CHILD, CHILD_WAIT_S, PLANT_WAIT_S
from rtmms.cli.option_types import Installed, NumberType
from rtmms.wire.addresses import EXCHANGE
from rtmms.wire.peer.client import connect
from rtmms.wire.peer.plugins import loaded_elsewhere, split_spec
from rtmms.wire.peer.session import GONE
from rtmms.wire.protocol.errors import ARGUMENT_ERRORS, EndpointError, NotConnectedError

_MAX_STAY_S = 10.0


@click.command("bridge")
@click.argument("spec", type=Installed("rtmms.bridges"), metavar="NAME[:key=value,...]")
@click.option("--exchange", default=EXCHANGE, show_default=True, help="Exchange endpoint of the plant.")
@click.option(
    "--name", "peer", default=None, help="Name under which the plant lists it; the bridge's own if not given."
)
@click.option(
    "--timeout", "timeout_s", type=NumberType("s", zero=True), default=None, help="Seconds to wait for the plant (5)."
)
@click.option(
    "--keys", type=click.Path(path_type=Path), metavar="DIR", help="Folder of keys, for a plant that asks for them."
)
@click.option("--stay", is_flag=True, help="Wait for another plant for ever when this one ends (10 s without).")
@click.option(
    "--write-dbc", "dbc", type=click.Path(path_type=Path), metavar="FILE.dbc",
    help="Write the file that lays out the robot's messages on a CAN bus, and end.",
)  # fmt: skip
@click.option("--once", is_flag=True, help="End when the plant ends.")
def bridge(
    spec: str, exchange: str, peer: str | None, timeout_s: float | None, keys: Path | None, stay: bool, once: bool,
    dbc: Path | None,
) -> None:  # fmt: skip
    """Connect a running plant to another program or device, until the plant ends."""
    if stay and once:
        raise click.UsageError("--stay, --once: expected one of them, got both")
    child = os.environ.get(CHILD) == "1"
    if child:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if timeout_s is None:
        timeout_s = CHILD_WAIT_S if child else PLANT_WAIT_S
    stay_s = inf if stay else 0.0 if once or child else _MAX_STAY_S
    runner: Runner | None = None
    status, reason = 0, ""
    try:
        with _ended_by_sigterm():
            if dbc is not None:
                _write_dbc(dbc, spec, exchange, keys, timeout_s)
                return
            runner = _build_runner(spec, exchange, peer, keys)
            reason = runner.run(timeout_s, stay_s)
        status = 1 if reason == GONE else 0
    except (EndpointError, ModelError) as fault:
        status, reason = 2, str(fault)
    except NotConnectedError as fault:
        status, reason = (2 if fault.code in ARGUMENT_ERRORS else 1), str(fault)
    except RtmmsError as fault:
        status, reason = 1, str(fault)
    except KeyboardInterrupt:
        reason = "interrupted"
    except Exception as fault:  # whatever a user's bridge does wrong, they need to see where
        lines, where = own_lines(fault)
        print_text(lines, err=True)
        status, reason = 1, f"failed: {where}: {type(fault).__name__}: {fault}"
    if runner is not None and status == 0 and runner.unmet and (child or reason != "interrupted"):
        status, reason = 1, runner.unmet
    named = "" if reason.startswith("bridge '") else f"bridge '{spec}': "
    if runner is not None and status == 0:
        if not child:
            _print_line(named + reason)
        _print_line(f"{split_spec(spec, 'bridge')[0]}: {runner.counts.line()}")  # last: `rtmms run` reads it there
    else:
        if runner is not None:
            _print_line(f"{split_spec(spec, 'bridge')[0]}: {runner.counts.line()}")
        _print_line(named + reason)  # last: `rtmms run` reports it
    raise SystemExit(status)


def _build_runner(spec: str, exchange: str, peer: str | None, keys: Path | None) -> Runner:
    name, _ = split_spec(spec, "bridge")
    built = build_bridge(spec)
    elsewhere = loaded_elsewhere(GROUP, name)
    if elsewhere:
        _print_line(f"bridge '{name}' {elsewhere}")
    gc.collect()
    gc.freeze()  # what is loaded by now stays: later collections need not look at it
    return Runner(built, exchange, peer or name, None, _print_in_time, keys)


def _write_dbc(path: Path, spec: str, exchange: str, keys: Path | None, timeout_s: float) -> None:
    """Write the DBC file for a running plant."""
    name, _ = split_spec(spec, "bridge")
    built = build_bridge(spec)
    if not isinstance(built, WritesDbc):
        raise ModelError(f"--write-dbc: expected a bridge with messages for a DBC file, such as can, got '{name}'")
    refuse_output(path, "--write-dbc", KINDS[".dbc"])
    with connect(exchange, name=name, outputs=built.outputs, keys=keys, timeout_s=timeout_s, errors="collect") as link:
        text = built.dbc_of(link.plant)
    with new_file_beside(path, "--write-dbc") as part:
        part.write_text(text, encoding="cp1252", errors="replace")  # as DBC files are
    _print_line(f"{path}: written")


@contextlib.contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """End the block at SIGTERM as at Ctrl-C: the peer gets its last message."""

    def end(*_: Any) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _print_in_time(text: str) -> None:
    """Print a text during the work: a reader that has stopped (a full pipe, a held terminal) loses the line."""
    try:
        free = bool(select.select([], [sys.stderr], [], 0.0)[1])
    except (OSError, ValueError):  # nothing that can be asked, as on Windows
        free = True
    if free:
        with contextlib.suppress(OSError):
            _print_line(text)


def _print_line(text: str) -> None:
    print_text(f"rtmms bridge: {text}", err=True)
