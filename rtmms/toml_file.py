"""What a user wrote into a file: read whole, with every fault told by the file's name."""

from __future__ import annotations

import codecs
import re
import tomllib
from pathlib import Path
from typing import Any

from rtmms.errors import ModelError

LONGEST_BYTES = 1 << 22
MOST_DOTS = 32
"""In one key: tomllib's time grows with their square."""

_LONG_KEY = re.compile(r"(?<![\w\"'-])(?:[\w\"'-]+[ \t]*\.[ \t]*)" + f"{{{MOST_DOTS}}}")


def read_toml(path: str | Path) -> dict[str, Any]:
    """A TOML file's table; ModelError naming the file, and the line where it does not parse. ~ is the user's home."""
    return read_toml_and_text(path)[0]


def read_toml_and_text(path: str | Path) -> tuple[dict[str, Any], str]:
    """The same, with the text that it stands in."""
    if Path(path).expanduser().exists() and not Path(path).expanduser().is_file():  # a pipe would be waited for
        raise ModelError(f"{path}: is not a file")
    try:
        with Path(path).expanduser().open("rb") as file:
            text = file.read(LONGEST_BYTES + 1)
    except OSError as error:
        raise ModelError(f"{path}: {error.strerror}") from None
    if len(text) > LONGEST_BYTES:
        raise ModelError(f"{path}: has more than {LONGEST_BYTES >> 20} MiB, which no table that a person wrote has")
    try:
        said = text.removeprefix(codecs.BOM_UTF8).decode()
        _refuse_long_keys(said, path)
        table = tomllib.loads(said)
    except UnicodeDecodeError as error:
        what = "UTF-16" if text[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else f"byte {text[error.start]:#04x}"
        raise ModelError(f"{path}: expected text in UTF-8, got {what}") from None
    except ValueError as error:  # of the form, or a whole number of thousands of digits
        raise ModelError(f"{path}: not TOML: {error}") from None
    except RecursionError:
        raise ModelError(f"{path}: not TOML that can be read: nested too deep") from None
    _refuse_nul(table, path, "")
    return table, said


def _refuse_nul(value: Any, path: str | Path, key: str) -> None:
    """ModelError for a text with U+0000, which no name of a file, robot or parameter has and no system call takes."""
    if isinstance(value, dict):
        for name, one in value.items():
            _refuse_nul(name, path, key)
            _refuse_nul(one, path, f"{key}.{name}" if key else name)
    elif isinstance(value, list):
        for one in value:
            _refuse_nul(one, path, key)
    elif isinstance(value, str) and "\0" in value:
        raise ModelError(f"{path}: {key or 'a key'}: expected text without U+0000, got {value!r}")


def _refuse_long_keys(text: str, path: str | Path) -> None:
    """ModelError for a key of too many parts; one pass over the text."""
    found = _LONG_KEY.search(text)
    if found is not None:
        line = text.count("\n", 0, found.start()) + 1
        raise ModelError(f"{path}:{line}: expected a key of at most {MOST_DOTS} parts, got more")
