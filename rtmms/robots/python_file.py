"""Load a plant from a user's own Python file: `rtmms run mine.py:robot`."""

from __future__ import annotations

import inspect
from contextlib import suppress
from dataclasses import fields
from types import ModuleType
from typing import Any

from rtmms.base.errors import ModelError, RtmmsError, UnknownNameError
from rtmms.base.parameters import keywords_of, parameters_of, read_declared
from rtmms.base.trust import path_of, run_file, sentence_of
from rtmms.plant.protocol import Plant

MEMBERS = ("reset", "step", "observe", "outputs", "actuators", "dt", "snapshot", "restore")


def load(word: str, /, *, dt: float | None = None, preset: str | None = None, **parameters: Any) -> Plant:
    """Return the plant that FILE.py:NAME names: a plant, or the result of a class or function.

    The file runs as it is; afterwards its folder is the last one from which Python imports.

    Parameters
    ----------
    word : str
        FILE.py:NAME.
    dt : float, optional
        Step, s; None for the robot's default.
    preset : str, optional
        Preset, if the class or function has presets.
    **parameters : Any
        Keywords of the class or function.

    Returns
    -------
    Plant
        The plant.

    Raises
    ------
    ModelError, UnknownNameError
        The file or the name is wrong, or the object is no plant; the message names both.
    """
    path, _, name = word.rpartition(":")
    if not path.endswith(".py"):
        path, name = word, ""
    module = run_file("robot", word)
    factory_names = [key for key, value in vars(module).items() if not key.startswith("_") and _gives(value, module)]
    if not name:
        listed = ", ".join(f"{path}:{key}" for key in factory_names) or "none"
        raise ModelError(
            f"robot '{word}': expected FILE.py:NAME with a plant, class or function of that file, got no NAME; the "
            f"file has: {listed}"
        )
    if not hasattr(module, name):
        raise UnknownNameError(f"name in '{path}'", name, factory_names)
    result = getattr(module, name)
    values = {**parameters, **{key: value for key, value in (("dt", dt), ("preset", preset)) if value is not None}}
    if isinstance(result, type) or not _is_plant(result):
        _refuse_other_than_factory(result, module, word)
        make = result
        result = _called(make, values, word)
        remember_keywords(result, make, values)
    elif values:
        raise ModelError(
            f"robot '{word}': expected no parameters, as this name is a plant and not a class, got {', '.join(values)}"
        )
    missing = [member for member in MEMBERS if not hasattr(result, member)]
    if missing:
        raise ModelError(
            f"robot '{word}': expected a plant, got a {type(result).__name__} without {', '.join(missing)}"
        )
    plant: Plant = result
    return plant


def remember_keywords(plant: Any, make: Any, provided: dict[str, Any]) -> None:
    """Store the keywords of a function's call on the plant that it returned, for `rtmms list`, `identify` and logs.

    They become the plant's `parameters`, or `keywords` where the plant has its own parameters. A plant that accepts no
    new attribute does not change.

    Parameters
    ----------
    plant : Plant
        Plant that the function returned.
    make : callable
        The function.
    provided : dict[str, Any]
        Keywords of its call.
    """
    kind = keywords_of(make)
    if kind is None:
        return
    names = [field.name for field in fields(kind)]
    values = kind(**{name: value for name, value in provided.items() if name in names})
    with suppress(AttributeError, TypeError):
        setattr(plant, "parameters" if getattr(plant, "parameters", None) is None else "keywords", values)


def _is_plant(value: Any) -> bool:
    return all(hasattr(value, member) for member in MEMBERS)


def _gives(value: Any, module: ModuleType) -> bool:
    """Return whether a name of the file may be a plant: defined there, and a plant or callable."""
    return _is_plant(value) or (callable(value) and getattr(value, "__module__", "") == module.__name__)


def _refuse_other_than_factory(candidate: Any, module: ModuleType, word: str) -> None:
    """Raise ModelError for an object that cannot return a plant, before it is called.

    Such objects are a class without a plant's members, a function that the file does not define, or one whose
    annotation has another type.
    """
    if isinstance(candidate, type):
        missing = [member for member in MEMBERS if not hasattr(candidate, member)]
        missing_members = [
            member for member in missing if member not in ("outputs", "actuators", "dt")
        ]  # made by __init__, often
        if missing_members:
            raise ModelError(
                f"robot '{word}': expected a class of a plant, got {candidate.__name__} without "
                f"{', '.join(missing_members)}"
            )
        return
    if not callable(candidate):
        raise ModelError(f"robot '{word}': expected a plant, a class or a function, got {candidate!r}")
    at = getattr(candidate, "__module__", None)
    if at != module.__name__:
        raise ModelError(f"robot '{word}': expected a function that this file defines, got one of module {at}")
    gives = getattr(candidate, "__annotations__", {}).get("return", Plant)
    named = gives if isinstance(gives, str) else getattr(gives, "__name__", str(gives))
    if named in (
        "None",
        "NoneType",
        *(kind.__name__ for kind in (str, bytes, int, float, bool, list, dict, tuple, set)),
    ):
        raise ModelError(
            f"robot '{word}': expected a function that returns a plant, got one with the annotation {named}"
        )


_EXPECTED = {"bool": "true or false", "int": "a whole number", "float": "a number", "str": "a text"}
_LISTS = ("list", "tuple", "Sequence")


def _annotated(place: str, annotation: Any, value: Any) -> Any:
    """Return a value as a keyword's annotation has it; of other annotations than simple ones, the value itself."""
    name = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    name = name.removesuffix(" | None")
    if name.partition("[")[0].rpartition(".")[2] in _LISTS:
        if isinstance(value, str):
            raise ModelError(f"{place}: expected a list in brackets, such as [1, 2], got {value!r}")
        return tuple(value) if name.startswith("tuple") and isinstance(value, list) else value
    if name not in _EXPECTED or value is None:
        return value
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    fits = {
        "bool": isinstance(value, bool), "int": number and float(value).is_integer(), "float": number,
        "str": number or isinstance(value, (str, bool)),
    }[name]  # fmt: skip
    if not fits:
        raise ModelError(f"{place}: expected {_EXPECTED[name]}, got {value!r}")
    return {"bool": bool, "int": int, "float": float, "str": str}[name](value)


def _called(build: Any, values: dict[str, Any], word: str) -> Any:
    try:
        takes = inspect.signature(build)
    except (TypeError, ValueError):
        takes = None
    if takes is not None:
        anything = any(p.kind is p.VAR_KEYWORD for p in takes.parameters.values())
        for key in () if anything else values:
            if key not in takes.parameters:
                raise UnknownNameError(f"parameter of '{word}'", key, takes.parameters)
        try:
            takes.bind(**values)
        except TypeError as fault:
            raise ModelError(f"robot '{word}': {fault}") from None
    declared = parameters_of(keywords_of(build) or object)
    for key in values:
        place = f"robot '{word}': {key}"
        if key in declared:
            values = {**values, key: read_declared(place, declared[key], values[key])}
        elif takes is not None and key in takes.parameters:
            values = {**values, key: _annotated(place, takes.parameters[key].annotation, values[key])}
    try:
        return build(**values)
    except RtmmsError:
        raise
    except Exception as fault:
        raise ModelError(f"robot '{word}': {sentence_of(fault, str(path_of('robot', word).resolve()))}") from fault
