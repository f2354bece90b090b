"""Patterns of names: as fnmatch has them, at a cost that is bounded."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rtmms.wire.plant.state_message import MAX_PEERS_WORK, MAX_STRANGERS_WORK, PatternMatcher
from rtmms.wire.protocol.limits import MAX_PATTERN_LENGTH, MAX_PATTERNS
from rtmms.wire.protocol.messages import Refusal

parts = st.sampled_from(["a", "b", ".", "*", "?", "[ab]", "[!a]", "[a-c.]", "[", "]", "[]a]"])
NAMES = ("left.front", "left.back", "right.front", "right.back", "velocity", "joint_angle")


@given(st.lists(parts, min_size=1, max_size=7).map("".join), st.text("abc.[]!-", max_size=7))
@example("*a*b", "aabab")
@example("a*", "")
def test_it_does_what_fnmatch_does(pattern: str, name: str) -> None:
    assert PatternMatcher().matched(pattern, [name]) == [name] * fnmatchcase(name, pattern)


def test_names_come_in_their_order() -> None:
    assert PatternMatcher().matched("*front", NAMES) == ["left.front", "right.front"]
    assert PatternMatcher().matched("velocity", NAMES) == ["velocity"]
    assert PatternMatcher().matched("none", NAMES) == []


MANTA = tuple(f"{side}.{what}_{k}" for side in ("left", "right") for what in ("position", "thrust") for k in range(8))


@pytest.mark.parametrize(
    "patterns", [("*",), MANTA, ("pos*", "*.thrust_0"), ("*thrust*", "left.*"), ("velocity", "joint_angle", "*.front")]
)
def test_what_a_display_asks_for_is_within_the_strangers_budget(patterns: tuple[str, ...]) -> None:
    strangers = PatternMatcher(MAX_STRANGERS_WORK)
    assert any(strangers.matched(pattern, (*NAMES, *MANTA)) for pattern in patterns)
    assert MAX_STRANGERS_WORK <= 150  # some 50 us


@pytest.mark.parametrize("pattern", ["*a*", "*e*e*e*t", "*f" * 64, "[!z]" * 32, "*[" + "z" * 124 + "]*", "?" * 128])
def test_the_work_of_many_is_bounded_and_that_of_a_few_is_enough(pattern: str) -> None:
    assert len(pattern) <= MAX_PATTERN_LENGTH
    strangers = PatternMatcher(MAX_STRANGERS_WORK)
    strangers.matched("velocity", NAMES)
    strangers.matched("left.*", NAMES)

    def match_many(matching: PatternMatcher, times: int) -> None:
        for _ in range(times):
            matching.matched(pattern, NAMES)

    with pytest.raises(Refusal, match="take too long"):
        match_many(strangers, 4 * MAX_PATTERNS)
    peers = PatternMatcher(MAX_PEERS_WORK)
    match_many(peers, 16)
    assert peers.work >= 0
