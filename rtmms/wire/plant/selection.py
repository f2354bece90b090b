"""Which outputs a peer gets, and a state message of them packed with nothing kept from step to step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rtmms.contract import TRUTH, Applied
from rtmms.errors import UnknownNameError
from rtmms.plant import Channel
from rtmms.wire.plant.patterns import PEERS_WORK, Matching
from rtmms.wire.protocol.codec import packer
from rtmms.wire.protocol.messages import Reason, Refused

FIELD_DIMENSIONS = 3
"""An output of so many dimensions or more is a field: it travels only where it is asked for."""

NOTHING = "none"

_STAND_IN = 0xB0D6E7A5
_BUDGET = b"\xa9budget_ns\xce" + _STAND_IN.to_bytes(4, "big")
"""Key and value as msgpack writes them: a whole number of 32 bits, whatever it will be."""
_MOST_BUDGET = 0xFFFFFFFF


def select(outputs: Sequence[Channel], patterns: Sequence[str], work: int = PEERS_WORK) -> tuple[Channel, ...]:
    """The outputs that match one of the patterns, in the plant's order; Refused for a pattern that names none.

    Without patterns: all but the fields, such as the joints of every chain of every fin, and the truth that sensors
    hide, which only a pattern that begins with its word matches. NOTHING alone: none.
    work   that matching them may take, see Matching
    """
    if tuple(patterns) == (NOTHING,):
        return ()
    if not patterns:
        return tuple(
            channel
            for channel in outputs
            if len(channel.shape) < FIELD_DIMENSIONS and not channel.name.startswith(TRUTH)
        )
    names = dict.fromkeys(channel.name for channel in outputs)
    wanted: set[str] = set()
    matching = Matching(work)
    for pattern in dict.fromkeys(patterns):
        found = matching.matched(pattern, names)
        if not pattern.startswith(TRUTH):
            found = [name for name in found if not name.startswith(TRUTH)]
        if not found:
            # near misses take long to find: for those with the token alone
            why = (
                f"unknown output '{pattern}'" if work < PEERS_WORK else str(UnknownNameError("output", pattern, names))
            )
            raise Refused(Reason.UNKNOWN_OUTPUT, f"hello: outputs: {why}")
        wanted.update(found)
    return tuple(channel for channel in outputs if channel.name in wanted)


class Selection:
    """Packs states with a fixed set of outputs; the message and the packer's buffer are used again each time.

    later_ns   of those whose command is for a later step: how much later its deadline is than the state's own
    """

    def __init__(self, channels: Sequence[Channel], kind: str = "state", later_ns: int = 0) -> None:
        self._later_ns = later_ns
        self.names = tuple(channel.name for channel in channels)
        self._plain = tuple(channel.name for channel in channels if len(channel.shape) == 1)
        self._scalars = tuple(channel.name for channel in channels if not channel.shape)
        self._fields = tuple(channel.name for channel in channels if len(channel.shape) > 1)
        self._outputs: dict[str, Any] = dict.fromkeys(self.names)
        self._applied: dict[str, Any] = {"seq": -1, "step": -1, "lateness_ns": 0, "policy": "", "clamped": False}
        self._message: dict[str, Any] = {
            "type": kind, "step": 0, "timestamp": 0.0, "deadline_ns": 0, "budget_ns": 0,
            "outputs": self._outputs, "applied": self._applied,
        }  # fmt: skip
        self._pack = packer()
        self._ahead: tuple[int, int, bytes, bytes] = (-1, 0, b"", b"")
        self.round = 0
        self.payload = b""

    def packed(
        self, step: int, time: float, deadline_ns: int, budget_ns: int, outputs: Mapping[str, Any], applied: Applied
    ) -> bytes:
        """One state message; `outputs` may hold more than this selection, each an array of the channel's shape."""
        message, mine, said = self._message, self._outputs, self._applied
        message["step"], message["timestamp"] = step, time
        later_ns = self._later_ns if deadline_ns else 0
        message["deadline_ns"], message["budget_ns"] = deadline_ns + later_ns, budget_ns + later_ns
        for name in self._scalars:
            mine[name] = float(outputs[name])
        for name in self._plain:
            mine[name] = outputs[name].tolist()
        for name in self._fields:
            mine[name] = outputs[name].ravel().tolist()  # row-major
        said["seq"], said["step"], said["lateness_ns"] = applied.seq, applied.step, applied.lateness_ns
        said["policy"], said["clamped"] = applied.policy, applied.clamped
        self.payload = self._pack(message)
        return self.payload

    def prepare(
        self, step: int, time: float, deadline_ns: int, outputs: Mapping[str, Any], applied: Applied
    ) -> None:  # fmt: skip
        """Pack a state ahead of its instant, all but the budget, which is known when it is sent; step -1 forgets it."""
        if step < 0:
            self._ahead = (-1, 0, b"", b"")
            return
        stand_in = _STAND_IN - (self._later_ns if deadline_ns else 0)
        head, key, tail = self.packed(step, time, deadline_ns, stand_in, outputs, applied).partition(_BUDGET)
        self._ahead = (step, deadline_ns, head + key[:-4], tail)

    def due(
        self, step: int, time: float, deadline_ns: int, budget_ns: int, outputs: Mapping[str, Any], applied: Applied
    ) -> bytes:
        """The same as `packed`, in a tenth of the time where this state was prepared."""
        ready_step, ready_ns, head, tail = self._ahead
        left_ns = budget_ns + self._later_ns if deadline_ns else budget_ns
        if ready_step != step or ready_ns != deadline_ns or not 0 <= left_ns <= _MOST_BUDGET:
            return self.packed(step, time, deadline_ns, budget_ns, outputs, applied)
        self.payload = b"".join((head, left_ns.to_bytes(4, "big"), tail))
        return self.payload
