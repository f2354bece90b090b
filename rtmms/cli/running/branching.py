"""Run that continues from a recorded moment of a log.

The module has the log, the settings that stay, and the way of the plant and its controllers to that moment.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rtmms.base.contract import MODES
from rtmms.base.errors import ModelError, RtmmsError, safe_text
from rtmms.base.trust import is_file, split_word
from rtmms.cli.option_types import settings
from rtmms.plant.loading import robots
from rtmms.record.log import Log, Start, open_log
from rtmms.record.origin import Branch, branch_of, rebuild_plant, refuse_untrusted, sha256_of
from rtmms.scenario.plant import called_names
from rtmms.scenario.run_options import run_options
from rtmms.version import VERSION

if TYPE_CHECKING:
    from rtmms.loop.chores import Agenda
    from rtmms.plant.protocol import Array, Plant

DEFAULT_DURATION_S = 20.0
"""Default duration of a run from the end of a log, s."""


@dataclass(frozen=True)
class Parent:
    """Log that a run continues from.

    Attributes
    ----------
    log : Log
        The log.
    robot, trusted : str | None, bool
        As the user named or confirmed it, see rtmms.record.origin.rebuild_plant.
    seconds : float
        Simulated time at which the run begins, s.
    step : int
        Its first step.
    run : int
        Run of the log; resets divide runs.
    changed : Mapping[str, Any]
        Values that the run sets at its first step, by name.
    same_controllers : bool
        It has those of the log, word for word.
    faulty : bool, default False
        A fault is among the changes.
    """

    log: Log
    robot: str | None
    trusted: bool
    seconds: float
    step: int
    run: int
    changed: Mapping[str, Any]
    same_controllers: bool
    faulty: bool = False

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of the log's plant, as they were given, without the coupling."""
        return {key: item for key, item in self.log.origin["parameters"].items() if key != "coupling"}

    def built(self) -> Plant:
        """Build the plant of the log, with faults where the run is to have some.

        Returns
        -------
        Plant
            The plant, at its reset.
        """
        origin = {**self.log.origin, "faults": self.log.origin.get("faults") or self.faulty}
        return rebuild_plant(origin, self.robot, trusted=self.trusted)

    def replayed(self, plant: Plant) -> tuple[Branch, Array | None]:
        """Replay the log up to the start of the run.

        Parameters
        ----------
        plant : Plant
            The plant; it is at that moment afterwards.

        Returns
        -------
        tuple[Branch, Array | None]
            The branch, and the command of the step before.

        Raises
        ------
        RtmmsError
            The replay does not give the bits of the log.
        """
        from rtmms.record.rerun import play

        path, result = self.log.path, play(self.log, plant, (self.run, self.step))
        if result.first is not None:
            raise RtmmsError(
                f"--from {path}: the replay of the log differs from the log: {safe_text(str(result.first))}"
            )
        if result.unchecked:
            raise RtmmsError(f"--from {path}: cannot be replayed to {self.seconds:g} s: {result.unchecked}")
        before = branch_of(self.log.origin)
        line = () if before is None else (
            {"log": before.log, "sha256": before.sha256, "seconds": before.seconds}, *before.before,
        )  # fmt: skip
        state, hashed = plant.snapshot(), sha256_of(path)
        return Branch(str(path), hashed, self.seconds, self.step, state, result.values, line), result.command

    def not_continued(self, values: Mapping[str, Any]) -> list[str]:
        """Return what the log had and the run does not continue, in sentences.

        Parameters
        ----------
        values : Mapping[str, Any]
            Present values of what the log's requests set, by name.

        Returns
        -------
        list[str]
            Changes after the moment, and faults in force.
        """
        end = self.log.end
        changes = end.fields.get("changes") or () if end is not None else ()
        later = [change for change in changes if change["run"] == self.run and change["step"] >= self.step]
        faults = [name for name, value in values.items() if name.startswith("fault.") and value]
        result = []
        if later:
            first = later[0]["step"] * float(self.log.origin["dt"])
            result.append(
                f"--from {self.log.path}: the changes of the log from t = {first:g} s on (events, requests: "
                f"{len(later)}) are not repeated; --set sets values at the start"
            )
        if faults:
            result.append(
                f"--from {self.log.path}: in force as in the log: {', '.join(faults)}; --set {faults[0]}= ends it"
            )
        return result

    def states(self) -> Iterator[tuple[int, Mapping[str, Array]]]:
        """Return the states that the controllers received before.

        Yields
        ------
        tuple[int, Mapping[str, Array]]
            Each step of the run, and the outputs before it.
        """
        log, run = self.log, -1
        before: tuple[int, Mapping[str, Array]] | None = None
        for row in log.rows():
            if isinstance(row, Start):
                run, before = run + 1, (row.step, log.split(row.outputs))
                continue
            if run != self.run:
                continue
            if row.step >= self.step:
                return
            if before is not None:
                yield before
            before = row.step + 1, log.split(row.outputs)
        if before is not None and before[0] < self.step:
            yield before

    def agenda(self, plant: Plant) -> Agenda:
        """Return the changes at the first step.

        Parameters
        ----------
        plant : Plant
            The plant.

        Returns
        -------
        Agenda
            The agenda.

        Raises
        ------
        ModelError
            The plant has no such parameter.
        """
        from rtmms.loop.chores import Agenda, ScheduledChange
        from rtmms.scenario.plant import check_setting

        if not self.changed:
            return Agenda()
        for name, value in self.changed.items():
            check_setting(name, value, plant, "--set")
        return Agenda([ScheduledChange(self.step, "", self.changed, "--set")])


def parent_run(
    word: str,
    robot: str | None,
    option_values: dict[str, Any],
    typed: Collection[str],
    controllers: tuple[str, ...] | None,
) -> tuple[str, dict[str, Any], tuple[str, ...]]:
    """Return robot, options and controllers of a run from LOG@SECONDS, with its parent among the options.

    Parameters
    ----------
    word : str
        LOG@SECONDS.
    robot : str | None
        Robot of the command line; None: the log's.
    option_values : dict[str, Any]
        Options by name; trust_log is among them.
    typed : Collection[str]
        Names of the options on the command line; the others are the log's.
    controllers : tuple[str, ...] | None
        None: those of the log.

    Returns
    -------
    tuple[str, dict[str, Any], tuple[str, ...]]
        Robot, options, controllers.

    Raises
    ------
    ModelError
        The run is impossible.
    """
    name, at, text = word.rpartition("@")
    if not at or not name:
        raise ModelError(f"--from {word}: expected LOG@SECONDS")
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds) or seconds < 0.0:
        raise ModelError(f"--from {word}: expected LOG@SECONDS with a number >= 0, got '{text}'")
    trusted = bool(option_values.get("trust_log", False))
    log = open_log(Path(name))
    origin = log.origin
    version = origin["versions"]["rtmms"]
    if version != VERSION:
        raise ModelError(
            f"--from {word}: expected a log of this version, rtmms {VERSION}, got one of {safe_text(version)}"
        )
    logged_robot, known = origin["robot"], robots()
    if robot is not None and robot.endswith(".toml"):
        raise ModelError(
            f"--from {word}: expected a robot or none, got the scenario {robot}; set parameters with --set"
        )
    if robot is not None and robot != logged_robot and (logged_robot in known or robot in known):
        raise ModelError(f"--from {word}: expected the robot of the log, '{safe_text(logged_robot)}', got '{robot}'")
    named = robot if robot is not None and robot not in known else None
    if named is None:
        refuse_untrusted(origin, trusted=trusted)
    run, first, end = _span(log, word)
    step = round(seconds / origin["dt"])
    if not first <= step <= end:
        from_s, to_s = first * origin["dt"], end * origin["dt"]
        raise ModelError(
            f"--from {word}: expected a time from {from_s:g} s to {to_s:g} s, as the log has no others, got "
            f"{seconds:g} s"
        )
    options = [run_option for run_option in run_options().values() if run_option.name in typed]
    for option in options:
        if option.not_with_log:
            raise ModelError(f"{option.word}: not possible with --from: {option.not_with_log}")
    out = dict(option_values)
    stored = {"dt": origin["dt"], "preset": origin["preset"], "seed": origin["seed"],
            "coupling": origin["parameters"].get("coupling")}  # fmt: skip
    for option in options:
        if option.of_log and option_values[option.name] != stored[option.name]:
            raise ModelError(
                f"{option.word} {option_values[option.name]}: --from continues the log, so expected its value "
                f"{stored[option.name]}; remove the option"
            )
    changed = settings(out.pop("set_", ()))
    for key in ("dt", "preset", "coupling"):
        if key in changed:
            raise ModelError(
                f"--set {key}={changed[key]}: --from continues the log, so this parameter has its logged value; "
                "remove the option"
            )
    out |= stored
    out["estimate"] = bool(origin.get("estimate"))
    if "mode" not in typed and origin["mode"] in MODES:
        out["mode"] = origin["mode"]
    if "rate" not in typed and origin.get("rate"):
        out["rate"] = float(origin["rate"])
    if "duration" not in typed:
        out["duration"] = (end - step) * origin["dt"] if end > step else DEFAULT_DURATION_S
    recorded = _recorded_controllers(origin)
    chosen = recorded if controllers is None else controllers
    if not option_values.get("links"):
        out["links"] = _recorded_links(origin, chosen)
    if controllers is None:
        _refuse_files(recorded, word, trusted=trusted)
    faulty = any(key.startswith("fault.") for key in changed)
    result = Parent(log, named, trusted, step * origin["dt"], step, run, changed, chosen == recorded, faulty)
    return named or logged_robot, out | {"parent": result}, chosen


def _span(log: Log, word: str) -> tuple[int, int, int]:
    """Return the log's last run: its number, first step, and the step after the last."""
    spans = log.spans()
    if not spans or not any(end > first for first, end in spans):
        raise ModelError(f"--from {word}: the log has no steps")
    return len(spans) - 1, *spans[-1]


def _recorded_controllers(origin: Mapping[str, Any]) -> tuple[str, ...]:
    controllers = origin.get("controllers")
    return tuple(item for item in controllers if isinstance(item, str)) if isinstance(controllers, list) else ()


def _recorded_links(origin: Mapping[str, Any], controllers: tuple[str, ...]) -> tuple[str, ...]:
    """Return the recorded links of controllers that the run has."""
    result, names = origin.get("links"), called_names(controllers)
    recorded = [item for item in result if isinstance(item, str)] if isinstance(result, list) else []
    return tuple(item for item in recorded if item.partition(":")[0] in names)


_NAMES_A_FILE = re.compile(r"[/\\~]|\.[A-Za-z_.]")


def _refuse_files(controllers: tuple[str, ...], word: str, *, trusted: bool) -> None:
    """Raise ModelError where a controller that the log names is a file, or names one: a log is data."""
    for controller in controllers:
        if not trusted and (is_file(split_word(controller)[0]) or _NAMES_A_FILE.search(controller)):
            raise ModelError(
                f"--from {word}: the log's controller '{safe_text(controller)}' names a file, which would "
                "run as code: if you "
                "trust the log, add --trust-log, or name a controller yourself (--controller)"
            )
