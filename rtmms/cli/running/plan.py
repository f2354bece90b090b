"""What a command line asks of a run, as data, and the options that `run` and `serve` share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rtmms.bridging.plugins import check_bridge
from rtmms.cli.running.several import drivers, failing, shared_out, usual
from rtmms.cli.words import (
    COUPLING,
    MAX_COUNT,
    Installed,
    Near,
    Number,
    check_choice,
    options,
    refuse_figure,
    refuse_preset,
    settings,
)
from rtmms.contract import MISS_WORDS, MODES, OVERRUN_WORDS, TIMED
from rtmms.declared import fact
from rtmms.errors import ModelError, UnknownNameError
from rtmms.plant import builder
from rtmms.scenario import Scenario
from rtmms.scenario.links import from_words, refuse_unknown
from rtmms.scenario.plant import called_names
from rtmms.toml_file import read_toml
from rtmms.user_file import split_word
from rtmms.whole_file import KINDS, refuse_output
from rtmms.wire.endpoints.addresses import EXCHANGE, STEP, TELEMETRY
from rtmms.wire.peer.plugins import check_controller, check_robot

if TYPE_CHECKING:
    from rtmms.cli.running.branching import Parent
    from rtmms.loop.impairment import Impairment

PROFILES = ("ideal", "typical")
"""Of sensors, as rtmms.sensing.profile has them: named here, so that no word of a command line loads a compiler."""


@dataclass(frozen=True)
class Plan:
    """One run. Times in s; None: the robot's own, the default, or unlimited (duration).

    parent     the log that the run goes on from; dt, preset, parameters, and seed are its own then
    links      impairments of the links of controllers
    degrade    the plant may change to cheaper variants of itself
    may_move   the exchange endpoint may be another one where the default is busy
    """

    robot: str
    controllers: tuple[str, ...] = ()
    bridges: tuple[str, ...] = ()
    mode: str = "realtime"
    rate: float = 1.0
    dt: float | None = None
    duration: float | None = None
    deadline: float | None = None
    on_miss: str = "hold"
    on_overrun: str = "skip"
    hold_timeout: float = 0.5
    catchup: int = 5
    max_misses: int | None = None
    max_consecutive_misses: int | None = None
    max_overruns: int | None = None
    max_consecutive_overruns: int | None = None
    grace: float = 0.0
    coupling: str | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    preset: str | None = None
    sensors: str = "ideal"
    seed: int = 0
    priority: str = "auto"
    affinity: str = "auto"
    exchange: str | None = None
    step: str | None = None
    telemetry: str | None = None
    telemetry_hz: float = 100.0
    keys: Path | None = None
    figure: Path | None = None
    trace: Path | None = None
    log: Path | None = None
    force: bool = False
    as_json: bool = False
    quiet: bool = False
    tracking_from: float = 0.0
    estimate: bool = False
    scenario: Scenario | None = None
    parent: Parent | None = None
    links: tuple[Impairment, ...] = ()
    degrade: bool = False
    wait_for_claim: bool = False
    may_move: bool = True
    peer_failure: str = "fail"

    @property
    def called(self) -> str:
        """The robot's name on the wire: of a file, its own name without folder and ending; of FILE.py:NAME, NAME."""
        before, _, name = self.robot.rpartition(":")
        if before.endswith(".py"):
            return name
        return Path(self.robot).stem if "." in self.robot else self.robot

    def load_parameters(self) -> dict[str, Any]:
        """Keywords for rtmms.load beside dt and preset. A coupling goes along only if it was asked for: not every
        robot has one."""
        if self.coupling is None:
            return dict(self.parameters)
        return {**self.parameters, "coupling": self.coupling}


def plan(
    robot: str, words: dict[str, Any], controllers: tuple[str, ...] | None = (),
    robots: Sequence[Mapping[str, Any]] = (), faults: Iterable[str] = (),
) -> Plan:  # fmt: skip
    """Check what can be checked before anything is started; RtmmsError or click.UsageError for what is wrong.

    robots       several on one clock, robot is WORLD then: rtmms.world.members;  faults  that events begin
    words        the options by name, as click read them
    controllers  () for none; None for the robot's default
    """
    built_by = builder(robot)
    if robots:
        robots = [{"name": usual(k), **one} for k, one in enumerate(robots)]
        controllers = drivers(robots, controllers)
    elif controllers is None:
        driver = fact(built_by.module, "CONTROLLER")
        controllers = (driver,) if isinstance(driver, str) else ()
    if not robots:
        check_choice(robot, "coupling", words.get("coupling"))
    for word in () if robots else controllers:
        name = split_word(word)[0]
        check_controller(name)
        check_robot(name, robot)
    if words.pop("view", False):
        words["bridges"] = (*words.get("bridges", ()), "view")
    words["links"] = _links(words.get("links", ()), controllers, alone=words.pop("served", False))
    for word in words.get("bridges", ()):
        check_bridge(split_word(word)[0])
    parent = words.get("parent")
    if parent is None:  # a log's rate is its own
        _refuse_without_schedule(words)
    _refuse_twice(controllers)
    parameters = dict(parent.parameters) if parent is not None else settings(words.pop("set_", ()))
    for key in ("dt", "preset", "coupling") if parent is None else ():
        if key in parameters:
            raise ModelError(f"--set {key}={parameters[key]}: use --{key}")
    refuse_preset(words.get("preset"))
    if words.get("sensors", "ideal").endswith(".toml"):
        read_toml(words["sensors"], "--sensors")
    elif words.get("sensors", "ideal") not in PROFILES:
        raise UnknownNameError("sensors", words["sensors"], PROFILES, "or a FILE.toml")
    if words.get("priority") is not None:
        from rtmms.loop.machine.scheduling import parse_priority

        parse_priority(words["priority"])
    if words.get("affinity") is not None:
        from rtmms.loop.machine.cores import allowed, parse_affinity

        parse_affinity(words["affinity"], allowed())
    for option in ("trace", "log"):
        path = words.get(option)
        if path is not None:
            _refuse_ending(path, option)
            kind = None if words.get("force") else KINDS[_ENDINGS[option]]
            refuse_output(path, f"--{option}", kind, () if parent is None else (parent.log.path,), _OVERWRITES)
    figure = words.get("figure")
    if figure is not None:
        refuse_figure("--figure", figure, force=bool(words.get("force")))
    if words.get("log") is not None:
        from rtmms.record.needs import refuse_without_mcap

        refuse_without_mcap("--log")
    if words.get("degrade") and words.get("mode", "realtime") not in TIMED:
        raise ModelError(f"--degrade: expected a mode with a schedule ({', '.join(TIMED)}), got {words['mode']}")
    if words.get("degrade") and robots:
        raise ModelError("--degrade: expected one robot, got several on one clock")
    if robots:
        parameters = shared_out(robots, parameters, words)
        failing(parameters["robots"], faults)
        words = words | {"coupling": None, "estimate": False, "sensors": "ideal"}
    return Plan(robot=robot, controllers=controllers, parameters=parameters, **words)


def _links(words: tuple[str, ...], controllers: tuple[str, ...], *, alone: bool) -> tuple[Impairment, ...]:
    """Of --link; ModelError.  alone  the plant is served to whoever comes: names cannot be known"""
    found = from_words(words)
    if not alone:
        names = called_names(controllers)
        refuse_unknown(found, names, lambda k, _, text: ModelError(f"--link {words[k]}: {text}"))
    return found


def _refuse_without_schedule(words: Mapping[str, Any]) -> None:
    """ModelError for what only a mode with a schedule heeds."""
    mode = words.get("mode", "realtime")
    for option, none in (("rate", 1.0), ("deadline", None)):
        if mode not in TIMED and words.get(option, none) != none:
            raise ModelError(
                f"--{option} {words[option]:g}: the mode {mode} has no schedule; expected --mode {' or '.join(TIMED)}, "
                f"or no --{option}"
            )


def _refuse_twice(controllers: Sequence[str]) -> None:
    """ModelError for the same words twice: both would claim the same actuators."""
    for k, word in enumerate(controllers):
        if word in controllers[:k]:
            raise ModelError(f"--controller {word}: is given twice; expected controllers of different actuators")


def _refuse_ending(path: Path, option: str) -> None:
    """ModelError for a name that promises another kind of file than is written."""
    ending = path.suffix.lower()
    if ending in KINDS and ending != _ENDINGS[option]:
        way = "; rtmms log csv makes a table of a log" * (option == "log")
        raise ModelError(f"--{option} {path}: expected a name that ends in {_ENDINGS[option]}, got {ending}{way}")


_ENDINGS = {"log": ".mcap", "trace": ".npz"}
_OVERWRITES = "--force overwrites"
_COUNT = click.IntRange(0, MAX_COUNT)

lateness = options(
    click.option("--on-miss", type=Near("miss policy", MISS_WORDS[1:]), default="hold",
                 help="What replaces a missing command (default hold)."),
    click.option("--on-overrun", type=Near("overrun policy", OVERRUN_WORDS), default="skip",
                 help="What the schedule does when a step takes longer than its period (default skip)."),
    click.option("--hold-timeout", type=Number("s"), default=0.5,
                 help="Age at which a held value returns to neutral (default 0.5)."),
    click.option("--catchup", type=click.IntRange(1, MAX_COUNT), default=5,
                 help="Most steps catchup may owe (default 5)."),
    click.option("--max-misses", type=_COUNT, metavar="N", help="End the run after more than N misses."),
    click.option("--max-consecutive-misses", type=_COUNT, metavar="N", help="The same, for misses in a row."),
    click.option("--max-overruns", type=_COUNT, metavar="N", help="End the run after more than N overruns."),
    click.option("--max-consecutive-overruns", type=_COUNT, metavar="N", help="The same, for overruns in a row."),
    click.option("--peer-failure", type=Near("peer failure", ("fail", "continue")), default="fail",
                 help="A controller or bridge that the run started crashes, or all its commands are refused: the run "
                      "goes on by the miss policy and ends with exit status 1 (fail, default), or 0 (continue)."),
    click.option("--grace", type=Number("s", zero=True), default=0.0,
                 help="Time from the start during which neither limits nor abort apply (default 0)."),
)  # fmt: skip

simulation = options(
    click.option("--bridge", "bridges", multiple=True, type=Installed("rtmms.bridges"), metavar="NAME[:KEY=VALUE,...]",
                 help="A bridge to other software, each in a process of its own; may be repeated."),
    click.option("--link", "links", multiple=True, metavar="CONTROLLER:KEY=VALUE,...",
                 help="Impair the link of a controller, each direction, in simulated time: delay_ms, jitter_ms, loss, "
                      "duplicate, reorder, rate_hz, from_s, until_s; may be repeated."),
    click.option("--degrade", is_flag=True,
                 help="Change to cheaper variants of the robot where steps are about to overrun, and back."),
    click.option("--view", is_flag=True, help="Show it in the browser; the same as --bridge view."),
    click.option("--mode", type=Near("mode", MODES), default="realtime", help="Pace (default realtime)."),
    click.option("--rate", type=Number(""), default=1.0, help="Simulated time over wall time (default 1)."),
    click.option("--dt", type=Number("s"), help="Step; default the robot's own."),
    click.option("--deadline", type=Number("s"), help="Time within a step by which commands must be in hand."),
    lateness,
    COUPLING,
    click.option("--set", "set_", multiple=True, metavar="KEY=VALUE", help="A parameter; may be repeated."),
    click.option("--preset", metavar="NAME|FILE.toml", help="A named set of the robot's parameters, or a file."),
    click.option("--sensors", default="ideal", metavar="ideal|typical|FILE.toml",
                 help="What controllers see: the true state (default), typical instruments, or those of a file."),
    click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, help="Seed of what is random (default 0)."),
    click.option("--priority", default="auto", metavar="auto|off|N",
                 help="Real-time priority: where permitted (default), none, or SCHED_FIFO N."),
    click.option("--keys", type=click.Path(path_type=Path), metavar="DIR",
                 help="Encrypt, and admit only the keys in this folder (rtmms keys DIR makes one)."),
    click.option("--affinity", default="auto", metavar="auto|off|CORE[:CORE,...]",
                 help="Core of the loop; after ':' those of controllers. Default: the last for both, where permitted."),
    click.option("--exchange", metavar="ENDPOINT", help=f"Where peers say hello (default {EXCHANGE})."),
    click.option("--step", metavar="ENDPOINT", help=f"Where states and commands go (default {STEP})."),
    click.option("--telemetry", metavar="ENDPOINT", help=f"Where observers listen (default {TELEMETRY})."),
    click.option("--log", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.mcap",
                 help="Record every step, for rtmms replay, log and plot; a log of that name is overwritten."),
    click.option("--force", is_flag=True, help="--log, --trace and --figure overwrite files of other kinds, too."),
    click.option("--telemetry-hz", type=Number("Hz"), default=100.0,
                 help="States per second of wall time for observers, at most (default 100)."),
    click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object."),
    click.option("--quiet", is_flag=True, help="No progress on standard error."),
)  # fmt: skip
