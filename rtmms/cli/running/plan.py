"""Request of a command line for a run, as data, and the options that `run` and `serve` share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rtmms.base.contract import TIMED
from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.files import KINDS, refuse_output
from rtmms.base.terminal import print_text
from rtmms.base.toml_file import read_toml
from rtmms.base.trust import split_word
from rtmms.bridging.config import check_bridge
from rtmms.cli.option_types import check_choice, declared_option, options, refuse_figure, refuse_preset, settings
from rtmms.cli.running.several import drivers, failing, named, shared_out, with_present_names
from rtmms.plant.loading import builder
from rtmms.scenario import Scenario
from rtmms.scenario.links import from_words, refuse_unknown
from rtmms.scenario.plant import called_names, own_controllers
from rtmms.scenario.run_options import OF_A_SCHEDULE, Option, RunOptions, StudyUse, run_options
from rtmms.wire.peer.plugins import check_controller, check_robot

if TYPE_CHECKING:
    from rtmms.cli.running.branching import Parent
    from rtmms.loop.impairment import Impairment

PROFILES = ("ideal", "typical")
"""Profiles of sensors, as in rtmms.sensing.suite: named here, so that no word of a command line loads a compiler."""


@dataclass(frozen=True)
class Plan(RunOptions):
    """One run: the requested options, with the values that follow from them.

    Attributes
    ----------
    scenario : Scenario | None, optional
        File that the options come from.
    parent : Parent | None, optional
        Log that the run continues from; dt, preset, parameters, and seed are its own then.
    wait_for_claim : bool, default False
        Step 0 waits for a claim.
    may_move : bool, default True
        The exchange endpoint may be another one where the default is busy.
    """

    scenario: Scenario | None = None
    parent: Parent | None = None
    wait_for_claim: bool = False
    may_move: bool = True

    @property
    def called(self) -> str:
        """The robot's name on the wire: of a file, its own name without folder and ending; of FILE.py:NAME, NAME."""
        before, _, name = self.robot.rpartition(":")
        if before.endswith(".py"):
            return name
        return Path(self.robot).stem if "." in self.robot else self.robot


def plan(
    robot: str, option_values: dict[str, Any], controllers: tuple[str, ...] | None = (),
    robots: Sequence[Mapping[str, Any]] = (), faults: Iterable[str] = (),
) -> Plan:  # fmt: skip
    """Check all that can be checked before anything is started.

    Parameters
    ----------
    robot : str
        The robot; WORLD for several.
    option_values : dict[str, Any]
        Options by name, as click read them.
    controllers : tuple[str, ...] | None, default ()
        () for none; None for the robot's default.
    robots : Sequence[Mapping[str, Any]], default ()
        Several robots on one clock, see rtmms.world.members.
    faults : Iterable[str], default ()
        Faults that events begin.

    Returns
    -------
    Plan
        The plan.

    Raises
    ------
    ModelError, UnknownNameError
        A word is wrong.
    """
    builder(robot)  # refuses an unknown one
    if robots:
        robots = named(robots)
        option_values["links"] = tuple(with_present_names(robots, option_values.get("links", ()), "{}."))
        option_values["bridges"] = tuple(with_present_names(robots, option_values.get("bridges", ()), "robot={}"))
        controllers = drivers(robots, controllers)
    elif controllers is None:
        controllers = own_controllers(robot)
    if not robots:
        check_choice(robot, "coupling", option_values.get("coupling"))
    for word in () if robots else controllers:
        name = split_word(word)[0]
        check_controller(name)
        check_robot(name, robot)
    if option_values.get("view", False):
        option_values["bridges"] = (*option_values.get("bridges", ()), "view")
    option_values["links"] = _links(
        option_values.get("links", ()), controllers, alone=option_values.pop("served", False)
    )
    for word in option_values.get("bridges", ()):
        check_bridge(split_word(word)[0])
    parent = option_values.get("parent")
    if parent is None:  # a log's rate is its own
        _refuse_without_schedule(option_values)
    _refuse_twice(controllers)
    parameters = dict(parent.parameters) if parent is not None else settings(option_values.pop("set_", ()))
    for key in ("dt", "preset", "coupling") if parent is None else ():
        if key in parameters:
            raise ModelError(f"--set {key}={parameters[key]}: use --{key}")
    refuse_preset(option_values.get("preset"))
    if option_values.get("sensors", "ideal").endswith(".toml"):
        read_toml(option_values["sensors"], "--sensors")
    elif option_values.get("sensors", "ideal") not in PROFILES:
        raise UnknownNameError("sensors", option_values["sensors"], PROFILES, "or a FILE.toml")
    if option_values.get("priority") is not None:
        from rtmms.loop.machine import parse_priority

        parse_priority(option_values["priority"])
    if option_values.get("affinity") is not None:
        from rtmms.loop.machine import allowed_cores, parse_affinity

        parse_affinity(option_values["affinity"], allowed_cores())
    for option in run_options().values():
        path = option_values.get(option.name)
        if option.writes and path is not None:
            _refuse_ending(path, option)
            kind = None if option_values.get("force") else KINDS[option.writes]
            refuse_output(path, option.word, kind, () if parent is None else (parent.log.path,), _OVERWRITES)
    figure = option_values.get("figure")
    if figure is not None:
        refuse_figure("--figure", figure, force=bool(option_values.get("force")))
    if option_values.get("log") is not None:
        from rtmms.record.log_location import refuse_without_mcap

        refuse_without_mcap("--log")
    if (
        option_values.get("duration") is not None
        and (option_values.get("tracking_start") or 0.0) >= option_values["duration"]
    ):
        raise ModelError(
            f"--tracking-start {option_values['tracking_start']:g}: expected less than the duration, "
            f"{option_values['duration']:g} s"
        )
    for link in option_values["links"]:
        if parent is None and option_values.get("duration") is not None and link.from_s >= option_values["duration"]:
            raise ModelError(
                f"--link {link.controller}: from_s={link.from_s:g}: expected less than the duration, "
                f"{option_values['duration']:g} s"
            )
    if option_values.get("degrade") and option_values.get("mode", "realtime") not in TIMED:
        raise ModelError(
            f"--degrade: expected --mode {' or '.join(TIMED)}, got {option_values['mode']}, which has no schedule"
        )
    if option_values.get("degrade") and robots:
        raise ModelError("--degrade: expected a run of one robot, got several")
    if robots:
        parameters = shared_out(robots, parameters, option_values)
        failing(parameters["robots"], faults)
        option_values = option_values | {"coupling": None, "estimate": False, "sensors": "ideal"}
    return Plan(robot=robot, controllers=controllers, parameters=parameters, **option_values)


def _links(link_texts: tuple[str, ...], controllers: tuple[str, ...], *, alone: bool) -> tuple[Impairment, ...]:
    """Return the links of --link, or raise ModelError.

    With `alone` the plant serves any peer, whose names are unknown.
    """
    result = from_words(link_texts)
    if not alone:
        names = called_names(controllers)
        refuse_unknown(result, names, lambda k, _, text: ModelError(f"--link {link_texts[k]}: {text}"))
    return result


def _refuse_without_schedule(option_values: Mapping[str, Any]) -> None:
    """Raise ModelError for options that only a mode with a schedule uses, or print that they have no effect."""
    mode = option_values.get("mode", "realtime")
    if mode in TIMED:
        return
    idle = []
    for option in run_options().values():
        value = option_values.get(option.name, option.default)
        if value == option.default:
            continue
        if option.timed:
            raise ModelError(
                f"{option.word} {value:g}: the mode {mode} has no schedule; expected --mode {' or '.join(TIMED)}, "
                f"or no {option.word}"
            )
        idle += [option.word] * (option.reason == OF_A_SCHEDULE)
    if idle:
        print_text(f"rtmms: {', '.join(idle)}: no effect, because the mode {mode} has no schedule", err=True)


def _refuse_twice(controllers: Sequence[str]) -> None:
    """Raise ModelError for the same words twice, as both would claim the same actuators."""
    for k, word in enumerate(controllers):
        if word in controllers[:k]:
            raise ModelError(
                f"--controller {word}: expected it once, got it twice; two controllers cannot command the same "
                "actuators"
            )


def _refuse_ending(path: Path, option: Option) -> None:
    """Raise ModelError for a name with the ending of another kind of file than is written."""
    ending = path.suffix.lower()
    if ending in KINDS and ending != option.writes:
        remedy = "; rtmms log csv makes a table of a log" * (option.name == "log")
        raise ModelError(f"{option.word} {path}: expected a name that ends in {option.writes}, got {ending}{remedy}")


_OVERWRITES = "--force overwrites"


def command_options(command: str) -> Callable[[Any], Any]:
    """Return the decorator with the options of `run` or `serve`.

    Parameters
    ----------
    command : str
        'run' or 'serve'.

    Returns
    -------
    Callable[[Any], Any]
        Decorator of a command.
    """
    result = []
    for run_option in run_options().values():
        if command in run_option.commands:
            default = run_option.default if command == "run" or run_option.served is ... else run_option.served
            result.append(declared_option(run_option, default, run_option.help_text(default)))
    return options(*result)


def study_options() -> Callable[[Any], Any]:
    """Return the decorator with the options of `run` that a study carries.

    None, False or () where they are not given.

    Returns
    -------
    Callable[[Any], Any]
        Decorator of a command.
    """
    result = []
    for run_option in run_options().values():
        if run_option.study is StudyUse.CARRIED:
            unsaid = () if run_option.repeats else False if run_option.value_type is bool else None
            result.append(declared_option(run_option, unsaid, run_option.help_text(run_option.default, of_study=True)))
    return options(*result)
