"""What was fitted as a file of parameters that `--preset FILE.toml` and `rtmms.load(robot, preset=FILE)` take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rtmms.identification.recording import Recording
from rtmms.identification.unknowns import Kind, Unknown, split, value_of
from rtmms.toml_file import read_toml, toml_comment, toml_key, toml_value
from rtmms.whole_file import beside, sealed


def preset_text(recording: Recording, asked: Sequence[Unknown], values: Mapping[str, float],
                errors: Mapping[str, float], source: str) -> str:  # fmt: skip
    """TOML: the recording's own parameters with the fitted ones in their place, standard errors as comments."""
    given: dict[str, Any] = {}
    if recording.preset is not None and recording.preset.endswith(".toml"):
        given |= read_toml(recording.preset)
    elif recording.preset is not None:
        given["preset"] = recording.preset
    given |= dict(recording.parameters)
    plant = recording.build()
    said: dict[str, list[str]] = {}
    for one in asked:
        if one.kind is not Kind.MODEL:
            continue
        root, element = split(one.name)
        if element < 0:
            given[root] = values[one.name]
        else:
            if not isinstance(given.get(root), list):
                given[root] = list(value_of(plant, root))
            given[root][element] = values[one.name]
        where = "" if element < 0 else f"[{element}] "
        said.setdefault(root, []).append(f"{where}+- {errors[one.name]:.3g}")
    lines = [""]
    for key, value in given.items():
        if value is None:
            continue
        comment = f"  {toml_comment(', '.join(said[key]))}" if key in said else ""
        lines.append(f"{toml_key(key)} = {toml_value(value)}{comment}")
    return sealed(toml_comment(f"{recording.robot}, fitted by rtmms identify to {source}"), "\n".join(lines) + "\n")


def write_text(path: Path, text: str, option: str) -> None:
    """Write a text as UTF-8, whole or not at all; RtmmsError where it cannot be written."""
    with beside(path, option) as part:
        part.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
