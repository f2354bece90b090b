"""A DBC file of anybody: what it announces is checked before the library allocates it."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("cantools", reason="needs cantools")

from rtmms.base.errors import ModelError
from rtmms_bridges.bus.signals import Layout, load

pytestmark = pytest.mark.full

HEAD = 'VERSION ""\nBU_: A B\n'
SIGNAL = ' SG_ s : 0|8@1+ (1,0) [0|1] "" A\n'
WRONG = {
    "a message of 10^9 bytes": ("BO_ 1 M: 1000000000 A\n" + SIGNAL, "message 'M': expected at most 1785 bytes, got 10"),
    "a message of many digits": (f"BO_ 1 M: {'9' * 5000} A\n" + SIGNAL, "message 'M': expected at most 1785 bytes"),
    "a signal of 10^9 bits": (
        'BO_ 1 M: 8 A\n SG_ s : 0|1000000000@1+ (1,0) [0|1] "" A\n', "signal 's': expected at most 14280 bits"),
    "a start at 10^9": (
        'BO_ 1 M: 8 A\n SG_ s m0 : 1000000000|8@1+ (1,0) [0|1] "" A\n', "signal 's': expected at most 14280 bits"),
    "a range of 10^9": (
        'BO_ 1 M: 8 A\n SG_ x M : 0|8@1+ (1,0) [0|1] "" A\n SG_ s m0 : 8|8@1+ (1,0) [0|1] "" A\n\n'
        "SG_MUL_VAL_ 1 s x 0-1000000000;\n", "SG_MUL_VAL_: expected at most 65536 numbers"),
    "too many words": ("( " * 1_000_001, "expected at most 1000000 words, got 10000"),
    "too many nodes": ("BU_: " + " ".join(f"n{k}" for k in range(5001)) + "\n", "expected at most 5000 nodes, got 500"),
    "too long": (" " * (4 << 20), "expected a DBC file of at most 4 MiB"),
    "brackets": ("[" * 100_000, "dbc: "),
    "nothing of the kind": ("? hello", "dbc: "),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG)
def test_what_a_file_announces_is_checked(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "x.dbc"
    file.write_text(HEAD + text)
    with pytest.raises(ModelError) as output:
        load(str(file))
    assert message in str(output.value)
    assert str(output.value).count(str(file)) <= 1


@pytest.mark.parametrize("conversion", ["(0,0)", "(1e999,0)", "(1,1e999)"])
def test_a_factor_that_no_number_can_be_divided_by(tmp_path: Path, conversion: str) -> None:
    file = tmp_path / "x.dbc"
    file.write_text(HEAD + "BO_ 1 M: 8 A\n" + SIGNAL.replace("(1,0)", conversion))
    with pytest.raises(ModelError, match=r"M\.s: expected a factor other than 0"):
        Layout(load(str(file)).messages[0], "", "", "crc8")


def test_a_folder_and_a_file_that_is_not_there(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "none.dbc"):
        with pytest.raises(ModelError, match="dbc: "):
            load(str(place))
