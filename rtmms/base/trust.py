"""Files that may run as code: which data may name them, who can have written them, and how they are run."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import site
import stat
import sys
import sysconfig
import traceback
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.files import read_input

# Which files may run as code.
#
# A file runs as code where the user named it, or where it lies below the scenario that the user named. The user names a
# file on the command line, or in a program of their own that calls `rtmms.load` or `rtmms.World`. What only a log, a
# scenario, a study, or a message names is refused by `refuse_unnamed`, where the file is opened. Files of libraries,
# and files that others can have written, are refused as well.


@dataclass(frozen=True)
class NamesFile:
    """Metadata of a parameter with a file's name as its text: `cert: Annotated[str, NamesFile("input")]`.

    Parameters
    ----------
    kind : Literal['code', 'input', 'output', 'device']
        "code": the program runs the file. "input": it reads the file. "output": it writes the file. "device": it opens
        a device of the machine, for example a serial port.
    """

    kind: Literal["code", "input", "output", "device"]


def file_parameters(hints: dict[str, Any]) -> dict[str, str]:
    """Return the parameters that name files, each with its kind.

    Parameters
    ----------
    hints : dict[str, Any]
        Types of parameters by name, with their metadata (`typing.get_type_hints(..., include_extras=True)`).

    Returns
    -------
    dict[str, str]
        Kind of file by parameter. A union or a tuple names a file if one of its parts does.
    """
    result = {name: _file_kind(hint) for name, hint in hints.items()}
    return {name: kind for name, kind in result.items() if kind}


def _file_kind(hint: Any) -> str:
    for item in getattr(hint, "__metadata__", ()):
        if isinstance(item, NamesFile):
            return item.kind
    return next((kind for part in typing.get_args(hint) if (kind := _file_kind(part))), "")


VARIABLE = "RTMMS_CODE"
"""Environment variable with the files that may run: a JSON list of absolute paths.

For a folder, with a path that ends in /, all files below it may run. A process without the variable is a program of the
user's own, which may run any file. Children inherit the variable.
"""

_DELIMITERS = re.compile(r"""[\s,:;=+|"'()\[\]{}]""")


@dataclass(frozen=True)
class _RequestSource:
    """Source of a request to run a file.

    Parameters
    ----------
    data : str, default ''
        Data that names the file; empty for a program of the user's own.
    remedy : str, default ''
        How the user permits the file, for the message.
    named : frozenset[Path], optional
        Files that the user named in addition to the data.
    trusted : bool, default False
        Whether the user permits each file of their own that the data names.
    listed : str | None, optional
        Replacement of the environment variable's text.
    """

    data: str = ""
    remedy: str = ""
    named: frozenset[Path] = frozenset()
    trusted: bool = False
    listed: str | None = None


_asker: ContextVar[_RequestSource | None] = ContextVar("_asker", default=None)


def refuse_unnamed(path: Path | str, place: str) -> None:
    """Refuse a file that would run as code and that the user did not name.

    Every run of such a file passes this check.

    Parameters
    ----------
    path : Path | str
        The file.
    place : str
        Source of the file's name, for the message: "controller 'mine.py'".

    Raises
    ------
    ModelError
        If it is refused. The message has the place, the file, and how the user can permit it.
    """
    asker, listed = _asker.get(), os.environ.get(VARIABLE)
    if asker is not None and not asker.data:
        return
    if asker is None and listed is None:
        return
    result = Path(path).expanduser().resolve()
    if asker is not None and asker.trusted:
        refuse_foreign_code(result, place)
        return
    files, folders = _listed(listed if asker is None or asker.listed is None else asker.listed)
    if result in files or (asker is not None and result in asker.named):
        return
    if any(result.is_relative_to(folder) for folder in folders):
        refuse_foreign_code(result, place)
        return
    source = asker.data if asker is not None else "data"
    remedy = asker.remedy if asker is not None else "name the file on the command line"
    extra = " or below the scenario" if folders else ""
    raise ModelError(
        f"{place}: '{path}' would run as code: expected a file that you name{extra}, got one that only {source} names. "
        f"If you trust it, {remedy}"
    )


def _listed(text: str | None) -> tuple[set[Path], list[Path]]:
    """Return files and folders of the environment variable; nothing if it is damaged."""
    try:
        result = json.loads(text) if text else []
    except ValueError:
        result = []
    named = [item for item in result if isinstance(item, str)] if isinstance(result, list) else []
    return {Path(item) for item in named if not item.endswith("/")}, [
        Path(item) for item in named if item.endswith("/")
    ]


@contextmanager
def named_on_command_line(arguments: Sequence[str], trust_all: bool = False) -> Iterator[None]:
    """Let this process and its children run the files that these arguments name, and no other ones.

    A process that has the environment variable is a child. Its arguments may come from a scenario, and its parent
    decided already.

    Parameters
    ----------
    arguments : Sequence[str]
        Arguments of the command line.
    trust_all : bool, default False
        Whether the user declared trust in the data (`--trust-log`): each file of theirs may run.

    Yields
    ------
    None
        Nothing.
    """
    if VARIABLE in os.environ:
        yield
        return
    named = sorted({str(file) for argument in arguments for file in _files_in(argument)})
    os.environ[VARIABLE] = json.dumps(["/", *named] if trust_all else named)
    try:
        yield
    finally:
        os.environ.pop(VARIABLE, None)


def permit_below(folder: Path) -> None:
    """Let this process and its children run this user's files in the folder of a scenario that the user named.

    Parameters
    ----------
    folder : Path
        The folder.
    """
    if VARIABLE not in os.environ:
        return
    files, folders = _listed(os.environ[VARIABLE])
    place = folder.resolve()
    whole = [*sorted(map(str, files)), *(f"{str(item).rstrip('/')}/" for item in {*folders, place})]
    os.environ[VARIABLE] = json.dumps(whole)


def _files_in(argument: str) -> Iterator[Path]:
    """Yield every file that a part of an argument names; a part is between delimiters or the argument's ends."""
    if "\0" in argument or "." not in argument:
        return
    cuts = [match.start() for match in _DELIMITERS.finditer(argument)]
    starts, ends = [0, *(cut + 1 for cut in cuts)], [*cuts, len(argument)]
    for start in starts:
        for end in ends:
            part = argument[start:end]
            if "." not in part:
                continue
            try:
                path = Path(part).expanduser()
                if path.is_file():
                    yield path.resolve()
            except (OSError, RuntimeError, ValueError):  # too long, or a home that nobody has
                continue


def permitted_files() -> str | None:
    """Return the permitted files, for `asked_by_process` in a process that does not inherit its environment.

    Returns
    -------
    str | None
        Text of the variable; None without it.
    """
    return os.environ.get(VARIABLE)


@contextmanager
def asked_by_process(permitted: str | None) -> Iterator[None]:
    """Work for another process: the files run that may run there.

    Parameters
    ----------
    permitted : str | None
        Result of its `permitted_files`.

    Yields
    ------
    None
        Nothing.
    """
    if permitted is None:
        yield
        return
    token = _asker.set(_RequestSource("data", "name the file on the command line", listed=permitted))
    try:
        yield
    finally:
        _asker.reset(token)


@contextmanager
def asked_by_program() -> Iterator[None]:
    """Work for a program of the user's own, which may run any file.

    Yields
    ------
    None
        Nothing.
    """
    token = _asker.set(_RequestSource())
    try:
        yield
    finally:
        _asker.reset(token)


@contextmanager
def asked_by_data(data: str, remedy: str, *, named: Sequence[str] = (), trusted: bool = False) -> Iterator[None]:
    """Work for data: the files run that the user named, and with `trusted` each file of the user's own.

    Parameters
    ----------
    data : str
        Name of the data, for messages: "the log".
    remedy : str
        How the user permits a file, for messages.
    named : Sequence[str], optional
        Texts of the user, in addition to the data, that may name files.
    trusted : bool, default False
        Whether the user declared that the data is theirs.

    Yields
    ------
    None
        Nothing.
    """
    files = frozenset(file for item in named for file in _files_in(item))
    token = _asker.set(_RequestSource(data, remedy, files, trusted))
    try:
        yield
    finally:
        _asker.reset(token)


def exposure(path: Path | str) -> str:
    """Return why others than this user and root can have written a file, link or folder.

    A group that is this user's alone counts as the user.

    Parameters
    ----------
    path : Path | str
        The path.

    Returns
    -------
    str
        The reason; empty if they cannot.

    Raises
    ------
    FileNotFoundError
        If there is no such path.
    """
    if not hasattr(os, "geteuid"):
        return ""
    result = os.lstat(path)
    if result.st_uid not in (0, os.geteuid()):
        return f"'{path}' belongs to another user (uid {result.st_uid})"
    sticky = stat.S_ISDIR(result.st_mode) and result.st_mode & stat.S_ISVTX
    if stat.S_ISLNK(result.st_mode) or sticky:
        return ""
    mode = f"mode {stat.S_IMODE(result.st_mode):04o}"
    if result.st_mode & stat.S_IWOTH:
        return f"'{path}' can be written by everybody ({mode})"
    if result.st_mode & stat.S_IWGRP and not _own_group(result.st_gid):
        return f"'{path}' can be written by a group (gid {result.st_gid}, {mode})"
    return ""


def exposed_way(path: Path) -> str:
    """Return the same for a file and all folders on the way to it, in which it could be replaced.

    Parameters
    ----------
    path : Path
        The path.

    Returns
    -------
    str
        The reason; empty if there is none.
    """
    place = path.resolve()
    return next((why for item in (place, *place.parents) if item.exists() and (why := exposure(item))), "")


def _own_group(gid: int) -> bool:
    """Return whether only this user and root are in a group: root's own, or one of the user's name without others."""
    if gid == 0:
        return True
    import grp
    import pwd

    try:
        group, name = grp.getgrgid(gid), pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return False
    return group.gr_name == name and set(group.gr_mem) <= {name}


def refuse_foreign_code(path: Path, place: str) -> None:
    """Raise ModelError if others can have written a file that would run as code.

    Parameters
    ----------
    path : Path
        The file. A missing file passes; the loader reports it.
    place : str
        Source of the file's name, for the message.

    Raises
    ------
    ModelError
        If they can.
    """
    why = exposed_way(path) if path.is_file() else ""
    if why:
        raise ModelError(f"{place}: this file would run as code, but {why}; expected a file that only you can write")


def refuse_library(path: Path, place: str) -> None:
    """Raise ModelError for a file of rtmms, of Python's standard library or of an installed package.

    It is no user's plant, controller or cost, whatever callables it has.

    Parameters
    ----------
    path : Path
        The file.
    place : str
        Source of the file's name, for the message.

    Raises
    ------
    ModelError
        If it is such a file.
    """
    result = path.resolve()
    for folder, owner in _libraries():
        if result.is_relative_to(folder):
            raise ModelError(f"{place}: '{path}' belongs to {owner}; expected a file of your own")


def is_library(file: str) -> bool:
    """Return whether a file is of rtmms, of Python's standard library (frozen modules too), or of an installed package.

    Parameters
    ----------
    file : str
        Name of the file.

    Returns
    -------
    bool
        True if it is.
    """
    path = Path(file)
    return file.startswith("<") or any(path.is_relative_to(folder) for folder, _ in _libraries())


def _libraries() -> list[tuple[Path, str]]:
    paths = sysconfig.get_paths()
    installed = [paths["purelib"], paths["platlib"], site.getusersitepackages()]
    installed += site.getsitepackages() if hasattr(site, "getsitepackages") else []
    standard = [paths["stdlib"], paths["platstdlib"], os.path.dirname(os.__file__)]
    return [
        (Path(__file__).resolve().parent.parent, "rtmms"),
        *((Path(item).resolve(), "an installed package") for item in installed),
        *((Path(item).resolve(), "Python's standard library") for item in standard),
    ]


# A Python file that a user named: FILE.py or FILE.py:NAME, in place of something that is installed.


_OURS = Path(__file__).resolve().parent.parent
_FORM = re.compile(
    r"(?P<file>(?:[A-Za-z]:)?[^:]+?\.py)(?::(?P<name>[A-Za-z_]\w*)(?=:|$))?(?::(?P<rest>.*))?", re.DOTALL
)


def split_word(word: str) -> tuple[str, str]:
    """Return name and rest: 'FILE.py:NAME:rest' -> ('FILE.py:NAME', 'rest'), 'name:rest' -> ('name', 'rest').

    Parameters
    ----------
    word : str
        The text.

    Returns
    -------
    tuple[str, str]
        Name and rest; a missing part is empty.

    Examples
    --------
    >>> split_word("mine.py:Gait:depth_m=2")
    ('mine.py:Gait', 'depth_m=2')
    """
    form = _FORM.fullmatch(word)
    if form is None:
        name, _, remaining = word.partition(":")
        return name, remaining
    name = form["file"] if form["name"] is None else f"{form['file']}:{form['name']}"
    return name, form["rest"] or ""


def is_file(name: str) -> bool:
    """Return whether a name has the form FILE.py or FILE.py:NAME.

    Parameters
    ----------
    name : str
        The name.

    Returns
    -------
    bool
        True if it has.
    """
    return _FORM.fullmatch(name) is not None


def plugin_name(name: str) -> str:
    """Return the short name of a plug-in: of a file, its name without folder and ending.

    Parameters
    ----------
    name : str
        The name.

    Returns
    -------
    str
        The short name.
    """
    form = _FORM.fullmatch(name)
    return name if form is None else Path(form["file"]).stem


def named_robot(word: str) -> str:
    """Return the robot in a controller's arguments (robot=NAME), of several on one clock.

    Parameters
    ----------
    word : str
        Name and arguments.

    Returns
    -------
    str
        Name of the robot; empty for none.
    """
    parts = [part.partition("=") for part in split_word(word)[1].split(",")]
    result = [value.strip() for key, _, value in parts if key.strip() == "robot"]
    return result[-1] if result else ""


def peer_name(word: str) -> str:
    """Return the name of a controller on the wire: ROBOT.NAME for one of several robots.

    Parameters
    ----------
    word : str
        Name and arguments.

    Returns
    -------
    str
        The name.
    """
    name, robot = plugin_name(split_word(word)[0]), named_robot(word)
    return f"{robot}.{name}" if robot else name


def owner_of(key: str, names: Iterable[str]) -> str:
    """Return the owner of a parameter 'NAME.parameter': the longest name with which it begins.

    Parameters
    ----------
    key : str
        The parameter.
    names : Iterable[str]
        Possible owners.

    Returns
    -------
    str
        The name; empty for none.
    """
    return max((name for name in names if key.startswith(name + ".")), key=len, default="")


def path_of(kind: str, name: str) -> Path:
    """Return the path in a name FILE.py or FILE.py:NAME.

    Parameters
    ----------
    kind : str
        Purpose of the file, for the error.
    name : str
        The name.

    Returns
    -------
    Path
        The path.

    Raises
    ------
    ModelError
        If there is no such file.
    """
    form = _FORM.fullmatch(name)
    assert form is not None
    path = Path(form["file"]).expanduser()
    if not path.is_file():
        raise ModelError(f"{kind} '{name}': there is no file '{path}'")
    return path


def load_named(kind: str, name: str, fits: Callable[[Any], bool], expected: str) -> Any:
    """Return the object that FILE.py:NAME names, or the only fitting one of FILE.py.

    Parameters
    ----------
    kind : str
        Purpose of the object, for errors.
    name : str
        The name.
    fits : Callable[[Any], bool]
        Returns whether an object defined there fits.
    expected : str
        Description of a fitting object, for a person.

    Returns
    -------
    Any
        The object.

    Raises
    ------
    UnknownNameError
        If the file has no such object.
    ModelError
        If the file cannot be run, with the line, or if none or several objects fit.
    """
    form = _FORM.fullmatch(name)
    assert form is not None
    path = path_of(kind, name)
    module = run_file(kind, name)
    members = {key: value for key, value in vars(module).items() if not key.startswith("_")}
    if form["name"] is not None:
        if not hasattr(module, form["name"]):
            raise UnknownNameError(f"{kind} of {path}", form["name"], members)
        result = getattr(module, form["name"])
        if not fits(result):
            what = f"class {result.__name__}" if isinstance(result, type) else type(result).__name__
            raise ModelError(f"{kind} '{name}': expected {expected}, got {what}")
        return result
    fitting = {
        key: value
        for key, value in members.items()
        if fits(value) and getattr(value, "__module__", "") == module.__name__
    }
    if len(fitting) != 1:
        if fitting:
            raise ModelError(
                f"{kind} '{name}': expected one class, but {path} has {', '.join(sorted(fitting))}; name one of them "
                f"as {path}:NAME"
            )
        near = sorted(
            key
            for key, value in members.items()
            if isinstance(value, type) and getattr(value, "__module__", "") == module.__name__
        )
        has = f"{', '.join(near)}, but none" if near else "none"
        raise ModelError(f"{kind} '{name}': expected {expected} in {path}, which has {has} that fits")
    return next(iter(fitting.values()))


_MAX_SCRIPT_BYTES = 10_000_000


def refuse_script(kind: str, name: str, ways: str) -> None:
    """Refuse a FILE.py, without a NAME, that defines no class and imports no name that may be one; it is not run.

    Parameters
    ----------
    kind : str
        Purpose of the file.
    name : str
        Name of the file.
    ways : str
        Alternatives of the user, for the message.

    Raises
    ------
    ModelError
        If there is no such file, or if no class can be in it. A file that cannot be parsed passes: running it names the
        line.
    """
    form = _FORM.fullmatch(name)
    assert form is not None
    path = path_of(kind, name)
    if form["name"] is not None:
        return
    try:
        tree = ast.parse(
            read_input(path, max_bytes=_MAX_SCRIPT_BYTES, place=f"{kind} '{name}'", expected="a Python file")
        )
    except (SyntaxError, ValueError, RecursionError):
        return
    without_controllers = {"rtmms", "numpy", *sys.stdlib_module_names}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            return
        if isinstance(node, ast.ImportFrom):
            package = (node.module or "").split(".")[0]
            if node.level or package not in without_controllers:
                return
    raise ModelError(f"{kind} '{name}': {path} has no class, so it was not run; {ways}")


def run_file(kind: str, name: str) -> ModuleType:
    """Run FILE.py or FILE.py:NAME, and return its module.

    Imports then search its folder last of all, because the user named a file in it.

    Parameters
    ----------
    kind : str
        Purpose of the file, for errors.
    name : str
        Name of the file.

    Returns
    -------
    ModuleType
        The module.

    Raises
    ------
    ModelError
        If it cannot be run, with the line, or if it is a library's.
    """
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
        raise ModelError(f"{kind} '{name}': {sentence_of(fault, place)}") from fault
    return module


def own_lines(fault: BaseException) -> tuple[str, str]:
    """Return the traceback of a plug-in's exception without rtmms's own lines, and the user's last line.

    If no line is a user's, it has all of them, because the fault is ours.

    Parameters
    ----------
    fault : BaseException
        The exception.

    Returns
    -------
    tuple[str, str]
        The traceback, and 'FILE.py, line N'.
    """
    every = traceback.extract_tb(fault.__traceback__)
    frames = [frame for frame in every if not Path(frame.filename).is_relative_to(_OURS)] or every
    user_frames = [frame for frame in frames if not is_library(frame.filename)] or frames
    text = "".join(["Traceback (most recent call last):\n", *traceback.format_list(frames)])
    text += "".join(traceback.format_exception_only(fault))
    return text.rstrip(), f"{Path(user_frames[-1].filename).name}, line {user_frames[-1].lineno}"


def sentence_of(fault: Exception, place: str) -> str:
    """Return a sentence about a fault, with the last line of the file that was running.

    Parameters
    ----------
    fault : Exception
        The exception.
    place : str
        Path of the file, resolved.

    Returns
    -------
    str
        The sentence.
    """
    if isinstance(fault, SyntaxError) and fault.lineno is not None:
        return f"{fault.filename}, line {fault.lineno}: {type(fault).__name__}: {fault.msg}"
    lines = [frame.lineno for frame in traceback.extract_tb(fault.__traceback__) if frame.filename == place]
    where = f"{place}, line {lines[-1]}" if lines else place
    return f"{where}: {type(fault).__name__}: {fault}"
