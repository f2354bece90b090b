"""Files that may run as code: which data may name them, who can have written them, and how a user's own file is run."""

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
# and
# files that others can have written, are refused as well.


@dataclass(frozen=True)
class NamesFile:
    """Metadata of a parameter whose text names a file: `cert: Annotated[str, NamesFile("input")]`.

    Parameters
    ----------
    kind
        What the program does with the file. "code": it runs the file. "input": it reads the file. "output": it writes
        the file. "device": it opens a device of the machine, for example a serial port.
    """

    kind: Literal["code", "input", "output", "device"]


def file_parameters(hints: dict[str, Any]) -> dict[str, str]:
    """Return the parameters that name files, each with its kind.

    Parameters
    ----------
    hints
        Types of parameters by name, with their metadata (`typing.get_type_hints(..., include_extras=True)`).

    Returns
    -------
    dict
        Kind of file by parameter. A union or a tuple names a file where one of its parts does.
    """
    found = {name: _file_kind(hint) for name, hint in hints.items()}
    return {name: kind for name, kind in found.items() if kind}


def _file_kind(hint: Any) -> str:
    for one in getattr(hint, "__metadata__", ()):
        if isinstance(one, NamesFile):
            return one.kind
    return next((kind for part in typing.get_args(hint) if (kind := _file_kind(part))), "")


VARIABLE = "RTMMS_CODE"
"""Environment variable with the files that may run: a JSON list of absolute paths.

Of a folder, whose path ends in /, all files below it may run. A process without the variable is a program of the user's
own, which may run any file. Children inherit the variable."""

_DELIMITERS = re.compile(r"""[\s,:;=+|"'()\[\]{}]""")


@dataclass(frozen=True)
class _Asker:
    """Who asks for a file. data: what names the file; '' where a program of the user's own does.

    remedy      how the user permits the file, for the message
    named       files that the user named beside the data
    trusted     the user permits each file of their own that the data names
    listed      in place of the environment variable's text
    """

    data: str = ""
    remedy: str = ""
    named: frozenset[Path] = frozenset()
    trusted: bool = False
    listed: str | None = None


_asker: ContextVar[_Asker | None] = ContextVar("_asker", default=None)


def refuse_unnamed(path: Path | str, place: str) -> None:
    """Refuse a file that would run as code and that the user did not name. Every way to such a file passes here.

    Parameters
    ----------
    path
        The file.
    place
        What names the file, for the message: "controller 'mine.py'".

    Raises
    ------
    ModelError
        The message names the place, the file, and how the user can permit it.
    """
    asker, listed = _asker.get(), os.environ.get(VARIABLE)
    if asker is not None and not asker.data:
        return
    if asker is None and listed is None:
        return
    found = Path(path).expanduser().resolve()
    if asker is not None and asker.trusted:
        refuse_foreign_code(found, place)
        return
    files, folders = _listed(listed if asker is None or asker.listed is None else asker.listed)
    if found in files or (asker is not None and found in asker.named):
        return
    if any(found.is_relative_to(folder) for folder in folders):
        refuse_foreign_code(found, place)
        return
    source = asker.data if asker is not None else "data"
    remedy = asker.remedy if asker is not None else "name the file on the command line"
    beside = " or below the scenario" if folders else ""
    raise ModelError(
        f"{place}: '{path}' would run as code, and only {source} names it; expected a file that you name{beside}: "
        f"where you trust it, {remedy}"
    )


def _listed(text: str | None) -> tuple[set[Path], list[Path]]:
    """Files, and folders, of the environment variable; of a damaged one nothing."""
    try:
        found = json.loads(text) if text else []
    except ValueError:
        found = []
    named = [one for one in found if isinstance(one, str)] if isinstance(found, list) else []
    return {Path(one) for one in named if not one.endswith("/")}, [Path(one) for one in named if one.endswith("/")]


@contextmanager
def named_on_command_line(arguments: Sequence[str], trust_all: bool = False) -> Iterator[None]:
    """Let this process and its children run the files that these arguments name, and no other ones.

    Parameters
    ----------
    arguments
        What stands on the command line.
    trust_all
        The user declared that they trust the data (`--trust-log`): each file of theirs may run.

    A process that has the environment variable is a child: its arguments may come from a scenario, and its parent
    decided already.
    """
    if VARIABLE in os.environ:
        yield
        return
    named = sorted({str(file) for one in arguments for file in _files_in(one)})
    os.environ[VARIABLE] = json.dumps(["/", *named] if trust_all else named)
    try:
        yield
    finally:
        os.environ.pop(VARIABLE, None)


def permit_below(folder: Path) -> None:
    """Let this process and its children run files of this user in a folder: that of a scenario that the user named."""
    if VARIABLE not in os.environ:
        return
    files, folders = _listed(os.environ[VARIABLE])
    place = folder.resolve()
    whole = [*sorted(map(str, files)), *(f"{str(one).rstrip('/')}/" for one in {*folders, place})]
    os.environ[VARIABLE] = json.dumps(whole)


def _files_in(argument: str) -> Iterator[Path]:
    """Yield every file that a part of an argument names: a part lies between delimiters or the argument's ends."""
    if "\0" in argument or "." not in argument:
        return
    cuts = [one.start() for one in _DELIMITERS.finditer(argument)]
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
    """Return what this process may run, for `asked_by_process` in a process that does not inherit its environment."""
    return os.environ.get(VARIABLE)


@contextmanager
def asked_by_process(permitted: str | None) -> Iterator[None]:
    """Within, work of another process is done: the files run that may run there.  permitted: its `permitted_files`."""
    if permitted is None:
        yield
        return
    token = _asker.set(_Asker("data", "name the file on the command line", listed=permitted))
    try:
        yield
    finally:
        _asker.reset(token)


@contextmanager
def asked_by_program() -> Iterator[None]:
    """Within, a program of the user's own asks: it may run any file."""
    token = _asker.set(_Asker())
    try:
        yield
    finally:
        _asker.reset(token)


@contextmanager
def asked_by_data(data: str, remedy: str, *, named: Sequence[str] = (), trusted: bool = False) -> Iterator[None]:
    """Within, data asks: the files run that the user named, and with `trusted` each file of the user's own.

    Parameters
    ----------
    data
        What names files, for messages: "the log".
    remedy
        How the user permits a file, for messages.
    named
        What the user typed beside the data: texts that may name files.
    trusted
        The user declared that the data is theirs.
    """
    files = frozenset(file for one in named for file in _files_in(one))
    token = _asker.set(_Asker(data, remedy, files, trusted))
    try:
        yield
    finally:
        _asker.reset(token)


def exposed(path: Path | str) -> str:
    """Why others than this user and root can have written this file, link or folder; '' where they cannot.

    A group that is this user's alone counts as the user. FileNotFoundError where there is no such path.
    """
    if not hasattr(os, "geteuid"):
        return ""
    found = os.lstat(path)
    if found.st_uid not in (0, os.geteuid()):
        return f"'{path}' belongs to another user (uid {found.st_uid})"
    sticky = stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX
    if stat.S_ISLNK(found.st_mode) or sticky:
        return ""
    mode = f"mode {stat.S_IMODE(found.st_mode):04o}"
    if found.st_mode & stat.S_IWOTH:
        return f"'{path}' can be written by everybody ({mode})"
    if found.st_mode & stat.S_IWGRP and not _own_group(found.st_gid):
        return f"'{path}' can be written by a group (gid {found.st_gid}, {mode})"
    return ""


def exposed_way(path: Path) -> str:
    """As `exposed`, of a file and all folders on the way to it, in which it could be replaced."""
    place = path.resolve()
    return next((why for one in (place, *place.parents) if one.exists() and (why := exposed(one))), "")


def _own_group(gid: int) -> bool:
    """Whether nobody but this user and root is in a group: root's own, or one of the user's name without others."""
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
    """ModelError where others can have written a file that would run as code.

    place   what names the file, for the message. Nothing where there is no such file: the loader reports that
    """
    why = exposed_way(path) if path.is_file() else ""
    if why:
        raise ModelError(f"{place}, which would run as code: {why}; expected a file of yours alone")


def refuse_library(path: Path, place: str) -> None:
    """ModelError for a file of rtmms, of Python's standard library or of an installed package: it is no user's plant,
    controller or cost, whatever callables it has.  place: what names the file, for the message."""
    found = path.resolve()
    for folder, owner in _libraries():
        if found.is_relative_to(folder):
            raise ModelError(f"{place}: '{path}' belongs to {owner}; expected a file of your own")


def is_library(file: str) -> bool:
    """It is one of rtmms, of Python's standard library (frozen modules too), or of an installed package."""
    found = Path(file)
    return file.startswith("<") or any(found.is_relative_to(folder) for folder, _ in _libraries())


def _libraries() -> list[tuple[Path, str]]:
    paths = sysconfig.get_paths()
    installed = [paths["purelib"], paths["platlib"], site.getusersitepackages()]
    installed += site.getsitepackages() if hasattr(site, "getsitepackages") else []
    standard = [paths["stdlib"], paths["platstdlib"], os.path.dirname(os.__file__)]
    return [
        (Path(__file__).resolve().parent.parent, "rtmms"),
        *((Path(one).resolve(), "an installed package") for one in installed),
        *((Path(one).resolve(), "Python's standard library") for one in standard),
    ]


# A Python file that a user named: FILE.py or FILE.py:NAME, in place of something that is installed.


_OURS = Path(__file__).resolve().parent.parent
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


def named_robot(word: str) -> str:
    """Of several robots on one clock the one that a controller's words name (robot=NAME); '' for none."""
    parts = [part.partition("=") for part in split_word(word)[1].split(",")]
    found = [value.strip() for key, _, value in parts if key.strip() == "robot"]
    return found[-1] if found else ""


def peer_name(word: str) -> str:
    """What a controller of these words is called on the wire: of one of several robots ROBOT.NAME."""
    name, robot = called(split_word(word)[0]), named_robot(word)
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
            what = f"class {found.__name__}" if isinstance(found, type) else type(found).__name__
            raise ModelError(f"{kind} '{name}': expected {expected}, got {what}")
        return found
    fitting = {
        key: value for key, value in own.items() if fits(value) and getattr(value, "__module__", "") == module.__name__
    }
    if len(fitting) != 1:
        if fitting:
            raise ModelError(f"{kind} '{name}': {path} has {', '.join(sorted(fitting))}: give one, as {path}:NAME")
        near = sorted(
            key
            for key, value in own.items()
            if isinstance(value, type) and getattr(value, "__module__", "") == module.__name__
        )
        has = f"{', '.join(near)}, but none" if near else "none"
        raise ModelError(f"{kind} '{name}': {path} has {has}: write {expected}")
    return next(iter(fitting.values()))


_SCRIPT_BYTES = 10_000_000


def refuse_script(kind: str, name: str, ways: str) -> None:
    """Refuse a FILE.py, without a NAME, that defines no class and imports no name that may be one; it is not run.

    Parameters
    ----------
    kind, name : str
        What the file is for, and the word that names it.
    ways : str
        What a person can do, for the refusal.

    Raises
    ------
    ModelError
        There is no such file, or no class can be in it. A file that cannot be parsed passes: to run it names the line.
    """
    form = _FORM.fullmatch(name)
    assert form is not None
    path = path_of(kind, name)
    if form["name"] is not None:
        return
    try:
        tree = ast.parse(read_input(path, max_bytes=_SCRIPT_BYTES, place=f"{kind} '{name}'", expected="a Python file"))
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
    raise ModelError(f"{kind} '{name}': {path} has no class, and was not run: {ways}")


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
        raise ModelError(f"{kind} '{name}': {sentence_of(fault, place)}") from fault
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


def sentence_of(fault: Exception, place: str) -> str:
    """What went wrong, and the last line of the file that was running.  place: its path, resolved."""
    if isinstance(fault, SyntaxError) and fault.lineno is not None:
        return f"{fault.filename}, line {fault.lineno}: {type(fault).__name__}: {fault.msg}"
    lines = [frame.lineno for frame in traceback.extract_tb(fault.__traceback__) if frame.filename == place]
    where = f"{place}, line {lines[-1]}" if lines else place
    return f"{where}: {type(fault).__name__}: {fault}"
