"""Controllers by name: their entry points, their parameters, and their construction from a command line."""

from __future__ import annotations

import ast
import inspect
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import Distribution, EntryPoint
from pathlib import Path
from typing import Any, TypeGuard
from urllib.parse import unquote, urlparse

from rtmms.base.entry_points import entry_points_of
from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.parameters import Parameter as Declaration
from rtmms.base.parameters import parameters_of
from rtmms.base.source_declarations import literal, source, syntax_tree
from rtmms.base.trust import file_parameters, is_file, load_named, refuse_script, split_word
from rtmms.base.value_conversion import convert_value, type_text
from rtmms.wire.peer.controller import COMMON, Controller


def check_robot(name: str, robot: str) -> None:
    """Raise ModelError if a controller is for other robots, and another controller is for this one.

    A robot without a controller is a user's own, and may share actuators with one of ours.

    Parameters
    ----------
    name : str
        Name of the controller.
    robot : str
        Name of the robot.

    Raises
    ------
    ModelError
        If it does not fit; the message lists the fitting controllers.
    """
    robots = declared_robots(name)
    if not robots or robot in robots:
        return
    fitting = sorted(other for other in controllers() if robot in declared_robots(other))
    if fitting:
        raise ModelError(
            f"controller '{name}' drives {', '.join(robots)}, not {robot}; controllers of {robot}: {', '.join(fitting)}"
        )


def declared_robots(name: str) -> tuple[str, ...]:
    """Return the robots that a controller declares, without loading it.

    Parameters
    ----------
    name : str
        An installed controller, or FILE.py[:CLASS].

    Returns
    -------
    tuple[str, ...]
        Names of robots; () if it names none, or if its source cannot be read.
    """
    if is_file(name):
        file, _, wanted = name.rpartition(":") if not name.endswith(".py") else (name, "", "")
    else:
        point = controllers().get(name)
        if point is None:
            return ()
        file, wanted = source(point.module), point.attr
    tree = syntax_tree(file)
    if tree is None:
        return ()
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    if not wanted:
        classes = [node for node in classes if any(isinstance(part, ast.FunctionDef) and part.name == "update"
                                                   for part in node.body)]  # fmt: skip
    result = [node for node in classes if node.name == (wanted or node.name)]
    robots = literal(result[0].body, "robots") if len(result) == 1 else None
    if not isinstance(robots, (tuple, list)) or not all(isinstance(robot, str) for robot in robots):
        return ()
    return tuple(robots)


GROUP = "rtmms.controllers"

OWN_FILE = "one of your own runs as FILE.py or FILE.py:CLASS, see controllers/template.py"


@dataclass(frozen=True)
class Parameter:
    """Keyword of a controller's constructor, with its declaration (rtmms.base.parameters).

    Parameters
    ----------
    name : str
        Name of the keyword.
    kind : str
        Name of its type, or its choices.
    default : Any
        Its default; None if it is required.
    required : bool
        Whether it has no default.
    unit : str, default ''
        Its declared unit.
    range : str, default ''
        Its declared range as text.
    about : str, default ''
        Its declared description.
    """

    name: str
    kind: str
    default: Any
    required: bool
    unit: str = ""
    range: str = ""
    about: str = ""

    def declared(self, item: Declaration | None) -> Parameter:
        """Return the same parameter with a declaration.

        Parameters
        ----------
        item : Declaration | None
            The declaration; None for none.

        Returns
        -------
        Parameter
            The parameter.
        """
        if item is None:
            return self
        kind = "|".join(item.choices) if item.choices else self.kind
        return replace(self, kind=kind, unit=item.unit, range=item.range_text, about=item.about)


def load(kind: str, group: str, name: str) -> tuple[EntryPoint, Any]:
    """Load a registered object.

    Parameters
    ----------
    kind : str
        Kind of the object, for error messages.
    group : str
        Name of the group.
    name : str
        Name of the entry point.

    Returns
    -------
    tuple[EntryPoint, Any]
        The entry point and the object.

    Raises
    ------
    UnknownNameError
        If the name is not registered.
    ModelError
        If it cannot be loaded.
    """
    known = entry_points_of(group)
    if name not in known:
        raise UnknownNameError(kind, name, known)
    point = known[name]
    try:
        return point, point.load()
    except Exception as fault:  # a user's module may raise anything during its import
        what = str(fault) if isinstance(fault, ImportError) else f"{type(fault).__name__}: {fault}"
        raise ModelError(f"{kind} '{name}': cannot load {point.value}: {what}{astray(point)}") from fault


def loaded_elsewhere(group: str, name: str) -> str:
    """Return the file of a module that is not part of the distribution that registered it.

    Parameters
    ----------
    group : str
        Name of the group.
    name : str
        Name of the entry point.

    Returns
    -------
    str
        The file as text; empty if the module is part of the distribution.
    """
    point = entry_points_of(group).get(name)
    return astray(point).strip() if point is not None else ""


def controllers() -> dict[str, EntryPoint]:
    """Return the entry points of group rtmms.controllers.

    Returns
    -------
    dict[str, EntryPoint]
        Entry points by name.
    """
    return entry_points_of(GROUP)


def split_spec(spec: str, kind: str = "controller") -> tuple[str, dict[str, str]]:
    """Return name and arguments of a text such as 'gait:amplitude_deg=30,frequency_hz=0.5'.

    'gait:FILE.toml,frequency_hz=0.5' reads arguments from a file first, KEY = VALUE in each line. Arguments in the text
    replace them.

    Parameters
    ----------
    spec : str
        The text.
    kind : str, default 'controller'
        Kind of the object, for error messages.

    Returns
    -------
    tuple[str, dict[str, str]]
        Name, and values by key.

    Raises
    ------
    ModelError
        If the text has another form.

    Examples
    --------
    >>> split_spec("gait:amplitude_deg=30,frequency_hz=0.5")
    ('gait', {'amplitude_deg': '30', 'frequency_hz': '0.5'})
    """
    name, remaining = split_word(spec)
    options: dict[str, str] = {}
    parts = remaining.split(",") if remaining else []
    written = _written(spec, parts.pop(0)) if parts and "=" not in parts[0] and parts[0].endswith(".toml") else {}
    for part in parts:
        key, sign, value = part.partition("=")
        if not sign or not key.strip():
            raise ModelError(f"{kind} '{spec}': expected NAME:key=value,key=value; got '{part}'")
        if key.strip() in options:
            raise ModelError(f"{kind} '{spec}': '{key.strip()}' is given twice")
        options[key.strip()] = value.strip()
    if not name:
        raise ModelError(f"{kind} '{spec}': expected NAME or NAME:key=value,...; the name is missing")
    return name, written | options


def _written(spec: str, file: str) -> dict[str, str]:
    """Return the arguments of a file; ModelError if a value is neither a number, nor a text, nor a flag."""
    from rtmms.base.toml_file import read_toml

    toml = read_toml(file)
    for key, value in toml.items():
        if not isinstance(value, bool | int | float | str):
            raise ModelError(f"controller '{spec}': {file}: {key}: expected a number or a text, got {value!r:.60}")
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in toml.items()}


_EXPECTED = "a class with update(state)"
_SCRIPT = "start it with python in a process of its own, where it calls rtmms.connect while `rtmms serve` runs"


def check_controller(name: str) -> None:
    """Raise ModelError unless a controller or a file has this name; nothing is loaded.

    Parameters
    ----------
    name : str
        Name of a controller, or FILE.py[:NAME].

    Raises
    ------
    ModelError
        If the file is a script without a class.
    UnknownNameError
        If no controller has the name.
    """
    if is_file(name):
        refuse_script("controller", name, f"write {_EXPECTED}, or {_SCRIPT}")
    elif name not in (known := entry_points_of(GROUP)):
        raise UnknownNameError("controller", name, known, OWN_FILE)


def load_controller(name: str) -> type[Controller]:
    """Return the class of a controller.

    Parameters
    ----------
    name : str
        Name of a controller, or FILE.py[:NAME].

    Returns
    -------
    type[Controller]
        The class.

    Raises
    ------
    UnknownNameError
        If no controller has the name.
    ModelError
        If it cannot be loaded or is no controller.
    """
    check_controller(name)
    if is_file(name):
        controller_class: type[Controller] = load_named("controller", name, _controls, _EXPECTED)
        return controller_class
    point, result = load("controller", GROUP, name)
    if not _controls(result):
        raise ModelError(
            f"controller '{name}': expected {point.value} to be a class with update(state), "
            f"got {f'class {result.__name__}' if isinstance(result, type) else type(result).__name__}{astray(point)}"
        )
    return result


def parameters(controller: type[Controller]) -> dict[str, Parameter]:
    """Return the parameters of a controller: the keywords of its constructor.

    Without type hints a parameter has the type of its default.

    Parameters
    ----------
    controller : type[Controller]
        The class.

    Returns
    -------
    dict[str, Parameter]
        Parameters by name.
    """
    listed = {}
    for name, kind in _signature(controller).items():
        hint = _hint(kind)
        default = None if kind.default is inspect.Parameter.empty else kind.default
        built = Parameter(name, type_text(hint), default, kind.default is inspect.Parameter.empty)
        listed[name] = built.declared(parameters_of(controller).get(name))
    return listed


def controller_files(controller: type[Controller]) -> dict[str, str]:
    """Return the parameters of a controller that name files, each with its kind (`rtmms.base.trust.NamesFile`).

    Parameters
    ----------
    controller : type[Controller]
        The class.

    Returns
    -------
    dict[str, str]
        Kinds by name.
    """
    return file_parameters({name: _hint(kind) for name, kind in _signature(controller).items()})


def build(spec: str, loaded: type[Controller] | None = None) -> Controller:
    """Return the controller of a command line.

    `every`, `delay` and `interpolation` are valid for any controller, and become its attributes.

    Parameters
    ----------
    spec : str
        NAME:key=value,...
    loaded : type[Controller] | None, optional
        Its class if known; finding and importing it takes milliseconds.

    Returns
    -------
    Controller
        The controller.

    Raises
    ------
    UnknownNameError
        If there is no such controller or parameter.
    ModelError
        If a value is invalid; it names the controller and the key.
    """
    name, options = split_spec(spec)
    result = loaded if loaded is not None else load_controller(name)
    known = _signature(result)
    turns = {key: options.pop(key) for key in COMMON if key in options and key not in known}
    controller = construct(result, name, options)
    for key, word in turns.items():
        setattr(controller, key, convert_value(f"controller '{name}': {key}", word, COMMON[key], from_text=True))
    return controller


def construct(controller: type[Controller], name: str, options: Mapping[str, str]) -> Controller:
    """Return an instance of a controller.

    Parameters
    ----------
    controller : type[Controller]
        The class.
    name : str
        Its name, for error messages.
    options : Mapping[str, str]
        Arguments as text; each is read as its parameter's type.

    Returns
    -------
    Controller
        The controller.

    Raises
    ------
    UnknownNameError
        If it has no such parameter.
    ModelError
        If a required parameter is missing or a value is invalid.
    """
    known = _signature(controller)
    values: dict[str, Any] = {}
    for key, word in options.items():
        if key not in known:
            attribute = hasattr(controller, key) and not callable(getattr(controller, key))
            hint = "an attribute of the class is a parameter in a @dataclass, with a type" if attribute else ""
            raise UnknownNameError(f"parameter of controller '{name}'", key, (*known, *COMMON), hint)
        values[key] = convert_value(f"controller '{name}': {key}", word, _hint(known[key]), from_text=True)
    missing = [key for key, kind in known.items() if kind.default is inspect.Parameter.empty and key not in values]
    if missing:
        raise ModelError(f"controller '{name}': needs {', '.join(missing)}")
    return controller(**values)


def _controls(candidate: object) -> TypeGuard[type[Controller]]:
    update = getattr(candidate, "update", None)
    return isinstance(candidate, type) and callable(update) and update is not Controller.update


def _signature(controller: type[Controller]) -> dict[str, inspect.Parameter]:
    try:
        result = inspect.signature(controller, eval_str=True)
    except NameError:  # only a type checker can evaluate this hint
        result = inspect.signature(controller)
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {name: kind for name, kind in result.parameters.items() if kind.kind in named}


def _hint(kind: inspect.Parameter) -> Any:
    if kind.annotation is not inspect.Parameter.empty:
        return kind.annotation
    return type(kind.default) if kind.default not in (None, inspect.Parameter.empty) else str


def astray(point: EntryPoint) -> str:
    """Return a remark if a module comes from a file outside its distribution.

    Such a file is often in a user's own folder of the same name.

    Parameters
    ----------
    point : EntryPoint
        Entry point of the module.

    Returns
    -------
    str
        ' (loaded from FILE...)', or an empty text.
    """
    module = sys.modules.get(point.module)
    file = getattr(module, "__file__", None)
    if module is None:  # the module did not load: look for others of its name
        file = getattr(sys.modules.get(point.module.partition(".")[0]), "__file__", None)
    if file is None or point.dist is None:
        return ""
    where = Path(file).resolve()
    if any(where.is_relative_to(root) for root in _roots(point.dist)):
        return ""
    return f" (loaded from {where}, which is not part of {point.dist.name}; is there a folder of that name here?)"


def _roots(distribution: Distribution) -> list[Path]:
    """Return the folders of a distribution: its site directory, and its source tree if it is editable."""
    roots = [Path(str(distribution.locate_file(""))).resolve()]
    origin = distribution.read_text("direct_url.json")
    if origin:
        fields = json.loads(origin)
        if fields.get("dir_info", {}).get("editable"):
            roots.append(Path(unquote(urlparse(fields["url"]).path)).resolve())
    return roots
