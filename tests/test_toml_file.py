"""Files that a stranger wrote: read in a time that grows with their length, or refused in a sentence."""

from __future__ import annotations

import time
import tomllib
from pathlib import Path

import pytest

from rtmms.base.errors import ModelError
from rtmms.base.toml_file import MAX_DOTS, MAX_TOML_BYTES, read_toml, toml_comment, toml_key, toml_text, toml_value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = 1\n" + ".".join(["a"] * 50_000) + " = 1\n", r"bad\.toml:2: expected a key of at most 32 parts"),
        ("[" + ".".join(["a"] * 50_000) + "]\n", r"bad\.toml:1: expected a key"),
        ("x = {" + " . ".join(["'a'"] * 50_000) + " = 1}\n", r"bad\.toml:1: expected a key"),
        ("seed = " + "9" * 10_000 + "\n", r"bad\.toml: not TOML: Exceeds the limit"),
        ('[a]\nlog = ["b", "c\\u0000d"]\n', r"bad\.toml: a\.log: expected text without U\+0000, got 'c\\x00d'"),
        ("x = " + "[" * 100_000 + "]" * 100_000, "nested too deep"),
    ],
)
def test_what_would_take_long_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(ModelError, match=message):
        read_toml(tmp_path / "bad.toml")


def test_what_people_write_is_read(tmp_path: Path) -> None:
    numbers = [0.25 * k for k in range(100)]
    text = f"x = {numbers}\ny = '{'a sentence. ' * 40}'\n{'.'.join(['a'] * MAX_DOTS)} = 1.5\n"
    (tmp_path / "good.toml").write_text(text)
    assert read_toml(tmp_path / "good.toml")["x"] == numbers


def test_files_of_other_editors_are_read_or_distinguished_from_damage(tmp_path: Path) -> None:
    path = tmp_path / "some.toml"
    path.write_text("x = 1\n", encoding="utf-8-sig")
    assert read_toml(path) == {"x": 1}
    path.write_text("x = 1\n", encoding="utf-16")
    with pytest.raises(ModelError, match=r"some\.toml: expected text in UTF-8, got UTF-16"):
        read_toml(path)
    path.write_bytes(b"x = '\xe4'\n")
    with pytest.raises(ModelError, match="expected text in UTF-8, got byte 0xe4"):
        read_toml(path)


def test_the_search_for_long_keys_is_one_pass(tmp_path: Path) -> None:
    took = []
    for size in (MAX_TOML_BYTES // 64, MAX_TOML_BYTES // 8):
        (tmp_path / "long.toml").write_text(f"x = '{'a' * size}'\n")
        before = time.process_time()
        read_toml(tmp_path / "long.toml")
        took.append(time.process_time() - before)
    assert took[1] < 0.5 + 16.0 * took[0]  # a square would take minutes


TEXTS = [
    "",
    "plain",
    'with " and \\',
    "line\nx = 1",
    "\r\t\0\x07\x7f\x85\u2028",
    "ä 😀",
    "a.b",
    "[x]",
    "# no comment",
    "'",
]


@pytest.mark.parametrize("text", TEXTS)
def test_text_is_written_as_one_value_whatever_is_in_it(text: str) -> None:
    value = {text: [text, 1, 0.1, True, {text: text}], "x": {}}
    lines = "".join(f"{toml_key(key)} = {toml_value(item)}  {toml_comment(text)}\n" for key, item in value.items())
    assert tomllib.loads(lines) == value
    assert lines.count("\n") == 2


def test_half_of_a_character_is_replaced() -> None:
    assert tomllib.loads(f"x = {toml_text(chr(0xD800) + 'a')}  {toml_comment(chr(0xDCFF))}") == {"x": "\ufffda"}
