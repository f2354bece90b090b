"""Docstrings on the site: columns become lists, and what is no column stays."""

from __future__ import annotations

import runpy
from inspect import getdoc
from pathlib import Path

import pytest

import rtmms

pytest.importorskip("griffe", reason="needs pip install 'rtmms[docs]'")

pytestmark = pytest.mark.full
formatted = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "site" / "docstrings.py"))["formatted"]


def test_columns_become_a_list() -> None:
    text = """What it is.

a_m       one thing
          that goes on
b         two;  c  three
longname1 a name that fills its column
d_m, e_m, f_m
          of a line of its own
Raises nothing."""
    assert formatted(text).splitlines() == [
        "What it is.", "", "- `a_m` one thing that goes on", "- `b` two", "- `c` three",
        "- `longname1` a name that fills its column", "- `d_m, e_m, f_m` of a line of its own", "", "Raises nothing.",
    ]  # fmt: skip


def test_what_has_no_columns_stays_as_it_is() -> None:
    text = "One sentence.  Another one.\n\n    code = 1\n\nAn end."
    assert formatted(text) == text


def test_the_face_of_the_package_reads_as_lists() -> None:
    message = formatted(getdoc(rtmms.Controller))
    assert all(f"\n- `{name}` " in message for name in ("claim", "outputs", "setpoints", "tunable_parameters"))
