"""The names of the figures of a paper or a gait: in which format they are written, as the command line has it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from rtmms.whole_file import KINDS, refuse_output

FORMATS = ("png", "pdf", "svg")

_CHOSEN: ContextVar[str] = ContextVar("format of figures", default=FORMATS[0])


@contextmanager
def written_as(form: str) -> Iterator[None]:
    """Within: figures are written in this format, one of FORMATS."""
    token = _CHOSEN.set(form)
    try:
        yield
    finally:
        _CHOSEN.reset(token)


def figure_file(folder: Path, name: str) -> Path:
    """Where a figure of that name goes; ModelError where a file of another kind would be lost."""
    path = folder / f"{name}.{_CHOSEN.get()}"
    refuse_output(path, "-o", KINDS[path.suffix])
    return path
