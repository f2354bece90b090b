"""Sticks that set parameters of a controller.

A ground station or an autopilot sends values in -1 to 1, which become parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import rtmms
from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.override import override


class RequestSender(Protocol):
    """Type of `Io.ask` of a bridge."""

    def __call__(self, op: str, done: Callable[[bool, Any], None], **args: Any) -> None:
        """Send a request, and call back when it is answered."""


class ParameterChannels:
    """Setting of parameters over the wire, with one request under way at a time; only the newest values wait.

    Parameters
    ----------
    table : Mapping[str, str]
        CONTROLLER.PARAMETER by channel, with '-' before it for the other sign.
    channels : tuple[str, ...]
        The existing channels.

    Raises
    ------
    UnknownNameError
        If there is no such channel.
    ModelError
        If a text has another form, or occurs twice.
    """

    def __init__(self, table: Mapping[str, str], channels: tuple[str, ...]) -> None:
        self._table: dict[str, tuple[str, float]] = {}
        for channel, text in table.items():
            if channel not in channels:
                raise ModelError(f"parameter_channels: {UnknownNameError('channel', channel, channels)}")
            name = text.removeprefix("-")
            owner, dot, parameter = name.partition(".")
            if not (owner and dot and parameter):
                raise ModelError(f"parameter_channels.{channel}: expected CONTROLLER.PARAMETER, got '{text}'")
            if any(name == other for other, _ in self._table.values()):
                raise ModelError(f"parameter_channels.{channel}: '{name}' is listed twice")
            self._table[channel] = name, -1.0 if text.startswith("-") else 1.0
        self._ask: RequestSender | None = None
        self._refused: Callable[[str], object] = str
        self._begin()

    def __bool__(self) -> bool:
        """Return whether there are any parameters."""
        return bool(self._table)

    def open(self, ask: RequestSender, refused: Callable[[str], object]) -> None:
        """Begin with a plant.

        Parameters
        ----------
        ask : RequestSender
            `Io.ask` of the bridge.
        refused : Callable[[str], object]
            Called with a sentence when the plant refuses a value.
        """
        self._ask, self._refused = ask, refused
        self._begin()

    def take(self, values: Mapping[str, float]) -> bool:
        """Set the parameters of channels.

        Parameters
        ----------
        values : Mapping[str, float]
            Values from -1 to 1 by channel.

        Returns
        -------
        bool
            False if no channel has a parameter.
        """
        result = {self._table[c][0]: self._table[c][1] * value for c, value in values.items() if c in self._table}
        self._driven.update(result)
        self._publish(result)
        return bool(result)

    def knows(self, values: Iterable[str]) -> bool:
        """Return whether one of the channels has a parameter.

        Parameters
        ----------
        values : Iterable[str]
            The channels.

        Returns
        -------
        bool
            True if one has.
        """
        return any(channel in self._table for channel in values)

    def zero_parameters(self, channels: tuple[str, ...] | None = None) -> None:
        """Set parameters that were driven to 0.

        Parameters
        ----------
        channels : tuple[str, ...] | None, optional
            Their channels; None: all.
        """
        names = [name for channel, (name, _) in self._table.items() if channels is None or channel in channels]
        self._publish({name: 0.0 for name in names if name in self._driven})

    def _begin(self) -> None:
        self._sent: dict[str, float] = {}
        self._wanted: dict[str, float] = {}
        self._driven: set[str] = set()
        self._under_way = False

    def _publish(self, values: Mapping[str, float]) -> None:
        self._wanted.update(values)
        if self._under_way or self._ask is None:
            return
        news = {name: value for name, value in self._wanted.items() if self._sent.get(name) != value}
        self._wanted = {}
        if news:
            self._under_way = True
            self._sent.update(news)
            self._ask("set", self._done, **news)

    def _done(self, ok: bool, answer: Any) -> None:
        self._under_way = False
        if not ok:
            self._sent.clear()  # what is there now is not known
            self._refused(str(answer))
        self._publish({})


class ParameterBridge(rtmms.Bridge):
    """Bridge with a peer that may set parameters, by `_parameter_channels`."""

    if TYPE_CHECKING:
        _parameter_channels: ParameterChannels

    def _not_taken(self, reason: str) -> None:
        self.counts.refuse("parameter")
        self.io.log(f"the plant refused a parameter that the peer set (parameter_channels): {reason}")

    @override
    def on_peer_lost(self, why: str) -> None:
        """Handle a lost peer; with `peer_lost` neutral its parameters go to 0."""
        super().on_peer_lost(why)
        if self._parameter_channels and not self.plant.granted:
            self.io.log(
                f"{why}: the controllers' parameters that the peer set "
                f"{'go to 0' if self.peer_lost == 'neutral' else 'keep their last values'} "
                f"(peer_lost={self.peer_lost})"
            )
        if self.peer_lost == "neutral":
            self._parameter_channels.zero_parameters()
