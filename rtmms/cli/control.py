"""`rtmms control`: run a controller against a plant that is there, or is about to be."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path

import click

from rtmms.base.errors import ModelError, RtmmsError
from rtmms.base.terminal import print_text
from rtmms.base.trust import own_lines, plugin_name
from rtmms.cli.option_types import Installed, NumberType
from rtmms.wire.addresses import EXCHANGE
from rtmms.wire.peer.controller import CompiledUpdate
from rtmms.wire.peer.plugins import GROUP, build, loaded_elsewhere, split_spec
from rtmms.wire.peer.running import run_controller
from rtmms.wire.peer.session import GONE
from rtmms.wire.protocol.errors import ARGUMENT_ERRORS, EndpointError, NotConnectedError

CHILD = "RTMMS_CHILD"
"""Set to 1 by `rtmms run` in the processes it starts: the run handles Ctrl-C, and a child may compile before it
answers.
"""

PLANT_WAIT_S = 5.0
CHILD_WAIT_S = 3600.0
"""Wait of a child for the plant, s. The run ends its children itself; until then the plant may compile for any time."""


@click.command("control")
@click.argument("spec", type=Installed("rtmms.controllers"), metavar="NAME|FILE.py[:CLASS][:key=value,...]")
@click.option("--exchange", default=EXCHANGE, show_default=True, help="Exchange endpoint of the plant.")
@click.option(
    "--name", "peer", default=None, help="Name under which the plant lists it; the controller's own if not given."
)
@click.option(
    "--timeout", "timeout_s", type=NumberType("s", zero=True), default=None, help="Seconds to wait for the plant (5)."
)
@click.option(
    "--keys", type=click.Path(path_type=Path), metavar="DIR", help="Folder of keys, for a plant that asks for them."
)
@click.option("--reconnect", is_flag=True, help="When the plant ends, wait for the next one and go on.")
def control(
    spec: str, exchange: str, peer: str | None, timeout_s: float | None, keys: Path | None, reconnect: bool
) -> None:
    """Drive a running plant with a controller, until the plant ends."""
    child = os.environ.get(CHILD) == "1"
    if child:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if timeout_s is None:
        timeout_s = CHILD_WAIT_S if child else PLANT_WAIT_S
    try:
        reason = _drive(spec, exchange, peer, timeout_s, keys, reconnect)
    except (EndpointError, ModelError) as fault:
        _print_line(str(fault))
        raise SystemExit(2) from None
    except NotConnectedError as fault:
        _print_line(_named(spec, fault))
        raise SystemExit(2 if fault.code in ARGUMENT_ERRORS else 1) from None
    except RtmmsError as fault:
        _print_line(_named(spec, fault))
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        reason = "interrupted"
    except Exception as fault:  # whatever a user's controller does wrong, they need to see where
        lines, where = own_lines(fault)
        print_text(lines, err=True)
        _print_line(f"controller '{spec}' failed: {where}: {type(fault).__name__}: {fault}")
        raise SystemExit(1) from None
    if not child or reason == GONE:
        _print_line(f"controller '{spec}': {reason}")
    raise SystemExit(1 if reason == GONE else 0)


def _drive(
    spec: str, exchange: str, peer: str | None, timeout_s: float, keys: Path | None, reconnect: bool
) -> str:  # fmt: skip
    name, _ = split_spec(spec)
    controller = build(spec)
    elsewhere = loaded_elsewhere(GROUP, name)
    if elsewhere:
        _print_line(f"controller '{name}' {elsewhere}")
    gc.collect()
    gc.freeze()  # what is loaded by now stays: collections within the steps need not look at it
    answering = None
    if isinstance(update := controller.update, CompiledUpdate):
        from rtmms.wire.answering import Answering, prepare

        prepare(update)
        answering = Answering
    return run_controller(
        controller, exchange, answering=answering, name=peer or plugin_name(name), timeout_s=timeout_s, keys=keys,
        reconnect=reconnect, log=_print_line,
    )  # fmt: skip


def _print_line(text: str) -> None:
    print_text(f"rtmms control: {text}", err=True)


def _named(spec: str, fault: Exception) -> str:
    """Return the text of a fault with the controller's name, with which the fault itself may begin."""
    text = str(fault)
    return text if text.startswith("controller '") else f"controller '{spec}': {text}"
