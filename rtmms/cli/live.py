"""rtmms set, pause, resume, reset, stop, status: requests to a running plant, over its exchange endpoint."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rtmms.base.errors import ModelError, safe_text
from rtmms.base.terminal import print_json, print_text
from rtmms.cli.option_types import NumberType, options, settings
from rtmms.wire.addresses import EXCHANGE

if TYPE_CHECKING:
    from rtmms.wire.peer.client import Link

_PLANT = options(
    click.option("--exchange", default=EXCHANGE, show_default=True, help="Exchange endpoint of the plant."),
    click.option("--keys", type=click.Path(path_type=Path), metavar="DIR",
                 help="Folder of keys, for a plant that asks for them."),
    click.option("--timeout", "timeout_s", type=NumberType("s"), default=5.0,
                 help="Seconds to wait for an answer (5)."),
    click.option("--json", "as_json", is_flag=True, help="Print the answer as one JSON object."),
)  # fmt: skip


def _ask(asked: Callable[[Link], Mapping[str, Any]], exchange: str, keys: Path | None, timeout_s: float) -> Any:
    """Return the plant's answer; raise NotConnectedError, RequestError, and ModelError for refused words."""
    from rtmms.wire.peer.client import connect
    from rtmms.wire.protocol.errors import RequestError

    link = connect(exchange, name="rtmms", timeout_s=timeout_s, keys=keys, errors="collect")
    try:
        return {"robot": link.plant.robot} | dict(asked(link))
    except RequestError as fault:
        if fault.refused:
            raise ModelError(str(fault)) from None
        raise
    finally:
        link.close()


@click.command("set")
@click.argument("pairs", nargs=-1, required=True, metavar="KEY=VALUE...")
@_PLANT
def set_(pairs: tuple[str, ...], exchange: str, keys: Path | None, timeout_s: float, as_json: bool) -> None:
    """Change parameters of a plant that runs, or of a controller: CONTROLLER.PARAMETER=VALUE."""
    wanted = settings(pairs, "")
    owners: dict[str, dict[str, Any]] = {}
    for key, value in wanted.items():
        owners.setdefault(key.partition(".")[0] if "." in key else "", {})[key] = value

    def asked(link: Link) -> dict[str, Any]:
        for values in owners.values():
            link.request("set", values, timeout_s)
        return {"set": wanted}

    answer = _ask(asked, exchange, keys, timeout_s)
    if as_json:
        print_json(json.dumps(answer))
    else:
        print_text(", ".join(f"{key} = {value}" for key, value in wanted.items()))


def _simple(op: str, help_: str, done: str, *more: Callable[[Any], Any]) -> click.Command:
    """Return a command that sends one request and reports that it is done."""

    @click.command(op, help=help_)
    @_PLANT
    def command(exchange: str, keys: Path | None, timeout_s: float, as_json: bool, **args: Any) -> None:
        values = {name: value for name, value in args.items() if value is not None}
        answer = _ask(lambda link: link.request(op, values, timeout_s), exchange, keys, timeout_s)
        if as_json:
            print_json(json.dumps(answer))
        else:
            print_text(done.format(**{name: safe_text(value) for name, value in answer.items()}))

    for option in more:
        command = option(command)
    return command


pause = _simple("pause", "Hold a plant that runs between two steps.", "{robot}: paused at step {step}")
resume = _simple("resume", "Let a paused plant go on.", "{robot}: goes on at step {step}")
stop = _simple("stop", "End a run, with its report.", "{robot}: stopped at step {step}")
reset = _simple(
    "reset", "Put a plant that runs back to t = 0.", "{robot}: back at step {step}",
    click.option("--seed", type=click.IntRange(0, 2**63 - 1), help="Seed of what is random (default: the run's)."),
)  # fmt: skip


@click.command()
@_PLANT
def status(exchange: str, keys: Path | None, timeout_s: float, as_json: bool) -> None:
    """Report what a plant that runs is doing, who drives it, and what can be set."""
    answer = _ask(lambda link: link.request("status", timeout_s=timeout_s), exchange, keys, timeout_s)
    if as_json:
        print_json(json.dumps(answer))
        return
    state = "paused" if answer["paused"] else "running"
    if not answer.get("begun", True):
        state = "waiting for its peers"
    of = "" if answer["steps"] is None else f" of {answer['steps']}"
    print_text(f"{safe_text(answer['robot'])}: {state}, {safe_text(answer['mode'])}, dt {answer['dt']:g} s")
    print_text(f"step {answer['step']}{of}, t = {answer['time']:.3f} s")
    counts = ("commands_applied", "stale", "misses", "late", "overruns")  # an older plant counts no stale ones
    print_text(", ".join(f"{name.replace('_', ' ')} {answer.get(name, 0)}" for name in counts))
    for peer in answer["peers"]:
        if peer["state"] == "gone" or (peer["name"] == "rtmms" and not peer["claim"]):
            continue  # those who asked such a thing
        drives = safe_text(", ".join(peer["claim"])) or "observer"
        turns = f", every {peer['every']} steps" if peer.get("every", 1) > 1 else ""
        name = safe_text(peer["name"])
        print_text(f"{name} ({safe_text(peer['state'])}): {drives}{turns}")
        if peer.get("rejected"):
            print_text(f"    {peer['rejected']} of its commands refused: {safe_text(peer.get('refusal', ''))}")
        for key, value in peer.get("settable", {}).items():
            print_text(f"    {name}.{safe_text(key)} = {safe_text(value)}")
        for key, value in peer.get("metrics", {}).items():
            print_text(f"    {safe_text(key).replace('_', ' ')}: {safe_text(value)}")
