"""Each parser of the entry points rtmms.parsers, ours and third parties', reads frames that are almost right.

python -m pytest tests/test_parsers.py -m "" -k NAME
"""

from __future__ import annotations

from importlib.metadata import entry_points

import pytest

from tests.lines_of_python import Lines, excess
from tests.parsers import frames_near, try_parser

PARSERS = {point.name: point for point in entry_points(group="rtmms.parsers")}
FRAMES = 1000


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(PARSERS))
def test_each_parser_raises_nothing_and_does_little_for_any_frame(name: str) -> None:
    try:
        read, samples = PARSERS[name].load()()
    except ImportError as fault:  # Cyclone DDS and imcpy have no wheel for every machine
        pytest.skip(str(fault))
    assert samples
    assert len(try_parser((read, samples), FRAMES)) > 1, "frames that are almost right must at times be taken"


def test_a_parser_that_raises_is_found() -> None:
    def fragile(frame: bytes) -> str:
        if frame and b"]" not in frame:
            raise ValueError("no bracket")
        return "read"

    with pytest.raises(ValueError, match="no bracket"):
        try_parser((fragile, [b"[a]"]), 500)


def test_a_parser_whose_work_grows_with_the_square_of_its_frame_is_found() -> None:
    def sluggish(frame: bytes) -> str:
        for _ in frame:
            for _ in frame:
                pass
        return "read"

    with pytest.raises(AssertionError, match="lines for"):
        try_parser((sluggish, [b"a" * 8]), 2000)


def test_lines_are_counted_where_a_parser_raises() -> None:
    def read(frame: bytes) -> str:
        raise ValueError(frame)

    lines = Lines()
    with pytest.raises(ValueError, match="x"):
        lines.call(read, b"x")
    assert lines.count == 1
    assert excess(lines.count, 1) < 0


def test_samples_that_are_maps_are_changed_by_their_values() -> None:
    kinds = set()

    def read(frame: bytes) -> str:
        kinds.add(frame[:1])
        return "read"

    try_parser((read, [b'{"a": [1, 2, {"b": 3}]}']), 300)
    assert b"{" in kinds
    assert frames_near([b""]) is not None
