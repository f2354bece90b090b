"""Files of a user in TOML: read whole, with the file's name in every error."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from rtmms.base.errors import ModelError, safe_text
from rtmms.base.files import read_input_text

MAX_TOML_BYTES = 1 << 22
EXPECTED = "a TOML file"
MAX_DOTS = 32
"""Most dots in one key, because tomllib's time grows with their square."""

_LONG_KEY = re.compile(r"(?<![\w\"'-])(?:[\w\"'-]+[ \t]*\.[ \t]*)" + f"{{{MAX_DOTS}}}")


def read_toml(path: str | Path, place: str = "") -> dict[str, Any]:
    """Return the table of a TOML file.

    Parameters
    ----------
    path : str | Path
        The file; ~ is the user's home.
    place : str, default ''
        Source of the file's name, for the error: "--preset".

    Returns
    -------
    dict[str, Any]
        The table.

    Raises
    ------
    ModelError
        If it cannot be read; it names the file, and the line if it does not parse.
    """
    return read_toml_and_text(path, place)[0]


def read_toml_and_text(path: str | Path, place: str = "") -> tuple[dict[str, Any], str]:
    """Return the table and the text of a TOML file.

    Parameters
    ----------
    path : str | Path
        The file; ~ is the user's home.
    place : str, default ''
        Source of the file's name, for the error.

    Returns
    -------
    tuple[dict[str, Any], str]
        Table and text.

    Raises
    ------
    ModelError
        As `read_toml` raises it.
    """
    where = f"{place} {path}".lstrip()
    content = read_input_text(Path(path).expanduser(), place=place, max_bytes=MAX_TOML_BYTES, expected=EXPECTED)
    try:
        _refuse_long_keys(content, where)
        table = tomllib.loads(content)
    except ValueError as error:  # of the form, or a whole number of thousands of digits
        raise ModelError(f"{where}: not TOML: {error}") from None
    except RecursionError:
        raise ModelError(f"{where}: expected TOML with fewer nested tables, got one that is nested too deep") from None
    _refuse_nul(table, where, "")
    return table, content


_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPED = re.compile(r'[\x00-\x1f"\\\x7f-\x9f\ud800-\udfff\u2028\u2029]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def toml_text(text: str) -> str:
    """Return a text in TOML, in quotation marks and on one line.

    Parameters
    ----------
    text : str
        The text.

    Returns
    -------
    str
        The TOML.
    """
    return '"' + _ESCAPED.sub(lambda match: _escape(match[0]), text) + '"'


def _escape(character: str) -> str:
    """Return a character as an escape; U+FFFD for half of a surrogate pair, which TOML does not have."""
    if "\ud800" <= character <= "\udfff":
        return "\ufffd"
    return _SHORT.get(character, f"\\u{ord(character):04x}")


def toml_key(key: str) -> str:
    """Return a key in TOML, bare if possible.

    Parameters
    ----------
    key : str
        The key.

    Returns
    -------
    str
        The TOML.

    Examples
    --------
    >>> toml_key("depth m")
    '"depth m"'
    """
    return key if _BARE_KEY.fullmatch(key) else toml_text(key)


def toml_comment(text: str) -> str:
    """Return a comment of one line; characters that would end the line are spelled out.

    Parameters
    ----------
    text : str
        The text.

    Returns
    -------
    str
        The TOML.
    """
    return "# " + safe_text(text).encode("utf-8", "backslashreplace").decode()


def toml_value(value: Any) -> str:
    """Return a value in TOML.

    Parameters
    ----------
    value : Any
        A truth value, number, text, list, or table of these.

    Returns
    -------
    str
        The TOML.

    Examples
    --------
    >>> toml_value([1, True, "a"])
    '[1, true, "a"]'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    if isinstance(value, dict):
        inner = ", ".join(f"{toml_key(str(key))} = {toml_value(item)}" for key, item in value.items())
        return "{ " + inner + " }" if inner else "{}"
    if isinstance(value, float):
        return repr(float(value))
    return str(int(value)) if isinstance(value, int) else toml_text(str(value))


def _refuse_nul(value: Any, path: str | Path, key: str) -> None:
    """Raise ModelError for a text with U+0000, which no name has and no system call accepts."""
    if isinstance(value, dict):
        for name, item in value.items():
            _refuse_nul(name, path, key)
            _refuse_nul(item, path, f"{key}.{name}" if key else name)
    elif isinstance(value, list):
        for item in value:
            _refuse_nul(item, path, key)
    elif isinstance(value, str) and "\0" in value:
        raise ModelError(f"{path}: {key or 'a key'}: expected text without U+0000, got {value!r}")


def _refuse_long_keys(text: str, path: str | Path) -> None:
    """Raise ModelError for a key of too many parts, after one pass over the text."""
    match = _LONG_KEY.search(text)
    if match is not None:
        line = text.count("\n", 0, match.start()) + 1
        raise ModelError(f"{path}:{line}: expected a key of at most {MAX_DOTS} parts between dots, got more")
