"""Parameters and keys of tables: each is declared once with its type and its default, and read from a person's text.

The parameters of a robot, a controller or a bridge, and the keys of a table of a file, are a dataclass. Its fields are
Annotated with a Parameter. `build` makes a robot's parameters from given values, `read_table` reads a table. `rtmms
list`, `set`, the bounds of `rtmms identify`, the tables of the pages and tests read the declarations.
"""

from __future__ import annotations

import difflib
import inspect
import math
import sys
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, make_dataclass, replace
from functools import lru_cache, partial
from types import SimpleNamespace
from typing import Any

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.value_conversion import BOOLEANS, convert_value, type_text, value_text, without_numpy


@dataclass(frozen=True)
class Parameter:
    """Declaration of a parameter.

    A number must be > 0 unless `gt`, `ge` or `signed` allows others.

    Parameters
    ----------
    about : str
        Noun phrase that states what the parameter is, then its source in short; sentences of at most 20 words.
    unit : str, default ''
        Unit of a number.
    gt, ge, le : float | None, optional
        Range of a number.
    signed : bool, default False
        Whether the number may be negative; `le` is its largest size then.
    choices : tuple[str, ...], optional
        Allowed texts.
    live : bool, default False
        Whether `set` may change it while the robot runs.
    in_model : bool, default True
        Whether the compiled model has it, so that a change compiles the model anew.
    why : str, default ''
        Reason for the range, for its error.
    kind : type | None, optional
        int or float of a number, None of others; `parameters_of` derives it from the type.
    hint : Any, optional
        Type without its metadata; `parameters_of` derives it.
    required : bool, default False
        Whether the dataclass has no default; then an empty text is no value.

    Examples
    --------
    >>> Parameter("Mass.", "kg", kind=float).fault(-1.0)
    '> 0 kg'
    """

    about: str
    unit: str = ""
    gt: float | None = None
    ge: float | None = None
    le: float | None = None
    signed: bool = False
    choices: tuple[str, ...] = ()
    live: bool = False
    in_model: bool = True
    why: str = ""
    kind: type | None = None
    hint: Any = None
    required: bool = False

    @property
    def optional(self) -> bool:
        """Whether it may be None, the absence of a value."""
        return type(None) in typing.get_args(self.hint)

    @property
    def bare(self) -> Any:
        """Type of an existing value: the hint without None."""
        remaining = (
            [arg for arg in typing.get_args(self.hint) if arg is not type(None)] if self.optional else [self.hint]
        )
        return remaining[0] if len(remaining) == 1 else typing.Union[tuple(remaining)]  # noqa: UP007 - of a list

    @property
    def expected(self) -> str:
        """Expected value for an error: 'a number from 0 to 1', 'a text', 'a list of 3 numbers'."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        bare = self.bare
        if bare in (int, float):
            noun = "a whole number" if bare is int else "a number" if self.range_text else "a finite number"
            return f"{noun} {self.range_text}".rstrip()
        return _EXPECTED.get(bare) or _expected_list(bare) or type_text(bare)

    @property
    def strict(self) -> bool:
        """Whether the lower bound itself is excluded."""
        return self.ge is None and not self.signed

    @property
    def low(self) -> float | None:
        """Lower bound; None for none."""
        if self.ge is not None:
            return self.ge
        if self.signed:
            return None if self.le is None else -self.le
        return self.gt or 0.0

    @property
    def range_text(self) -> str:
        """Range as a person reads it: '> 0', 'from 0 to 100'; empty without a bound and for texts."""
        if self.choices or self.kind is None:
            return ""
        low, high = (None if item is None else str(item) if isinstance(item, int) else f"{item:g}"
                     for item in (self.low, self.le))  # fmt: skip
        if low is not None and high is not None and not self.strict:
            return f"from {low} to {high}"
        ends = [f"{'>' if self.strict else '>='} {low}"] if low is not None else []
        return " and ".join(ends + ([f"<= {high}"] if high is not None else []))

    def fault(self, number: float) -> str:
        """Return the expected range of a number outside it.

        Parameters
        ----------
        number : float
            The number, in the parameter's unit.

        Returns
        -------
        str
            The range with unit and reason; empty if the number is in range.
        """
        suffix = (f" {self.unit}" if self.unit else "") + (f", {self.why}" if self.why else "")
        if self.signed:
            return f"<= {self.le:g}{suffix} in size" if self.le is not None and abs(number) > self.le else ""
        low = self.low
        if low is not None and (number < low or (number == low and self.strict)):
            return f"{'>' if self.strict else '>='} {low:g}{suffix}"
        return f"<= {self.le:g}{suffix}" if self.le is not None and number > self.le else ""


_EXPECTED: Mapping[Any, str] = {
    str: "a text", bool: "true or false", dict: "a table", list: "a list", list | dict: "a list, or a table",
}  # fmt: skip
_NOUNS = {float: "numbers", int: "whole numbers", str: "texts"}


def _expected_list(hint: Any) -> str:
    inner = typing.get_args(hint)
    if typing.get_origin(hint) is not tuple:
        return "a table" if typing.get_origin(hint) is dict else ""
    noun = _NOUNS.get(typing.get_args(inner[0])[0] if typing.get_args(inner[0]) else inner[0], "entries")
    return f"a list of {noun}" if inner[-1] is Ellipsis else f"a list of {len(inner)} {noun}"


def parameters_of(kind: Any) -> Mapping[str, Parameter]:
    """Return the declared parameters of a dataclass, in the order of its fields.

    Parameters
    ----------
    kind : Any
        The dataclass.

    Returns
    -------
    Mapping[str, Parameter]
        Declarations by name.
    """
    return _declared(kind)


@lru_cache(maxsize=512)  # a file that makes a plant has a new class each time it runs
def _declared(kind: Any) -> Mapping[str, Parameter]:
    result: dict[str, Parameter] = {}
    for base in reversed(kind.__mro__):  # a field that a class gives another default has the declaration of its base
        space = vars(sys.modules[base.__module__]) if base.__module__ in sys.modules else {}
        for name, hint in inspect.get_annotations(base).items():
            inner = typing.get_args(_resolved(hint, space, dict(vars(base))))
            for item in inner:
                if isinstance(item, Parameter):
                    field = getattr(kind, "__dataclass_fields__", {}).get(name)
                    needed = field is not None and field.default is MISSING and field.default_factory is MISSING
                    choices = item.choices or _choices_of(inner[0])
                    result[name] = replace(
                        item, kind=_number_of(inner[0]), hint=inner[0], choices=choices, required=needed
                    )
    return result


def _choices_of(hint: Any) -> tuple[str, ...]:
    """Return the texts of a Literal, also of one that may be None; () for other types."""
    literal = next((item for item in (hint, *typing.get_args(hint)) if typing.get_origin(item) is typing.Literal), None)
    args = typing.get_args(literal)
    return args if all(isinstance(word, str) for word in args) else ()


def _resolved(hint: Any, space: dict[str, Any], local_names: dict[str, Any]) -> Any:
    """Return a type from its text.

    Types are resolved one at a time, because others of the class may have names that only a type checker can read.
    """
    holder: Any = SimpleNamespace(__annotations__={"it": hint})
    try:
        return typing.get_type_hints(holder, space, local_names, include_extras=True)["it"]
    except (NameError, TypeError, AttributeError):
        return None


def _number_of(hint: Any) -> type | None:
    """Return the number type that a type is, may be, or has as entries; None for other types."""
    inner = {hint, *typing.get_args(hint)}
    return float if float in inner else int if int in inner else None


def check_parameters(place: str, owner: Any) -> None:
    """Check the declared fields of an instance against their ranges and texts; None is the absence of a value.

    Parameters
    ----------
    place : str
        First part of the error, as "controller 'gait': ".
    owner : Any
        The instance.

    Raises
    ------
    ModelError
        If a value is out of range; it names place and parameter.
    """
    for name, parameter in parameters_of(type(owner)).items():
        value = getattr(owner, name)
        if value is None:
            continue
        if parameter.choices and value not in parameter.choices:
            raise ModelError(f"{place}{name}: {UnknownNameError(name, str(value), parameter.choices)}")
        if parameter.choices or parameter.kind is None or isinstance(value, Mapping):
            continue
        for number in value if isinstance(value, tuple) else (value,):
            if not _is_in_range(parameter, number):
                raise ModelError(f"{place}{name}: expected {parameter.expected}, got {value!r}")


def _is_in_range(parameter: Parameter, number: Any) -> bool:
    real = isinstance(number, (int, float)) and not isinstance(number, bool)
    whole = parameter.kind is not int or (real and math.isfinite(number) and number == int(number))
    return real and math.isfinite(number) and whole and not parameter.fault(number)


Fault = Callable[[str, str], ModelError]
"""Function from a table's key and a text to the error to raise, with its place."""


def read_table(
    kind: Any, table: Mapping[str, Any], noun: str, fault: Fault, *, from_text: bool = False
) -> dict[str, Any]:  # fmt: skip
    """Return the values of a table, each in the type of its field.

    Parameters
    ----------
    kind : Any
        Dataclass; its declared fields are the keys.
    table : Mapping[str, Any]
        Values by key, as a file has them. None is the absence of a value.
    noun : str
        Name of the table in an error: 'link'.
    fault : Fault
        Makes the error of a key that is unknown or missing, or of an excluded value.
    from_text : bool, default False
        Whether the values are text of a command line.

    Returns
    -------
    dict[str, Any]
        Values by name.

    Raises
    ------
    ModelError
        As `fault` makes it.
    """
    known = parameters_of(kind)
    for key in table:
        if key not in known:
            raise fault(key, str(UnknownNameError(f"key of {noun}", key, known)))
    result: dict[str, Any] = {}
    for name, item in known.items():
        value = table.get(name)
        if value is None and item.required:
            raise fault(name, f"{name}: expected {item.expected}, got none; this key is required")
        if value is not None:
            try:
                result[name] = read_declared(name, item, value, from_text=from_text)
            except ModelError as wrong:
                raise fault(name, str(wrong)) from None
    return result


def read_declared(place: str, parameter: Parameter, value: Any, *, from_text: bool = False) -> Any:
    """Return a value in its declared type.

    Parameters
    ----------
    place : str
        First part of the error.
    parameter : Parameter
        The declaration.
    value : Any
        The value.
    from_text : bool, default False
        Whether it is text of a command line.

    Returns
    -------
    Any
        The value in its type.

    Raises
    ------
    ModelError
        If the declaration excludes the value.
    """
    bare, value = parameter.bare, without_numpy(value)
    if parameter.choices:
        if value not in parameter.choices:
            raise ModelError(f"{place}: {UnknownNameError(place, str(value), parameter.choices)}")
        return value
    outside = ModelError(
        f"{place}: expected {parameter.expected}, got {value_text(value) if value != '' else 'an empty text'}"
    )
    if bare in (str, list, dict, list | dict):  # the content of a list or table is read where it is used
        if not isinstance(value, bare) or (parameter.required and value == ""):
            raise outside
        return value
    if bare not in (int, float):
        if not from_text and typing.get_origin(bare) is tuple and not isinstance(value, list | tuple):
            raise outside
        result = convert_value(place, value, bare, from_text=from_text)
        if parameter.kind is not None and not all(_is_in_range(parameter, number) for number in result):
            raise outside
        return result
    try:
        number = bare(convert_value(place, value, bare, from_text=from_text))
    except ModelError:
        raise outside from None
    if parameter.fault(number):
        raise outside
    return number


NOT_PARAMETERS = ("dt", "preset")
"""Keywords of a function that makes a plant which are not its parameters."""


class FunctionKeywords:
    """Keywords of a function that makes a plant: the function has used them itself, whatever their names."""


@lru_cache(maxsize=64)
def keywords_of(make: Callable[..., Any]) -> Any:
    """Return a dataclass with the keywords of a function or class that makes a plant, without `dt` and `preset`.

    A keyword may be Annotated with a Parameter, as a field of a robot's dataclass.

    Parameters
    ----------
    make : Callable[..., Any]
        The function. Its keywords without a default have the default None here.

    Returns
    -------
    Any
        None if there are no keywords.
    """
    try:
        signature = inspect.signature(make)
    except (TypeError, ValueError):
        return None
    target = make.__init__ if isinstance(make, type) else make  # type: ignore[misc]
    space = getattr(target, "__globals__", {})
    rows: list[Any] = []
    for name, parameter in signature.parameters.items():
        if (
            parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
            or name in NOT_PARAMETERS
        ):
            continue
        hint = Any if parameter.annotation is parameter.empty else _resolved(parameter.annotation, space, {})
        default = None if parameter.default is parameter.empty else parameter.default
        rows.append((name, Any if hint is None else hint, field(default_factory=partial(_value, default))))
    return make_dataclass("Keywords", rows, bases=(FunctionKeywords,), frozen=True) if rows else None


def _value(value: Any) -> Any:
    return value


def parameter_values(plant: object) -> dict[str, Any]:
    """Return the parameters of a plant with their present values, and keywords of the function that made it.

    Parameters
    ----------
    plant : object
        The plant.

    Returns
    -------
    dict[str, Any]
        Values by name.
    """
    result: dict[str, Any] = {}
    for source in (getattr(plant, "keywords", None), getattr(plant, "parameters", None)):
        if isinstance(source, Mapping):
            result |= source
        elif is_dataclass(source):
            result |= {item.name: getattr(source, item.name) for item in fields(source)}
    return result


def parameters_of_plant(plant: object) -> Mapping[str, Parameter]:
    """Return the declared parameters of a plant, with those of the function that made it (`keywords`).

    Parameters
    ----------
    plant : object
        The plant.

    Returns
    -------
    Mapping[str, Parameter]
        Declarations by name; {} if neither is a dataclass with declarations.
    """
    kinds: list[Any] = [type(getattr(plant, name, None)) for name in ("keywords", "parameters")]
    return {name: parameter for kind in kinds for name, parameter in parameters_of(kind).items()}


def settable(kind: Any) -> tuple[str, ...]:
    """Return the parameters that `set` may change while the robot runs.

    Parameters
    ----------
    kind : Any
        The dataclass.

    Returns
    -------
    tuple[str, ...]
        Their names.
    """
    return tuple(name for name, parameter in parameters_of(kind).items() if parameter.live)


def in_model(kind: Any, names: Iterable[str]) -> bool:
    """Return whether the compiled model has one of these parameters.

    Parameters
    ----------
    kind : Any
        The dataclass.
    names : Iterable[str]
        Names of parameters.

    Returns
    -------
    bool
        True if it has.
    """
    return any(parameters_of(kind)[name].in_model for name in names)


def build(
    kind: Any, provided: Mapping[str, Any], *, robot: str = "", preset: str | None = None,
    presets: Mapping[str, Mapping[str, Any]] | None = None,
) -> Any:  # fmt: skip
    """Return an instance of a dataclass of parameters from its defaults, a preset, and given values.

    A number with default None may be None, or the text 'none', as `rtmms list` prints it.

    Parameters
    ----------
    kind : Any
        The dataclass.
    provided : Mapping[str, Any]
        Values by name.
    robot : str, default ''
        Name in errors; empty: the dataclass's own.
    preset : str | None, optional
        Name of a set of values, which `provided` replaces.
    presets : Mapping[str, Mapping[str, Any]] | None, optional
        The sets by name.

    Returns
    -------
    Any
        The instance.

    Raises
    ------
    UnknownNameError
        If there is no such preset or parameter.
    ModelError
        If a value is invalid; it names robot and parameter.
    """
    robot = robot or kind.__name__.lower()
    if preset is not None and preset not in (presets or {}):
        raise UnknownNameError(f"{robot} preset", preset, presets or ())
    defaults, declared = {f.name: f.default for f in fields(kind)}, parameters_of(kind)
    values: dict[str, Any] = {}
    for name, value in {**((presets or {})[preset] if preset is not None else {}), **provided}.items():
        if name not in defaults:
            raise UnknownNameError(f"{robot} parameter", name, defaults)
        values[name] = read_value(f"{robot}: {name}{{}}", defaults[name], declared[name], value)
    return replace(kind(), **values)


def read_value(place: str, default: Any, declared: Parameter, value: Any) -> Any:
    """Return a value of a parameter in the type of its default, also from a person's text.

    Parameters
    ----------
    place : str
        First part of the error, with {} for the index of an element.
    default : Any
        Default of the parameter.
    declared : Parameter
        Declaration of the parameter.
    value : Any
        A text, number, truth value, or list; or text of these.

    Returns
    -------
    Any
        The value in its type.

    Raises
    ------
    ModelError
        If the value is invalid; it names the place.
    """
    at = place.format("")
    if declared.choices:
        if value not in declared.choices:
            near = difflib.get_close_matches(str(value), declared.choices, n=1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            raise ModelError(f"{at} must be one of {', '.join(declared.choices)}, got '{value}'{hint}")
        return value
    if default is None and value in (None, "none"):
        return None
    if isinstance(default, bool):
        word = BOOLEANS.get(value.strip().lower()) if isinstance(value, str) else value
        if not isinstance(word, bool):
            raise ModelError(f"{at} must be true or false, got {value!r}")
        return word
    if isinstance(default, tuple):
        try:
            parts = list(value.split(",") if isinstance(value, str) else value)
        except TypeError:
            parts = [value]
        if len(parts) != len(default):
            raise ModelError(f"{at} must be {len(default)} numbers, got {len(parts)}")
        return tuple(_in_range(place.format(f"[{i}]"), default[0], declared, part) for i, part in enumerate(parts))
    return _in_range(at, default, declared, value) if default is None or isinstance(default, (int, float)) else value


def _in_range(at: str, default: Any, declared: Parameter, value: Any) -> Any:
    number = read_number(at, value, isinstance(default, int), declared.unit)
    bound = declared.fault(number)
    if bound:
        raise ModelError(f"{at} must be {bound}, got {number:g}")
    return number


def read_number(at: str, value: Any, whole: bool, unit: str = "") -> Any:
    """Return a value as a finite number.

    Parameters
    ----------
    at : str
        First part of the error.
    value : Any
        The value.
    whole : bool
        Whether it must be a whole number.
    unit : str, default ''
        Unit, for the error.

    Returns
    -------
    Any
        The number.

    Raises
    ------
    ModelError
        If it is no such number.

    Examples
    --------
    >>> read_number("count", "3", True)
    3
    """
    expected = f"a number in {unit}" if unit else "a number"
    if isinstance(value, bool):
        raise ModelError(f"{at} must be {expected}, got {value!r}")
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ModelError(f"{at} must be {expected}, got {value!r}") from None
    if not math.isfinite(number):
        raise ModelError(f"{at} must be finite, got {value}")
    if whole and number != int(number):
        raise ModelError(f"{at} must be a whole number, got {value}")
    return int(number) if whole else number
