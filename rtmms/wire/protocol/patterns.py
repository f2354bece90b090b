"""Names that patterns of a stranger match: with *, ? and [...], as fnmatch's, but with work that is counted.

Nothing is compiled and nothing kept: what a pattern costs is known, and paid by nobody twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from rtmms.wire.protocol.messages import Reason, Refused

STRANGERS_WORK = 1024
"""Steps of comparison, some 0.2 us each, for all the patterns of one that did not say the token: a display's names cost
one each, and a pattern about as many as there are outputs."""
PEERS_WORK = 1 << 18
"""The same for one that did."""

_WILD = frozenset("*?[")


class Matching:
    """Patterns matched against names.  work   steps that are left; Refused when it is used up"""

    def __init__(self, work: int = PEERS_WORK) -> None:
        self.work = work

    def matched(self, pattern: str, names: Collection[str]) -> list[str]:
        """Those of the names that the pattern matches, in their order."""
        if _WILD.isdisjoint(pattern):
            self._spend(1)
            return [pattern] if pattern in names else []
        parts = list(_parts(pattern))
        self._spend(len(parts))
        return [name for name in names if self._matches(parts, name)]

    def _matches(self, parts: list[str], name: str) -> bool:
        """Each star is given as little as will do: what was given to those before it need not be taken back."""
        at = part = 0
        star, resume = -1, 0
        while at < len(name):
            here = parts[part] if part < len(parts) else ""
            self._spend(len(here) or 1)
            if here == "*":
                star, resume, part = part, at, part + 1
                if part == len(parts):
                    return True
            elif here and _one(here, name[at]):
                part, at = part + 1, at + 1
            elif star >= 0:
                resume += 1
                part, at = star + 1, resume
            else:
                return False
        return all(left == "*" for left in parts[part:])

    def _spend(self, work: int) -> None:
        self.work -= work
        if self.work < 0:
            raise Refused(Reason.WRONG_TYPE, "hello: these patterns take too long: use fewer, or names")


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
