"""Which outputs a peer gets: by default, by patterns, none, and the truth that sensors hide."""

from __future__ import annotations

import pytest

from rtmms.plant.protocol import Channel
from rtmms.wire.plant.state_message import select
from rtmms.wire.protocol.messages import Refusal

OUTPUTS = (
    Channel("imu.gyro", shape=(3,)), Channel("depth"), Channel("joints", shape=(2, 3, 4)),
    Channel("truth.depth"), Channel("truth.joints", shape=(2, 3, 4)),
)  # fmt: skip


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        ((), ["imu.gyro", "depth"]),
        (("none",), []),
        (("*",), ["imu.gyro", "depth", "joints"]),
        (("*depth",), ["depth"]),
        (("truth.*",), ["truth.depth", "truth.joints"]),
        (("truth.depth", "depth"), ["depth", "truth.depth"]),
    ],
)
def test_the_truth_goes_only_to_those_who_ask_for_it(patterns: tuple[str, ...], names: list[str]) -> None:
    assert [channel.name for channel in select(OUTPUTS, patterns)] == names


@pytest.mark.parametrize("patterns", [("*uth.depth",), ("position",), ("none", "position")])
def test_a_pattern_that_matches_nothing_is_refused(patterns: tuple[str, ...]) -> None:
    with pytest.raises(Refusal, match="unknown output"):
        select(OUTPUTS, patterns)


def test_who_reads_the_truth_of_a_plant_with_sensors_learns_why_it_is_refused() -> None:
    with pytest.raises(Refusal, match=r"unknown output 'joints'.*has sensors: its true values are truth\.NAME"):
        select((Channel("truth.joints"), Channel("depth")), ("joints",))
