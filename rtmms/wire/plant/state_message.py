"""Which outputs a peer gets, and a state message of them packed with nothing kept from step to step."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from rtmms.base.contract import TRUTH, Applied
from rtmms.base.errors import UnknownNameError
from rtmms.plant.protocol import Channel
from rtmms.wire.plant.message_layouts import StateTemplate, StateTemplates
from rtmms.wire.protocol.messages import Reason, Refused, packer

STRANGERS_WORK = 150
"""Steps of comparison, some 0.3 us each, for all the patterns of one that did not say the token: a display's names cost
one each, and a pattern of letters and stars one or two for each output."""
PEERS_WORK = 1 << 18
"""The same for one that did."""

_WILD = frozenset("*?[")
Run = str | list[str]


class Matching:
    """Patterns matched against names.  work   steps that are left; Refused when it is used up

    fnmatch makes a regular expression of each pattern first. That takes 44 us for `left.*`, all that a stranger may
    take, and 640 us for 128 letters and stars; to match as here takes 6 and 38 us.
    """

    def __init__(self, work: int = PEERS_WORK) -> None:
        self.work = work

    def matched(self, pattern: str, names: Collection[str]) -> list[str]:
        """Those of the names that the pattern matches, in their order."""
        if _WILD.isdisjoint(pattern):
            self._spend(1)
            return [pattern] if pattern in names else []
        if not pattern.strip("*"):
            self._spend(1 + len(names) // 8)
            return list(names)
        runs = _runs(pattern)
        self._spend(sum(len(run) for run in runs) // 4)
        return [name for name in names if self._matches(runs, name)]

    def _matches(self, runs: list[Run], name: str) -> bool:
        """The runs between the stars, in their order: the first and the last at the ends, each other one as far left
        as it goes, so that what was given to those before it need not be taken back."""
        self._spend(1)
        first, last = runs[0], runs[-1]
        at, end = len(first), len(name) - len(last)
        if len(runs) == 1:
            return end == 0 and self._fits(first, name, 0)
        if at > end or not self._fits(first, name, 0) or not self._fits(last, name, end):
            return False
        for run in runs[1:-1]:
            at = self._found(run, name, at, end)
            if at < 0:
                return False
            at += len(run)
        return True

    def _found(self, run: Run, name: str, at: int, end: int) -> int:
        """Where a run lies first between the two; -1: nowhere."""
        if isinstance(run, str):
            self._spend(1)
            return name.find(run, at, end)
        return next((here for here in range(at, end - len(run) + 1) if self._fits(run, name, here)), -1)

    def _fits(self, run: Run, name: str, at: int) -> bool:
        """Letters are compared all at once, a run of wild ones each; the name is long enough."""
        if isinstance(run, str):
            return name.startswith(run, at)
        for k, part in enumerate(run, at):
            self._spend(len(part))
            if not _one(part, name[k]):
                return False
        return True

    def _spend(self, work: int) -> None:
        self.work -= work
        if self.work < 0:
            raise Refused(Reason.WRONG_TYPE, "hello: these patterns take too long: use fewer, or names")


def _runs(pattern: str) -> list[Run]:
    """What lies between the stars: a text, or parts where there are others than letters."""
    runs: list[list[str]] = [[]]
    for part in _parts(pattern):
        if part == "*":
            runs.append([])
        else:
            runs[-1].append(part)
    return ["".join(run) if _WILD.isdisjoint("".join(run)) else run for run in runs]


def _parts(pattern: str) -> Iterable[str]:
    """'a?[b-d]*' -> 'a', '?', '[b-d]', '*'. Stars side by side are one; a bracket that nothing closes is itself."""
    at, last = 0, ""
    while at < len(pattern):
        end = at + 1
        if pattern[at] == "[":
            first = at + 2 if pattern[at + 1 : at + 2] == "!" else at + 1
            found = pattern.find("]", first + 1)
            end = found + 1 if found > 0 else end
        part = pattern[at:end]
        if not part == last == "*":
            yield part
        at, last = end, part


def _one(part: str, letter: str) -> bool:
    if len(part) == 1:
        return part in ("?", letter)
    negated = part[1] == "!"
    return _among(part[1 + negated : -1], letter) is not negated


def _among(letters: str, letter: str) -> bool:
    """'a-cx': one of a, b, c and x."""
    at = 0
    while at < len(letters):
        if at + 2 < len(letters) and letters[at + 1] == "-":
            if letters[at] <= letter <= letters[at + 2]:
                return True
            at += 3
        else:
            if letters[at] == letter:
                return True
            at += 1
    return False


FIELD_DIMENSIONS = 3
"""An output of so many dimensions or more is a field: it travels only where it is asked for."""

NOTHING = "none"

STAND_IN = 0xB0D6E7A5
_BUDGET = b"\xa9budget_ns\xce" + STAND_IN.to_bytes(4, "big")
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


_DEADLINE = b"\xabdeadline_ns"
_BUDGET_KEY = b"\xa9budget_ns"
_WIDTHS = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}
"""Of msgpack's whole numbers: bytes after the first."""


def dated(payload: bytes, deadline_ns: int, budget_ns: int) -> bytes:
    """A packed state that is sent later than it was made, with the deadline and the budget of then."""
    for key, value in ((_DEADLINE, deadline_ns), (_BUDGET_KEY, budget_ns)):
        before, _, rest = payload.partition(key)
        after = rest[1 + _WIDTHS.get(rest[0], 0) :]
        payload = b"".join((before, key, b"\xcf", value.to_bytes(8, "big"), after))
    return payload


class Selection:
    """Packs states with a fixed set of outputs; the message and the packer's buffer are used again each time.

    prefix     what the plant's names of these outputs begin with, and the message leaves out
    later_ns   of those whose command is for a later step: how much later its deadline is than the state's own
    templates  what the last message is written again by
    """

    def __init__(
        self, channels: Sequence[Channel], kind: str = "state", later_ns: int = 0, prefix: str = ""
    ) -> None:  # fmt: skip
        self._later_ns, self._prefix = later_ns, prefix
        self.names = tuple(channel.name for channel in channels)
        plain = [channel for channel in channels if len(channel.shape) == 1]
        scalars = [channel for channel in channels if not channel.shape]
        fields = [channel for channel in channels if len(channel.shape) > 1]
        self._plain, self._scalars, self._fields = (tuple(c.name for c in part) for part in (plain, scalars, fields))
        self._outputs: dict[str, Any] = dict.fromkeys(self.names)
        self._applied: dict[str, Any] = {"seq": -1, "step": -1, "lateness_ns": 0, "policy": "", "clamped": False}
        self._message: dict[str, Any] = {
            "type": kind, "step": 0, "timestamp": 0.0, "deadline_ns": 0, "budget_ns": 0,
            "outputs": self._outputs, "applied": self._applied,
        }  # fmt: skip
        self._pack = packer()
        self.templates = StateTemplates(channels, prefix)
        self._ahead: tuple[int, int] = (-1, 0)
        self._ready: bytes | StateTemplate = b""
        self.round = 0
        self.payload = b""

    @property
    def later_ns(self) -> int:
        """See the class."""
        return self._later_ns

    def packed(
        self, step: int, time: float, deadline_ns: int, budget_ns: int, outputs: Mapping[str, Any], applied: Applied
    ) -> bytes:
        """One state message; `outputs` may hold more than this selection, each an array of the channel's shape."""
        if isinstance(self._ready, StateTemplate):  # what was prepared stays
            self._ready = self._ready.payload.tobytes()
        written = self._written(step, time, deadline_ns, budget_ns, outputs, applied)
        self.payload = written if isinstance(written, bytes) else written.payload.tobytes()
        return self.payload

    def _written(
        self, step: int, time: float, deadline_ns: int, budget_ns: int, outputs: Mapping[str, Any], applied: Applied
    ) -> bytes | StateTemplate:
        """The same in place where there is a template for it."""
        later_ns = self._later_ns if deadline_ns else 0
        deadline_ns, budget_ns = deadline_ns + later_ns, budget_ns + later_ns
        used = self.templates.write(step, time, deadline_ns, budget_ns, outputs, applied)
        if used is not None:
            return used
        message, mine, said = self._message, self._outputs, self._applied
        message["step"], message["timestamp"] = step, time
        message["deadline_ns"], message["budget_ns"] = deadline_ns, budget_ns
        prefix = self._prefix
        for name in self._scalars:
            mine[name] = float(outputs[prefix + name])
        for name in self._plain:
            mine[name] = outputs[prefix + name].tolist()
        for name in self._fields:
            mine[name] = outputs[prefix + name].ravel().tolist()  # row-major
        said["seq"], said["step"], said["lateness_ns"] = applied.seq, applied.step, applied.lateness_ns
        said["policy"], said["clamped"] = applied.policy, applied.clamped
        payload = self._pack(message)
        if self.templates.learn(payload, applied.policy):
            used = self.templates.write(step, time, deadline_ns, budget_ns, outputs, applied)
        return payload if used is None else used

    def prepare(
        self, step: int, time: float, deadline_ns: int, outputs: Mapping[str, Any], applied: Applied
    ) -> None:  # fmt: skip
        """Pack a state ahead of its instant, all but the budget, which is known when it is sent; step -1 forgets it."""
        if step < 0:
            self._ahead = (-1, 0)
            return
        stand_in = STAND_IN - self._later_ns if deadline_ns else 0
        self._ready = self._written(step, time, deadline_ns, stand_in, outputs, applied)
        self._ahead = (step, deadline_ns)

    def prepared(self, step: int, deadline_ns: int, policy: str) -> None:
        """The same was done by its template of this policy, in compiled code."""
        state = self.templates.of(policy)
        assert state is not None
        self._ready, self._ahead = state, (step, deadline_ns)

    def ready(self, step: int, deadline_ns: int) -> StateTemplate | None:
        """The state of this step and deadline as it was prepared, if it was written in place: to be sent from there,
        once."""
        ready = self._ready
        return ready if isinstance(ready, StateTemplate) and self._ahead == (step, deadline_ns) else None

    def sent(self) -> None:
        """What was `ready` has left, or is about to."""
        self._ahead = (-1, 0)

    def due(
        self, step: int, time: float, deadline_ns: int, budget_ns: int, outputs: Mapping[str, Any], applied: Applied
    ) -> bytes:
        """The same as `packed`, in a tenth of the time where this state was prepared."""
        left_ns = budget_ns + self._later_ns if deadline_ns else budget_ns
        if self._ahead != (step, deadline_ns) or not 0 <= left_ns <= _MOST_BUDGET:
            return self.packed(step, time, deadline_ns, budget_ns, outputs, applied)
        ready = self._ready if isinstance(self._ready, bytes) else self._ready.payload.tobytes()
        if not deadline_ns:
            self.payload = ready if not budget_ns else self.packed(step, time, 0, budget_ns, outputs, applied)
            return self.payload
        head, key, tail = ready.partition(_BUDGET)
        self.payload = b"".join((head, key[:-4], left_ns.to_bytes(4, "big"), tail))
        return self.payload
