"""Parsers with faults that a fuzzer must find."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

Parser = tuple[Callable[[bytes], object], list[bytes]]
SAMPLES = [b'{"a": 1, "b": [1, 2, 3]}']


def fragile() -> Parser:
    """Raises at a frame with a certain byte."""

    def read(frame: bytes) -> str:
        if b"]" not in frame:
            raise ValueError("no bracket")
        return "read"

    return read, SAMPLES


def sluggish() -> Parser:
    """Looks at each byte as often as there are brackets: too often only for a frame that is made of them."""

    def read(frame: bytes) -> str:
        seen = 0
        for _ in range(frame[:200].count(b"]")):
            for _ in frame[:200]:
                seen += 1
        return "read"

    return read, [b"a sample with []" * 4]


def fatal() -> Parser:
    """Takes the process along at an empty frame."""

    def read(frame: bytes) -> None:
        if not frame:
            os._exit(7)

    return read, SAMPLES


def endless() -> Parser:
    """Never comes back from a long frame."""

    def read(frame: bytes) -> None:
        while len(frame) > 30:
            time.sleep(0.01)

    return read, SAMPLES


def nothing() -> tuple[None, list[bytes]]:
    """No parser at all."""
    return None, []


def unequipped() -> Parser:
    """Of an extra that is not installed."""
    import a_module_that_nobody_has  # type: ignore[import-not-found]

    return a_module_that_nobody_has.read, SAMPLES
