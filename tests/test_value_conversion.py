"""What a person types as a type: values, ranges, words, and how the others are refused."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta

from rtmms.base.errors import ModelError
from rtmms.base.value_conversion import convert_value

Share = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(gt=0)]


@pytest.mark.parametrize(
    ("word", "hint", "value"),
    [
        ("0.5", Share, 0.5), ("3", Count, 3), ("none", float | None, None), ("2", float | None, 2.0),
        ("Yes", bool, True), ("off", bool, False), ("a+b", tuple[str, ...], ("a", "b")), ("7", int | str, 7),
        ("x", int | str, "x"), ("a=1+b=2", dict[str, float], {"a": 1.0, "b": 2.0}), ("7", Literal["a", 7], 7),
    ],
)  # fmt: skip
def test_words(word: str, hint: Any, value: Any) -> None:
    result = convert_value("place", word, hint, from_text=True)
    assert (result, type(result)) == (value, type(value))


@pytest.mark.parametrize(
    ("value", "hint", "parts", "message"),
    [
        ("2", Share, True, "place: expected a number from 0 to 1, got '2'"),
        (2, Share, False, "place: expected a number from 0 to 1, got 2"),
        ("0", Count, True, "place: expected a whole number > 0, got '0'"),
        ("inf", float, True, "place: expected a number, got 'inf'"),
        (float("nan"), float, False, "place: expected a number, got 'nan'"),
        ("3", float, False, "place: expected a number, got '3'"),
        (True, int, False, "place: expected a whole number, got True"),
        ([1.0, "x"], tuple[float, ...], False, r"place\[1\]: expected a number, got 'x'"),
        ({"a": []}, dict[str, float], False, r"place\.a: expected a number, got \[\]"),
        ("x", int | float, True, "place: expected a whole number or a number, got 'x'"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(value: Any, hint: Any, parts: bool, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        convert_value("place", value, hint, from_text=parts)
