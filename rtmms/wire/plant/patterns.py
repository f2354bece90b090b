"""Names that patterns of a stranger match: with *, ? and [...], as fnmatch's, but with work that is counted.

Nothing is compiled and nothing kept: what a pattern costs is known, and paid by nobody twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from rtmms.wire.protocol.messages import Reason, Refused

STRANGERS_WORK = 150
"""Steps of comparison, some 0.3 us each, for all the patterns of one that did not say the token: a display's names cost
one each, and a pattern of letters and stars one or two for each output."""
PEERS_WORK = 1 << 18
"""The same for one that did."""

_WILD = frozenset("*?[")
Run = str | list[str]


class Matching:
    """Patterns matched against names.  work   steps that are left; Refused when it is used up"""

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
