"""Run of a controller: connect, and answer every state until the plant ends."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any, Protocol

from rtmms.base.errors import ModelError
from rtmms.wire.addresses import EXCHANGE
from rtmms.wire.peer.attachment import TunableParameters
from rtmms.wire.peer.client import Link, connect
from rtmms.wire.peer.controller import COMMON, Controller, declaration_of
from rtmms.wire.peer.core_affinity import CoreMove


class Answering(Protocol):
    """Compiled answers to usual states."""

    def go(self) -> None:
        """Answer states until Python is needed.

        Call it after Python has answered one.
        """

    def close(self) -> None:
        """Close its descriptors."""


class Figures:
    """Metrics of a controller, which are reported now and then if they have changed.

    Parameters
    ----------
    controller : Controller
        The controller.
    report : Callable[[dict[str, Any]], None]
        Sends the metrics to the plant.
    """

    EACH_S = 1.0

    def __init__(self, controller: Controller, report: Callable[[dict[str, Any]], None]) -> None:
        self._names: Sequence[str] = declaration_of(controller, "metrics")
        self._controller, self._report, self._next = controller, report, 0.0
        self._last: dict[str, Any] = {}

    def look(self) -> None:
        """Report the metrics if it is time."""
        if self._names and monotonic() >= self._next:
            self._next = monotonic() + self.EACH_S
            now = self._now()
            if now != self._last:
                self._last = now
                self._report(now)

    def end(self) -> None:
        """Report the metrics a last time, changed or not, because the plant waits for them."""
        if self._names:
            self._report(self._now())

    def _now(self) -> dict[str, Any]:
        return {name: getattr(self._controller, name) for name in self._names}


def _placed(fault: ModelError, controller: Controller, values: object) -> ModelError:
    """Return an error with file and line of an update that returned no command."""
    code = getattr(inspect.unwrap(controller.update), "__code__", None)
    if isinstance(values, Mapping) or code is None:
        return fault
    place = f"{code.co_filename}, line {code.co_firstlineno}"
    return ModelError(f"{place}: update: expected {{actuator: number}} or None, got {values!r:.60}")


def run_controller(
    controller: Controller, exchange: str | None = None, *, name: str = "", timeout_s: float = 5.0,
    token: str | None = None, keys: str | os.PathLike[str] | None = None, log: Callable[[str], Any] | None = None,
    reconnect: bool = False, answering: Callable[[Link, Controller], Answering] | None = None,
) -> str:  # fmt: skip
    """Connect a controller, and answer every state until the plant ends.

    Parameters
    ----------
    controller : Controller
        The controller.
    exchange : str | None, optional
        The plant's exchange endpoint; None for the default.
    name : str, default ''
        Name of the peer; empty for the class's name.
    timeout_s : float, default 5.0
        Longest wait for an answer, s.
    token, keys : str | None, optional
        As in `connect`.
    log : Callable[[str], Any] | None, optional
        Receives texts for a person: refusals of the plant, and once that `update` returned None.
    reconnect : bool, default False
        As in `connect`; `start` is called again with each new plant.
    answering : Callable[[Link, Controller], Answering] | None, optional
        Creates the compiled answers of a compiled update, see rtmms.wire.answering.

    Returns
    -------
    str
        Reason of the end.

    Raises
    ------
    NotConnectedError
        If no plant admits the controller.
    ModelError
        If the controller has no `update`. The controller's own exceptions pass through.
    """
    if getattr(controller.update, "__func__", None) is Controller.update:
        raise ModelError(
            f"controller {type(controller).__name__}: update(state) is missing; write this method, which returns a dict"
        )
    points: Sequence[str] = declaration_of(controller, "setpoints")
    prepare = getattr(controller, "prepare", None)  # a controller need not derive from our class
    if prepare is not None:
        prepare()
    placing = CoreMove()
    tunable = {name: getattr(controller, name) for name in declaration_of(controller, "tunable_parameters")}
    settable = TunableParameters(tunable, declaration_of(controller, "on_parameters_changed", None))
    with connect(
        exchange or EXCHANGE, name=name or type(controller).__name__.lower(), claim=controller.claim,
        outputs=controller.outputs, timeout_s=timeout_s, token=token, keys=keys, reconnect=reconnect,
        **{name: getattr(controller, name) for name in COMMON},
        tunable_parameters=settable, errors="collect", setpoints={name: getattr(controller, name) for name in points},
    ) as link:  # fmt: skip
        plant = link.plant
        controller.start(plant)
        placing.start(plant.period_s)
        drives, reported, silent = bool(plant.granted), set[str](), False
        update, command, errors = controller.update, link.command, link.errors
        figures = Figures(controller, link.report_metrics)
        quick = answering(link, controller) if answering is not None and drives else None
        for state in link:
            if link.plant is not plant:
                plant = link.plant
                controller.start(plant)
                placing.start(plant.period_s)
            values = update(state)
            if values and not drives:
                raise ModelError(
                    f"controller {type(controller).__name__}: update returned commands, and the controller has no "
                    "actuator; claim some (claim = ('*',)), or return nothing"
                )
            if drives:
                try:
                    command(values if values is not None else {})
                except ModelError as fault:
                    raise _placed(fault, controller, values) from None
                if values is None and not silent:
                    silent = True
                    if log is not None:
                        log("update returned None, so its actuators have their last values (printed once)")
            while errors:
                code, text = errors.popleft()
                if log is not None and code not in reported:
                    reported.add(code)
                    log(f"the plant refused a message of this controller: {text} (printed once for each kind)")
            figures.look()
            moved = placing.look()
            if moved and log is not None:
                log(moved)
            if quick is not None:
                quick.go()
        if quick is not None:
            quick.close()
        figures.end()
        controller.stop(link.ended)
        return link.ended
