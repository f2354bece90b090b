"""What a log is of: everything that is needed to build the same plant again, and to know what was run."""

from __future__ import annotations

import dataclasses
import datetime
import platform
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rtmms.plant
from rtmms.plant import Described, Estimating, Shaped, Veiled, bare
from rtmms.record.layout import FORMAT
from rtmms.record.origin_checks import refuse_foreign_code
from rtmms.user_file import is_file, path_of
from rtmms.version import VERSION

if TYPE_CHECKING:
    from rtmms.plant import Channel, Plant

LIBRARIES = ("numpy", "numba", "scipy", "pyzmq", "msgpack", "mcap")


def describe(plant: Plant, run: Mapping[str, Any]) -> dict[str, Any]:
    """JSON's own types.

    run   robot, preset, parameters, seed, mode and what else of the run is to be kept
    Adds format, dt, actuators, outputs, every parameter of the plant that it shows, versions, machine, command line.
    """
    return {
        **{key: plain(value) for key, value in run.items()},
        "format": FORMAT, "dt": plant.dt,
        "sensors": plain(plant.sensors) if isinstance(plant, Veiled) else None,
        "estimate": isinstance(plant, Estimating),
        "faults": hasattr(plant.truth if isinstance(plant, Veiled) else plant, "sound"),
        "actuators": channels(plant.actuators), "outputs": channels(plant.outputs),
        "description": plain(plant.parameters if isinstance(plant, Described) else None),
        "shape": plain(truth.shape) if isinstance(truth := bare(plant), Shaped) else None,
        "versions": _versions(), "machine": platform.platform(), "command_line": " ".join(sys.argv),
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
    }  # fmt: skip


def rebuilt(origin: Mapping[str, Any]) -> Plant:
    """The plant of a log or trace, with its sensors; ModelError where it can no longer be built."""
    code = origin["robot"]
    if is_file(code) or code.endswith(".fmu"):
        refuse_foreign_code(path_of("robot", code) if is_file(code) else Path(code), f"the log's robot '{code}'")
    plant = rtmms.plant.load(origin["robot"], dt=origin["dt"], preset=origin["preset"], **origin["parameters"])
    sensors = origin.get("sensors")
    if origin.get("faults"):
        from rtmms.sensing.faults import Faulty

        plant = Faulty(plant)
    if not sensors:
        return plant
    from rtmms.sensing.estimated import Estimated
    from rtmms.sensing.sensed import seen_through
    from rtmms.sensing.suite import built

    made = {name: built(name, said, {}) for name, said in sensors.items()}
    return Estimated(plant, made) if origin.get("estimate") else seen_through(plant, made)


def channels(found: Iterable[Channel]) -> list[dict[str, Any]]:
    """Actuators or outputs as a log describes them."""
    return [
        {
            "name": c.name, "unit": c.unit, "shape": [int(n) for n in c.shape], "frame": c.frame,
            "lower": plain(c.lower), "upper": plain(c.upper), "neutral": plain(c.neutral),
        }
        for c in found
    ]  # fmt: skip


def _versions() -> dict[str, str]:
    found = {"rtmms": VERSION, "python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def plain(value: Any) -> Any:
    """JSON's own types."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return value.tolist()
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
