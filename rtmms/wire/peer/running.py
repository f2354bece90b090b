"""Running a controller: connect, answer every state, until the plant ends."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from rtmms.wire.peer.client import connect
from rtmms.wire.peer.controller import Controller
from rtmms.wire.peer.settable import Settable
from rtmms.wire.places.endpoints import EXCHANGE


def run_controller(
    controller: Controller, exchange: str | None = None, *, name: str = "", timeout_s: float = 5.0,
    token: str | None = None, keys: str | os.PathLike[str] | None = None, tell: Callable[[str], Any] | None = None,
    reconnect: bool = False,
) -> str:  # fmt: skip
    """Connect, and answer every state until the plant ends; returns the reason for the end.

    keys, reconnect   as connect's; `start` is called again with each new plant
    tell   gets what the plant refused, as text for a person
    NotConnectedError if no plant takes it; whatever the controller itself raises passes through.
    """
    settable = Settable({name: getattr(controller, name) for name in controller.settable}, controller.change)
    with connect(
        exchange or EXCHANGE, name=name or type(controller).__name__.lower(), claim=controller.claim,
        outputs=controller.outputs, timeout_s=timeout_s, token=token, keys=keys, reconnect=reconnect,
        every=controller.every, delay=controller.delay, between=controller.between,
        settable=settable, errors="collect",
    ) as link:  # fmt: skip
        plant = link.plant
        controller.start(plant)
        drives, told = bool(plant.granted), set[str]()
        update, command, errors = controller.update, link.command, link.errors
        for state in link:
            if link.plant is not plant:
                plant = link.plant
                controller.start(plant)
            values = update(state)
            if drives:
                command(values if values is not None else {})
            while errors:
                code, text = errors.popleft()
                if tell is not None and code not in told:
                    told.add(code)
                    tell(f"{text} (told once for each kind)")
        controller.stop(link.ended)
        return link.ended
