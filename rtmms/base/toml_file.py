"""What a user wrote into a file: read whole, with every fault reported by the file's name."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from rtmms.base.errors import ModelError, shown
from rtmms.base.files import read_input_text

MAX_BYTES = 1 << 22
EXPECTED = "a TOML file"
MAX_DOTS = 32
"""In one key: tomllib's time grows with their square."""

_LONG_KEY = re.compile(r"(?<![\w\"'-])(?:[\w\"'-]+[ \t]*\.[ \t]*)" + f"{{{MAX_DOTS}}}")


def read_toml(path: str | Path, place: str = "") -> dict[str, Any]:
    """A TOML file's table; ModelError naming the file, and the line where it does not parse. ~ is the user's home.

    place   what the user named the file by, for the error: "--preset"
    """
    return read_toml_and_text(path, place)[0]


def read_toml_and_text(path: str | Path, place: str = "") -> tuple[dict[str, Any], str]:
    """The same, with the text that it stands in."""
    where = f"{place} {path}".lstrip()
    content = read_input_text(Path(path).expanduser(), place=place, max_bytes=MAX_BYTES, expected=EXPECTED)
    try:
        _refuse_long_keys(content, where)
        table = tomllib.loads(content)
    except ValueError as error:  # of the form, or a whole number of thousands of digits
        raise ModelError(f"{where}: not TOML: {error}") from None
    except RecursionError:
        raise ModelError(f"{where}: not TOML that can be read: nested too deep") from None
    _refuse_nul(table, where, "")
    return table, content


_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPED = re.compile(r'[\x00-\x1f"\\\x7f-\x9f\ud800-\udfff\u2028\u2029]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def toml_text(text: str) -> str:
    """Return a text as TOML has it, in quotation marks and on one line."""
    return '"' + _ESCAPED.sub(lambda found: _escape(found[0]), text) + '"'


def _escape(character: str) -> str:
    """Return a character as an escape; U+FFFD for half of a surrogate pair, which TOML does not have."""
    if "\ud800" <= character <= "\udfff":
        return "\ufffd"
    return _SHORT.get(character, f"\\u{ord(character):04x}")


def toml_key(key: str) -> str:
    """Return a key as TOML has it: bare where it can be."""
    return key if _BARE_KEY.fullmatch(key) else toml_text(key)


def toml_comment(text: str) -> str:
    """Return a comment of one line, whatever is in the text: what would end the line is spelled out."""
    return "# " + shown(text).encode("utf-8", "backslashreplace").decode()


def toml_value(value: Any) -> str:
    """Return a value as TOML has it: truth values, numbers, text, lists, and tables of these."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml_value(one) for one in value) + "]"
    if isinstance(value, dict):
        inner = ", ".join(f"{toml_key(str(key))} = {toml_value(one)}" for key, one in value.items())
        return "{ " + inner + " }" if inner else "{}"
    if isinstance(value, float):
        return repr(float(value))
    return str(int(value)) if isinstance(value, int) else toml_text(str(value))


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
        raise ModelError(f"{path}:{line}: expected a key of at most {MAX_DOTS} parts, got more")
