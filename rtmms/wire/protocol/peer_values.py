"""Values that a peer declares and reports: tunable parameters, set-points, metrics, events of its own peer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rtmms.wire.protocol.limits import (
    MAX_METRICS,
    MAX_NAME_LENGTH,
    MAX_SETTABLE,
    MAX_SILENCES,
    MAX_TEXT_LENGTH,
    MAX_TRACK_LENGTH,
    MAX_TRACKS,
)
from rtmms.wire.protocol.messages import Reason, Refusal, is_finite, peer_text


def read_settable(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a peer's parameters that can change while it runs.

    Parameters
    ----------
    message : Mapping[str, Any]
        Message with a field `settable`.

    Returns
    -------
    dict[str, Any]
        Names, with numbers, flags, short texts or None.

    Raises
    ------
    Refusal
        If the field has another form.
    """
    settable = message.get("settable")
    if settable is None:
        return {}
    if type(settable) is not dict or len(settable) > MAX_SETTABLE:
        raise Refusal(
            Reason.WRONG_TYPE,
            f"settable must be a map of at most {MAX_SETTABLE} names, got {peer_text(settable)}",
        )
    for name, value in settable.items():
        if type(name) is not str or not 0 < len(name) <= MAX_NAME_LENGTH or not _plain(value):
            raise Refusal(
                Reason.WRONG_TYPE,
                f"settable: {peer_text(name)}: expected a number, flag or short text by a short name, "
                f"got {peer_text(value)}",
            )
    return settable


def read_tracks(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a peer's set-points.

    Parameters
    ----------
    message : Mapping[str, Any]
        Message with a field `tracks`.

    Returns
    -------
    dict[str, Any]
        A number or a text for the name of each quantity.

    Raises
    ------
    Refusal
        If the field has another form.
    """
    tracks = message.get("tracks")
    if tracks is None:
        return {}
    if type(tracks) is not dict or len(tracks) > MAX_TRACKS:
        raise Refusal(Reason.WRONG_TYPE, f"hello: tracks must be a map of at most {MAX_TRACKS} names")
    for name, value in tracks.items():
        plain = type(value) in (int, float) or (type(value) is str and len(value) <= MAX_TRACK_LENGTH)
        if type(name) is not str or not 0 < len(name) <= MAX_NAME_LENGTH or not plain:
            raise Refusal(
                Reason.WRONG_TYPE,
                f"hello: tracks: expected names, each with a number or text, got {peer_text(name)}",
            )
    return tracks


def read_figures(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metrics that a peer reports about itself.

    Parameters
    ----------
    message : Mapping[str, Any]
        Message with a field `values`.

    Returns
    -------
    dict[str, Any]
        Names, with numbers, flags, short texts or None.

    Raises
    ------
    Refusal
        If the field has another form.
    """
    values = message.get("values")
    if type(values) is not dict or len(values) > MAX_METRICS:
        raise Refusal(Reason.WRONG_TYPE, f"metrics: values must be a map of at most {MAX_METRICS} names")
    for name, value in values.items():
        if type(name) is not str or not 0 < len(name) <= MAX_NAME_LENGTH or not _plain(value):
            raise Refusal(
                Reason.WRONG_TYPE,
                f"metrics: expected names, each with a number, flag or short text, got {peer_text(name)}",
            )
    return values


_COUNTS = ("silences_count", "losses_count", "restarts_count")


def read_watch(message: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a bridge's report about its own peer.

    Parameters
    ----------
    message : Mapping[str, Any]
        Message that may have a field `watch`.

    Returns
    -------
    dict[str, Any] | None
        The entries below, or None if the message has no report.

    Raises
    ------
    Refusal
        If the field has another form.

    Notes
    -----
    Entries:

    - `watched`, `learned`: whether the bridge judges the peer's silence, and whether it learned the peer's period.
    - `period_s`, `first_s`: wall time of a period, and simulated time of the first message, s. None if unknown.
    - `silences`: [begin (simulated s), step at the begin, length (simulated s)] of each silence. The length of
      a silence that lasts is None.
    - `losses`: begins of the losses, simulated s.
    - `silences_count`, `losses_count`, `restarts_count`: numbers of all events, also of those that are not listed.
    """
    watch = message.get("watch")
    if watch is None:
        return None
    if type(watch) is not dict or not all(type(watch.get(name)) is bool for name in ("watched", "learned")):
        raise Refusal(
            Reason.WRONG_TYPE,
            f"metrics: watch: expected a map with watched and learned, got {peer_text(watch)}",
        )
    silences, losses = watch.get("silences"), watch.get("losses")
    if not (type(silences) is list and len(silences) <= MAX_SILENCES and all(map(_is_silence, silences))):
        raise Refusal(
            Reason.WRONG_TYPE,
            f"metrics: watch: silences: expected a list of at most {MAX_SILENCES} lists [begin, "
            "step, length], got "
            f"{f'{len(silences)} entries' if type(silences) is list else peer_text(silences)}",
        )
    if not (type(losses) is list and len(losses) <= MAX_SILENCES and all(map(is_finite, losses))):
        raise Refusal(Reason.WRONG_TYPE, f"metrics: watch: losses: expected at most {MAX_SILENCES} numbers")
    for name in ("period_s", "first_s"):
        if watch.get(name) is not None and not is_finite(watch[name]):
            raise Refusal(Reason.WRONG_TYPE, f"metrics: watch: {name}: expected a number, got {peer_text(watch[name])}")
    for name in _COUNTS:
        if type(watch.get(name)) is not int or watch[name] < 0:
            raise Refusal(
                Reason.WRONG_TYPE,
                f"metrics: watch: {name}: expected a count, got {peer_text(watch.get(name))}",
            )
    known = ("watched", "learned", "period_s", "first_s", "silences", "losses", *_COUNTS)
    return {name: watch.get(name) for name in known}


def _is_silence(value: Any) -> bool:
    return (
        type(value) is list and len(value) == 3 and is_finite(value[0]) and type(value[1]) is int
        and (value[2] is None or is_finite(value[2]))
    )  # fmt: skip


def _plain(value: Any) -> bool:
    """Return whether a value is a number, a flag, a short text or None."""
    return value is None or type(value) in (bool, int, float) or (type(value) is str and len(value) <= MAX_TEXT_LENGTH)
