"""What became of each step of a log, and when by the wall clock: without reading the states."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rtmms.record.records import records


@dataclass(frozen=True, slots=True)
class Kept:
    """One step: outcome and policy as in the log, at s since 1970 when it was kept; overruns and skipped so far."""

    step: int
    outcome: str
    policy: str
    at: float
    overruns: int
    skipped: int


def kept(path: Path) -> Iterator[Kept]:
    """The steps of a log in their order."""
    topics: dict[int, str] = {}
    for record in records(path):
        kind = type(record).__name__
        if kind == "Channel":
            topics[record.id] = record.topic
        elif kind == "Message" and topics.get(record.channel_id) == "/outcome":
            said = json.loads(record.data)
            at = record.publish_time * 1e-9
            yield Kept(
                int(said["step"]), said["outcome"], said["policy"], at, int(said["overruns"]), int(said["skipped"])
            )
