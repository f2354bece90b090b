"""The words of `rtmms bench`."""

from __future__ import annotations

import pytest

from rtmms.cli.bench import _choices, _read
from rtmms.errors import ModelError


def _benchmark(as_json: bool, frames: int = 10, duration: float = 1.5, what: str = "", slow: bool = False) -> int:
    return 0


def test_parameters_with_defaults_are_options_of_their_type() -> None:
    words = ["--frames", "20", "--duration=3", "--slow", "--what", "codec"]
    assert _read("x", words, _choices(_benchmark)) == {"frames": 20, "duration": 3.0, "slow": True, "what": "codec"}
    assert _read("x", [], _choices(_benchmark)) == {}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--frame", "3"], "did you mean --frames"),
        (["frames"], "unknown option of bench x 'frames'"),
        (["--frames"], "--frames needs a value"),
        (["--frames", "2.5"], "expected a whole number, got '2.5'"),
        (["--frames", "-1"], "expected a number >= 0"),
        (["--duration", "nan"], "expected a number >= 0"),
        (["--slow=perhaps"], "expected true or false, got 'perhaps'"),
    ],
)
def test_other_words_are_refused(words: list[str], said: str) -> None:
    with pytest.raises(ModelError, match=said):
        _read("x", words, _choices(_benchmark))
