"""Commands of a run in a file, and the rerun that must give the same bits."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rtmms.base.contract import OUTCOME_WORDS
from rtmms.base.errors import DivergedError, ModelError
from rtmms.base.files import check_npz, new_file_beside, open_input
from rtmms.loop.ports import Applied
from rtmms.loop.trace import CommandTrace
from rtmms.plant.description import describe_plant
from rtmms.record.origin import rebuild_plant, refuse_origin, to_json_types
from rtmms.version import VERSION

if TYPE_CHECKING:
    import numpy.typing as npt

    from rtmms.loop.ports import Array
    from rtmms.plant.protocol import Plant

FORMAT = "rtmms command trace 1"


@dataclass(frozen=True)
class TraceContents:
    """Contents of a trace file.

    Parameters
    ----------
    origin : Mapping[str, Any]
        robot, dt, preset, parameters, seed, mode, version, actuators, columns, ended and altered.
    command : Array
        (steps, n) commands as the plant received them.
    outcome : npt.NDArray[np.uint8]
        (steps,) a StepOutcome.
    seq, lateness_ns : npt.NDArray[np.int64]
        (steps,) numbers of the commands and their lateness, ns.
    check : Array
        (steps, c) small outputs after each step, in the order of origin['columns'].
    state : bytes
        The plant's snapshot at the end.
    """

    origin: Mapping[str, Any]
    command: Array
    outcome: npt.NDArray[np.uint8]
    seq: npt.NDArray[np.int64]
    lateness_ns: npt.NDArray[np.int64]
    check: Array
    state: bytes


@dataclass(frozen=True)
class FirstDifference:
    """First step with a quantity at its end that differs, in any bit, from the recorded one.

    Parameters
    ----------
    step : int
        Index of the step.
    quantity : str
        Name of the quantity.
    recorded, replayed : Any
        Its values.

    Examples
    --------
    >>> str(FirstDifference(3, "depth", 1.0, 1.5))
    'step 3: depth: recorded 1.0, replayed 1.5'
    """

    step: int
    quantity: str
    recorded: Any
    replayed: Any

    def __str__(self) -> str:
        """Return a sentence about the difference."""
        return f"step {self.step}: {self.quantity}: recorded {self.recorded!r}, replayed {self.replayed!r}"


def save(path: Path, trace: CommandTrace, plant: Plant, origin: Mapping[str, Any]) -> None:
    """Write a finished run's trace.

    Parameters
    ----------
    path : Path
        The file.
    trace : CommandTrace
        The trace.
    plant : Plant
        The plant at the end of the run.
    origin : Mapping[str, Any]
        As in Recorded; plant and trace add their parts here.
    """
    about = describe_plant(plant)
    full = dict(origin) | {
        "format": FORMAT, "version": VERSION, "columns": trace.columns(), "outcomes": OUTCOME_WORDS,
        "actuators": [channel.name for channel in plant.actuators], "altered": trace.altered,
        "sensors": None if about.truth is None else to_json_types(about.sensors),
        "estimate": about.estimates, "description": to_json_types(about.parameters()),
    }  # fmt: skip
    steps = trace.steps
    with new_file_beside(path, "--trace") as part, part.open("wb") as file:
        np.savez(
            file, origin=np.array(json.dumps(full)), command=trace.command[:steps], outcome=trace.outcome[:steps],
            seq=trace.seq[:steps], lateness_ns=trace.lateness_ns[:steps], check=trace.check[:steps],
            state=np.frombuffer(plant.snapshot(), dtype=np.uint8),
        )  # fmt: skip


def load(path: Path) -> TraceContents:
    """Read a file that `save` wrote.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    TraceContents
        Its contents.

    Raises
    ------
    ModelError
        If it is another file.
    """
    try:
        with ExitStack() as stack:
            opened = stack.enter_context(open_input(path, expected="a log (run --log) or a trace (run --trace)"))
            if opened.read(4) != b"PK\x03\x04":
                raise ModelError(
                    f"{path}: expected a log (run --log) or a trace of commands (run --trace), got another file"
                )
            opened.seek(0)
            check_npz(opened, path)
            file = stack.enter_context(np.load(opened, allow_pickle=False))
            origin = json.loads(str(file["origin"]))
            result = origin.get("format") if isinstance(origin, dict) else origin
            if result != FORMAT:
                raise ModelError(f"{path}: expected a file of '{FORMAT}', got {result!r:.60}")
            refuse_origin(origin, str(path))
            arrays = {name: file[name] for name in ("command", "outcome", "seq", "lateness_ns", "check")}
            bad = np.argwhere(~np.isfinite(arrays["command"]))
            if len(bad):
                raise ModelError(
                    f"{path}: command of step {bad[0][0]}: must be finite, got {arrays['command'][tuple(bad[0])]}"
                )
            return TraceContents(origin=origin, state=file["state"].tobytes(), **arrays)
    except ModelError:
        raise
    except (
        OSError,
        ValueError,
        KeyError,
        EOFError,
        RecursionError,
        MemoryError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise ModelError(f"{path}: expected a command trace: {error}") from None


def replay(
    recorded: TraceContents, robot: str | None = None, *, trusted: bool = False
) -> tuple[Plant, FirstDifference | None]:
    """Step a new plant through the recorded commands.

    Parameters
    ----------
    recorded : TraceContents
        The trace.
    robot : str | None, optional
        Robot in place of the log's own, as the user named it; None: the log's own.
    trusted : bool, default False
        Whether the user declared that files which the log names may run.

    Returns
    -------
    tuple[Plant, FirstDifference | None]
        The plant at the end, and the first difference, None for none.

    Raises
    ------
    ModelError
        If the run was altered from outside (its state was restored or a parameter set), if the plant can no longer be
        built, or if it has other actuators or outputs.
    """
    origin = recorded.origin
    if origin["altered"]:
        step = origin["altered"][0]
        raise ModelError(
            f"a request changed the state or a parameter of the run before step {step}, and a trace does not contain "
            "it; record with --log, which does"
        )
    plant = rebuild_plant(origin, robot, trusted=trusted)
    plant.reset(origin["seed"])
    trace = CommandTrace(plant.actuators, plant.outputs, 1)
    if [channel.name for channel in plant.actuators] != origin["actuators"] or trace.columns() != origin["columns"]:
        raise ModelError(f"robot '{origin['robot']}' has other actuators or outputs now than in the recorded run")
    applied, first = Applied(), None
    for step, command in enumerate(recorded.command):
        try:
            plant.step(command)
        except DivergedError as error:
            return plant, first or FirstDifference(step, error.quantity, "sound", error.reason)
        trace.record(0, command, 0, applied, plant.observe())
        if first is None and trace.check[0].tobytes() != recorded.check[step].tobytes():
            first = _first_column(step, origin["columns"], recorded.check[step], trace.check[0])
    return plant, first or _final(recorded, plant)


def _first_column(step: int, columns: list[str], recorded: Array, replayed: Array) -> FirstDifference:
    at = int(np.flatnonzero(recorded.view(np.int64) != replayed.view(np.int64))[0])
    return FirstDifference(step, columns[at], float(recorded[at]), float(replayed[at]))


def _final(recorded: TraceContents, plant: Plant) -> FirstDifference | None:
    """Compare the whole state at the end, which has more than the small outputs."""
    state, last = plant.snapshot(), len(recorded.command) - 1
    if state == recorded.state:
        return None
    replayed = plant.observe()
    try:
        plant.restore(recorded.state)
        before = plant.observe()
        plant.restore(state)
    except ModelError as error:
        return FirstDifference(last, "state", str(error), "another model")
    for name, value in replayed.items():
        unequal = np.flatnonzero(np.atleast_1d(value).ravel() != np.atleast_1d(before[name]).ravel())
        if unequal.size:
            at = int(unequal[0])
            return FirstDifference(
                last, f"{name}.flat[{at}]", float(np.ravel(before[name])[at]), float(np.ravel(value)[at])
            )
    return FirstDifference(last, "state", f"{len(recorded.state)} bytes", f"{len(state)} bytes, not the same")
