"""Options of a run, each declared once: type, default, help, and its use by scenarios, studies and logs.

A field of RunOptions determines the option of `rtmms run` and `rtmms serve`, the key of a scenario with its refusals,
the field of a run's plan, the option of `rtmms sweep`, and the field of a study's case.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, replace
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from rtmms.base.contract import MAX_COUNT, MISS_WORDS, MODES, OVERRUN_WORDS
from rtmms.base.local_addresses import NamesAddress
from rtmms.base.parameters import Parameter
from rtmms.loop.impairment import Impairment
from rtmms.wire.addresses import EXCHANGE, STEP, TELEMETRY


class StudyUse(Enum):
    """Use of an option by a study (`rtmms sweep`, `rtmms envelope`), whose cases are runs in lockstep.

    CARRIED determines the numbers of a case, MACHINE cannot change them, FILE names a file of a single run, which a
    study does not write. REFUSED is for all others: a scenario of a study must have the option's default, or not name
    the option.
    """

    CARRIED = 0
    MACHINE = 1
    FILE = 2
    REFUSED = 3


LOCKSTEP = "a case runs in lockstep, without a schedule"
OF_A_SCHEDULE = f"{LOCKSTEP}, and no step overruns; leave it out"
"""Reason why a study refuses an option that only a schedule gives a meaning."""
_MISSED = f"{LOCKSTEP}, and no command is missed; leave it out"
NO_PEERS = "a study has no peers but its controllers; leave it out"


@dataclass(frozen=True)
class Option:
    """Declaration of an option of a run, beside its type and its default.

    Attributes
    ----------
    help : str
        One sentence for `--help`; `{default}` stands for the default.
    flag : str, default ''
        Name on the command line; `--` and the field's name where it is ''.
    metavar : str, default ''
        Value in `--help`; '' for the one of the type.
    unit, zero : str, bool
        Unit of a number, and whether it may be 0.
    least, max_value : int | None, optional
        Range of a whole number.
    names, kind : tuple[str, ...], str
        Possible words of a text, and their name in an error.
    group : str, default ''
        Entry points whose names a shell completes.
    writes : str | None, optional
        Ending of a file that the run writes, '' where several are possible; None for an option that is no such file.
    number : bool, default False
        A text that may be written as a number in a scenario.
    limit : bool, default False
        A text that states a count or a share of steps; a count may be written as a number in a scenario.
    commands : tuple[str, ...], default ('run', 'serve')
        Commands among `run` and `serve` that have it.
    served : Any, default ...
        Default of `serve` where it differs.
    key : bool, default True
        A scenario may have it as a key; other options have a table there, or are not its own.
    not_in_file : str, default ''
        Why a scenario must not have the key; `{value}` stands for the value.
    timed : bool, default False
        Only a mode with a schedule has it.
    study, reason, study_help : StudyUse, str
        Use by a study; why a study refuses it; help of `rtmms sweep` where it differs.
    varies : bool, default False
        `rtmms sweep --vary` may vary it.
    of_log : bool, default False
        With `--from`, it stays as in the log.
    not_with_log : str, default ''
        Why a run with `--from` must not have it.
    name, field, hint, default : str, Any
        Name in click and in scenarios; name of the field, its type with metadata, and its default.
    """

    help: str
    flag: str = ""
    metavar: str = ""
    unit: str = ""
    zero: bool = False
    least: int | None = None
    max_value: int | None = None
    names: tuple[str, ...] = ()
    kind: str = ""
    group: str = ""
    writes: str | None = None
    number: bool = False
    limit: bool = False
    commands: tuple[str, ...] = ("run", "serve")
    served: Any = ...
    key: bool = True
    not_in_file: str = ""
    timed: bool = False
    study: StudyUse = StudyUse.REFUSED
    reason: str = "a study does not carry this option of `rtmms run`; leave it out"
    study_help: str = ""
    varies: bool = False
    of_log: bool = False
    not_with_log: str = ""
    name: str = ""
    field: str = ""
    hint: Any = None
    default: Any = None

    @property
    def word(self) -> str:
        """Name on the command line."""
        return self.flag or f"--{self.name.replace('_', '-')}"

    @property
    def file_key(self) -> str:
        """Key of a scenario: the name on the command line, with underscores."""
        return self.word.lstrip("-").replace("-", "_")

    @property
    def value_type(self) -> Any:
        """Type of a value without None: bool, int, float, str or Path; tuple or Mapping where it may be repeated."""
        hint = typing.get_args(self.hint)[0]
        inner = typing.get_args(hint)[0] if type(None) in typing.get_args(hint) else hint
        return typing.get_origin(inner) or inner

    @property
    def repeats(self) -> bool:
        """Whether the command line may name it several times."""
        return self.value_type in (tuple, Mapping)

    @property
    def number_declared(self) -> Parameter:
        """Declaration of the value of a numeric option, for readers of other texts than a command line."""
        if self.value_type is int:
            low: float | None = 0 if self.least is None else self.least
            return Parameter(self.help, self.unit, ge=low, le=self.max_value, kind=int, hint=int)
        return Parameter(self.help, self.unit, ge=0 if self.zero else None, kind=float, hint=float)

    def help_text(self, default: Any, *, of_study: bool = False) -> str:
        """Return the help with a default.

        Parameters
        ----------
        default : Any
            The default.
        of_study : bool, default False
            The help is for `rtmms sweep`.

        Returns
        -------
        str
            One sentence.
        """
        text = self.study_help if of_study and self.study_help else self.help
        listed = "unlimited" if default is None else f"{default:g}" if isinstance(default, float) else default
        return text.format(default=listed)

    @property
    def is_endpoint(self) -> bool:
        """Whether the value is an address at which the plant listens."""
        return any(isinstance(arg, NamesAddress) for arg in typing.get_args(self.hint))


@dataclass(frozen=True)
class RunOptions:
    """Options of a run, in the order of their help. Times in s; None: the robot's own, the default, or unlimited.

    The declaration of each field has its meaning, unit and range.

    Attributes
    ----------
    robot : str
        Name of the robot, or a file.
    exchange : str | None, optional
        Endpoint at which peers send their hello.
    step : str | None, optional
        Endpoint of states and commands.
    telemetry : str | None, optional
        Endpoint of observers.
    """

    # fmt: off
    robot: str
    from_: Annotated[str | None, Option(
        "Continue a log's run from that time. Options that are not given remain as in the log; --set acts at that "
        "time.",
        flag="--from", metavar="LOG@SECONDS", commands=("run",), key=False,
    )] = None
    trust_log: Annotated[bool, Option(
        "Allow the files that the log of --from names to run.", commands=("run",), key=False,
    )] = False
    controllers: Annotated[tuple[str, ...], Option(
        "A controller, each in a process of its own; may be repeated; 'none' for none.",
        flag="--controller", metavar="NAME[:KEY=VALUE,...]", group="rtmms.controllers", commands=("run",), key=False,
        study=StudyUse.CARRIED, study_help="As rtmms run.",
    )] = ()
    duration: Annotated[float | None, Option(
        "Simulated time (default {default}).", unit="s", served=None,
        study=StudyUse.CARRIED, study_help="Simulated time of a run (default {default}).", varies=True,
    )] = 20.0
    bridges: Annotated[tuple[str, ...], Option(
        "A bridge to other software, each in a process of its own; may be repeated.",
        flag="--bridge", metavar="NAME[:KEY=VALUE,...]", group="rtmms.bridges", key=False, reason=NO_PEERS,
    )] = ()
    links: Annotated[tuple[Impairment, ...], Option(
        "Impair the link of a controller, each direction, in simulated time: delay_ms, jitter_ms, loss, duplicate, "
        "reorder, rate_hz, from_s, until_s; may be repeated.",
        flag="--link", metavar="CONTROLLER:KEY=VALUE,...", key=False,
        study=StudyUse.CARRIED, study_help="As rtmms run.",
    )] = ()
    degrade: Annotated[bool, Option(
        "Change to cheaper variants of the robot when steps are about to overrun, and back later.",
        reason=f"{LOCKSTEP}: the plant stays as it is; leave it out",
    )] = False
    view: Annotated[bool, Option("Show the robot in the browser; the same as --bridge view.", reason=NO_PEERS)] = False
    mode: Annotated[str, Option(
        "Pace of the steps (default {default}).", names=MODES, kind="mode",
        reason='a case runs in lockstep; expected mode = "lockstep", or no mode',
    )] = "realtime"
    rate: Annotated[float, Option(
        "Simulated time over wall time (default {default}).", timed=True, reason=OF_A_SCHEDULE,
    )] = 1.0
    dt: Annotated[float | None, Option(
        "Simulated time of a step (default: the robot's own).", unit="s", study=StudyUse.CARRIED, varies=True,
        of_log=True,
    )] = None
    deadline: Annotated[float | None, Option(
        "Time from the start of a step by which its commands must arrive.", unit="s", timed=True, reason=OF_A_SCHEDULE,
    )] = None
    on_miss: Annotated[str, Option(
        "Replacement of a missing command (default {default}).", names=MISS_WORDS[1:], kind="miss policy",
        reason=_MISSED,
    )] = "hold"
    on_overrun: Annotated[str, Option(
        "Reaction of the schedule to a step that takes longer than its period (default {default}).",
        names=OVERRUN_WORDS, kind="overrun policy", reason=OF_A_SCHEDULE,
    )] = "skip"
    hold_timeout: Annotated[float, Option(
        "Age at which a held value returns to neutral (default {default}).", unit="s", reason=_MISSED,
    )] = 0.5
    catchup: Annotated[int, Option(
        "Steps that catchup may be behind, at most (default {default}).", least=1, max_value=MAX_COUNT,
        reason=OF_A_SCHEDULE,
    )] = 5
    max_stale: Annotated[str | None, Option(
        "Limit of steps with a value older than its sender allows: end the run after more than N, or exit with 1 if "
        "they are more than P% at the end.", metavar="N|P%", limit=True, reason=_MISSED,
    )] = None
    max_misses: Annotated[str | None, Option(
        "Limit of steps without a command in time: end the run after more than N, or exit with 1 if they are "
        "more than P% at the end.", metavar="N|P%", limit=True, reason=_MISSED,
    )] = None
    max_consecutive_misses: Annotated[int | None, Option(
        "End the run after more than N misses in a row.", metavar="N", least=0, max_value=MAX_COUNT, reason=_MISSED,
    )] = None
    max_overruns: Annotated[str | None, Option(
        "Limit of steps that took longer than their period: end the run after more than N, or exit with 1 if they are "
        "more than P% at the end.", metavar="N|P%", limit=True, reason=OF_A_SCHEDULE,
    )] = None
    max_consecutive_overruns: Annotated[int | None, Option(
        "End the run after more than N overruns in a row.", metavar="N", least=0, max_value=MAX_COUNT,
        reason=OF_A_SCHEDULE,
    )] = None
    on_surface: Annotated[str, Option(
        "Reaction to a robot in water nearer to the surface than half its span: a warning (warn, default), the end of "
        "the run with exit status 1 (stop), or none (ignore).",
        names=("warn", "stop", "ignore"), kind="surface policy",
        reason="a sweep does not look at the surface; leave it out",
    )] = "warn"
    peer_failure: Annotated[str, Option(
        "Exit status after a controller or bridge of the run crashed, or all its commands were refused: 1 (fail, "
        "default) or 0 (continue). Until the end the run applies the miss policy.",
        names=("fail", "continue"), kind="peer failure",
        reason="a controller that fails makes a row with its error; leave it out",
    )] = "fail"
    grace: Annotated[float, Option(
        "Time from the start during which neither limits nor abort apply (default {default}).", unit="s", zero=True,
        reason=_MISSED,
    )] = 0.0
    coupling: Annotated[str | None, Option(
        "Method by which the robot's parts share a step, if it has several (rtmms list ROBOT).", metavar="NAME",
        study=StudyUse.CARRIED, of_log=True,
    )] = None
    parameters: Annotated[Mapping[str, Any], Option(
        "Set a parameter; may be repeated.", flag="--set", name="set_", metavar="KEY=VALUE", key=False,
        study=StudyUse.CARRIED, study_help="A parameter of all runs; may be repeated.",
    )] = dataclasses.field(default_factory=dict)
    preset: Annotated[str | None, Option(
        "A named set of the robot's parameters, or a file.", metavar="NAME|FILE.toml", study=StudyUse.CARRIED,
        of_log=True,
    )] = None
    sensors: Annotated[str, Option(
        "Outputs for controllers: the true state (default), typical instruments, or those of a file.",
        metavar="ideal|typical|FILE.toml", key=False, study=StudyUse.CARRIED, study_help="As rtmms run.",
        not_with_log="the log's sensors stay",
    )] = "ideal"
    seed: Annotated[int, Option(
        "Seed of all random numbers (default {default}).", least=0, max_value=2**63 - 1,
        study=StudyUse.CARRIED, study_help="Seed of each run (default {default}).", varies=True, of_log=True,
    )] = 0
    priority: Annotated[str, Option(
        "Real-time priority: where permitted (default), none, or SCHED_FIFO N.", metavar="auto|off|N", number=True,
        study=StudyUse.MACHINE,
    )] = "auto"
    keys: Annotated[Path | None, Option(
        "Encrypt, and admit only the keys in this folder (rtmms keys DIR creates one).", metavar="DIR",
        not_in_file="is named on the command line only (--keys DIR), got '{value}' in a scenario",
        study=StudyUse.MACHINE,
    )] = None
    affinity: Annotated[str, Option(
        "Core of the loop, and after ':' those of controllers. Default: the last core for both, where permitted.",
        metavar="auto|off|CORE[:CORE,...]", study=StudyUse.MACHINE,
    )] = "auto"
    exchange: Annotated[str | None, NamesAddress("listen"), Option(
        f"Address at which peers send their hello (default {EXCHANGE}).", metavar="ENDPOINT", study=StudyUse.MACHINE,
    )] = None
    step: Annotated[str | None, NamesAddress("listen"), Option(
        f"Address of states and commands (default {STEP}).", metavar="ENDPOINT", study=StudyUse.MACHINE,
    )] = None
    telemetry: Annotated[str | None, NamesAddress("listen"), Option(
        f"Address at which observers listen (default {TELEMETRY}).", metavar="ENDPOINT", study=StudyUse.MACHINE,
    )] = None
    log: Annotated[Path | None, Option(
        "Record every step, for rtmms replay, log and plot; a log of that name is overwritten.", metavar="FILE.mcap",
        writes=".mcap", study=StudyUse.FILE,
    )] = None
    force: Annotated[bool, Option(
        "Let --log, --trace and --figure overwrite files of other kinds, too.",
        not_in_file="is an option of the command line alone", study=StudyUse.MACHINE,
    )] = False
    telemetry_hz: Annotated[float, Option(
        "States per second of wall time for observers, at most (default {default}).", unit="Hz", study=StudyUse.MACHINE,
    )] = 100.0
    as_json: Annotated[bool, Option(
        "Print the report as one JSON object.", flag="--json", study=StudyUse.MACHINE,
    )] = False
    quiet: Annotated[bool, Option("Print no progress on standard error.", study=StudyUse.MACHINE)] = False
    figure: Annotated[Path | None, Option(
        "Draw the run.", metavar="FILE.png", writes="", commands=("run",), study=StudyUse.FILE,
    )] = None
    trace: Annotated[Path | None, Option(
        "Store every step's command, for rtmms replay.", metavar="FILE.npz", writes=".npz", commands=("run",),
        study=StudyUse.FILE, not_with_log="use --log, from t = 0 on",
    )] = None
    estimate: Annotated[bool, Option(
        "Run the estimator beside the plant; the report states its error.", commands=("run",),
        study=StudyUse.CARRIED, study_help="As rtmms run.", not_with_log="the log's estimator stays",
    )] = False
    tracking_start: Annotated[float, Option(
        "Simulated time from which distances from set-points count (default {default}).", unit="s", zero=True,
        commands=("run",), study=StudyUse.CARRIED, study_help="As rtmms run.",
    )] = 0.0
    # fmt: on

    def load_parameters(self) -> dict[str, Any]:
        """Return the keywords for rtmms.load beside dt and preset.

        The coupling is among them only if it was requested, as not every robot has one.

        Returns
        -------
        dict[str, Any]
            Keywords by name.
        """
        if self.coupling is None:
            return dict(self.parameters)
        return {**self.parameters, "coupling": self.coupling}


def option_declaration(name: str, hint: Any, default: Any) -> Option | None:
    """Return the declaration of a field of RunOptions.

    Parameters
    ----------
    name : str
        Name of the field.
    hint : Any
        Its type with metadata.
    default : Any
        Its default.

    Returns
    -------
    Option | None
        None for a field that is no option.
    """
    for option in typing.get_args(hint):
        if isinstance(option, Option):
            return replace(option, name=option.name or name, field=name, hint=hint, default=default)
    return None


@cache
def run_options() -> Mapping[str, Option]:
    """Return the options of a run by name, in the order of their help.

    The name is the field's, but for `set_`, which fills `parameters`.

    Returns
    -------
    Mapping[str, Option]
        Declarations by name.
    """
    hints = typing.get_type_hints(RunOptions, include_extras=True)
    defaults = {field.name: () if field.default is MISSING else field.default for field in fields(RunOptions)}
    result = [option_declaration(name, hints[name], default) for name, default in defaults.items()]
    return {item.name: item for item in result if item is not None}
