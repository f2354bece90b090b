"""A Python file that a user named: FILE.py or FILE.py:NAME, in place of something that is installed."""

from __future__ import annotations

import importlib.util
import re
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from rtmms.errors import ModelError, UnknownNameError
from rtmms.trust import is_library, refuse_library, refuse_unnamed

_OURS = Path(__file__).resolve().parent
_FORM = re.compile(
    r"(?P<file>(?:[A-Za-z]:)?[^:]+?\.py)(?::(?P<name>[A-Za-z_]\w*)(?=:|$))?(?::(?P<rest>.*))?", re.DOTALL
)


def split_word(word: str) -> tuple[str, str]:
    """'FILE.py:NAME:rest' -> ('FILE.py:NAME', 'rest'), 'name:rest' -> ('name', 'rest'); a missing part is ''."""
    form = _FORM.fullmatch(word)
    if form is None:
        name, _, rest = word.partition(":")
        return name, rest
    name = form["file"] if form["name"] is None else f"{form['file']}:{form['name']}"
    return name, form["rest"] or ""


def is_file(name: str) -> bool:
    """It is of the form FILE.py or FILE.py:NAME."""
    return _FORM.fullmatch(name) is not None


def called(name: str) -> str:
    """What to call it: of a file, its name without folder and ending."""
    form = _FORM.fullmatch(name)
    return name if form is None else Path(form["file"]).stem


def told_robot(word: str) -> str:
    """Of several robots on one clock the one that a controller's words name (robot=NAME); '' for none."""
    parts = [part.partition("=") for part in split_word(word)[1].split(",")]
    found = [value.strip() for key, _, value in parts if key.strip() == "robot"]
    return found[-1] if found else ""


def peer_name(word: str) -> str:
    """What a controller of these words is called on the wire: of one of several robots ROBOT.NAME."""
    name, robot = called(split_word(word)[0]), told_robot(word)
    return f"{robot}.{name}" if robot else name


def owner_of(key: str, names: Iterable[str]) -> str:
    """Whose parameter 'NAME.parameter' is: the longest name that it begins with; '' for none."""
    return max((name for name in names if key.startswith(name + ".")), key=len, default="")


def path_of(kind: str, name: str) -> Path:
    """The file that is named; ModelError if there is none."""
    form = _FORM.fullmatch(name)
    assert form is not None
    path = Path(form["file"]).expanduser()
    if not path.is_file():
        raise ModelError(f"{kind} '{name}': there is no file '{path}'")
    return path


def load_named(kind: str, name: str, fits: Callable[[Any], bool], expected: str) -> Any:
    """What FILE.py:NAME names, or of FILE.py the one thing in it that fits.

    fits       of an object defined there;  expected: what that is, for a person
    ModelError where the file cannot be run, with the line, and where it holds nothing or several that fit.
    """
    form = _FORM.fullmatch(name)
    assert form is not None
    path = path_of(kind, name)
    module = run_file(kind, name)
    own = {key: value for key, value in vars(module).items() if not key.startswith("_")}
    if form["name"] is not None:
        if not hasattr(module, form["name"]):
            raise UnknownNameError(f"{kind} of {path}", form["name"], own)
        found = getattr(module, form["name"])
        if not fits(found):
            raise ModelError(f"{kind} '{name}': expected {expected}, got {type(found).__name__}")
        return found
    fitting = {
        key: value for key, value in own.items() if fits(value) and getattr(value, "__module__", "") == module.__name__
    }
    if len(fitting) != 1:
        why = (
            f"has {', '.join(sorted(fitting))}: say which, as {path}:NAME" if fitting else f"has none: write {expected}"
        )
        raise ModelError(f"{kind} '{name}': {path} {why}")
    return next(iter(fitting.values()))


def run_file(kind: str, name: str) -> ModuleType:
    """The module that FILE.py or FILE.py:NAME makes when it is run; ModelError with the line where it
    cannot be, and for a file of a library.

    Its folder becomes a place to import from, the last one that is looked at: the user named a file in it."""
    path = path_of(kind, name)
    refuse_unnamed(path, f"{kind} '{name}'")
    refuse_library(path, f"{kind} '{name}'")
    place = str(path.resolve())
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)
    spec = importlib.util.spec_from_file_location(path.stem if path.stem.isidentifier() else "user_file", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(spec.name)
    sys.modules[spec.name] = module  # dataclasses look their own module up
    try:
        spec.loader.exec_module(module)
    except Exception as fault:  # whatever a user's file does when it is run
        if before is not None:
            sys.modules[spec.name] = before
        raise ModelError(f"{kind} '{name}': {told(fault, place)}") from fault
    return module


def own_lines(fault: BaseException) -> tuple[str, str]:
    """(a traceback without rtmms's own lines, 'FILE.py, line N' of the user's last one) of what a plug-in raised.

    Where no line is a user's, all of them: the fault is ours."""
    every = traceback.extract_tb(fault.__traceback__)
    frames = [frame for frame in every if not Path(frame.filename).is_relative_to(_OURS)] or every
    own = [frame for frame in frames if not is_library(frame.filename)] or frames
    text = "".join(["Traceback (most recent call last):\n", *traceback.format_list(frames)])
    text += "".join(traceback.format_exception_only(fault))
    return text.rstrip(), f"{Path(own[-1].filename).name}, line {own[-1].lineno}"


def told(fault: Exception, place: str) -> str:
    """What went wrong, and the last line of the file that was running.  place: its path, resolved."""
    if isinstance(fault, SyntaxError) and fault.lineno is not None:
        return f"{fault.filename}, line {fault.lineno}: {type(fault).__name__}: {fault.msg}"
    lines = [frame.lineno for frame in traceback.extract_tb(fault.__traceback__) if frame.filename == place]
    where = f"{place}, line {lines[-1]}" if lines else place
    return f"{where}: {type(fault).__name__}: {fault}"
