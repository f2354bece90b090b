"""`rtmms bench tables`: writes the parts of pages that quote stored results, so that no page states anything else.

A page has a part between marks (rtmms.view.tables) for each table, or sentence with figures, that comes from
benchmarks/results or from the manta's parameters. `--check` writes nothing; it exits with 1 where a page is old.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import Any

import rtmms.plant
from rtmms.base.errors import ModelError, Renamed
from rtmms.base.moved_modules import MOVED
from rtmms.base.parameters import parameters_of
from rtmms.base.renamed_outputs import RENAMED_OUTPUTS
from rtmms.bridging import config, rates
from rtmms.bridging.bridge import Bridge
from rtmms.bridging.config import bridges, load_bridge
from rtmms.bridging.peer_watch import PeerWatch
from rtmms.bridging.runner import Runner
from rtmms.cli.main import OLD_OPTIONS
from rtmms.cli.running import report
from rtmms.continuum.plant import CosseratPlant
from rtmms.continuum.strain_rod import StrainRod
from rtmms.gym.task import Task
from rtmms.loop.impairment import Impairment
from rtmms.mechanism.actuators import JointLimit, JointMotion, JointServo, JointTorque
from rtmms.mechanism.plant import TreePlant
from rtmms.model.description import Joint
from rtmms.model.rods import Rod
from rtmms.model.solids import Box
from rtmms.plant.description import RENAMED_MEMBERS, PlantDescription
from rtmms.plant.kernel_plant import KernelPlant
from rtmms.plant.loading import robots
from rtmms.scenario import reading
from rtmms.scenario.tables import EventTable, RobotTable, SweepTable
from rtmms.sensing.data_sheets import KINDS, TYPICAL, RelativeSensor, Sensor
from rtmms.sensing.estimator import Estimator
from rtmms.view import manta_figure as manta_page
from rtmms.view.parameter_table import parameters_table, robot_table
from rtmms.view.tables import blocks, fill_page
from rtmms.wire.peer import controller
from rtmms.wire.peer.session import Session
from rtmms.wire.protocol.messages import IN_VERSION_1
from rtmms.wire.protocol.received_state import PlantInfo
from rtmms.world.world import World

from . import (
    against,
    derivatives,
    environments,
    fish,
    intervals,
    mujoco_step,
    predictive,
    rollout,
    tables_guards,
    tables_loop,
    water,
)

ROOT = Path(__file__).resolve().parents[1]

WIDTH = 120

TABLES: dict[str, Any] = {"robot": RobotTable, "event": EventTable, "link": Impairment, "sweep": SweepTable}


def _sensor_table(name: str) -> str:
    """Return the keys of every sensor (''), or those of one that it has alone or that `typical` sets."""
    if not name:
        return parameters_table(Sensor)
    kind = RelativeSensor if name == "sight" else KINDS[name]
    shared = {field.name for field in fields(Sensor)} - {"rate_hz", *TYPICAL[name]}
    field_names = [field.name for field in fields(kind) if field.name not in shared]
    return parameters_table(kind, names=field_names, typical=TYPICAL[name])


def _bridge_table(name: str) -> str:
    """Return the parameters of every bridge (''), or those that one has alone or with another default."""
    shared = {field.name: field.default for field in fields(Bridge)}
    kind = load_bridge(name) if name else Bridge
    names = [
        field.name
        for field in fields(kind)
        if not name or field.name not in shared or shared[field.name] != field.default
    ]
    return parameters_table(kind, names=[name for name in names if name in parameters_of(kind)])


def _renamed_table() -> str:
    """Return the names that 0.3 replaced, each with its new name, as the code declares them."""
    kinds = {
        "Link": Session, "Bridge.io": Runner, "Bridge.peer_watch": PeerWatch, "Estimator": Estimator, "World": World,
        "PlantDescription": PlantDescription, "PlantInfo": PlantInfo, "TreePlant": TreePlant,
        "CosseratPlant": CosseratPlant, "KernelPlant": KernelPlant, "Joint": Joint, "Box": Box, "Rod": Rod,
        "StrainRod": StrainRod, "Task": Task,
        **{item.__name__: item for item in (JointTorque, JointServo, JointMotion, JointLimit)},
    }  # fmt: skip
    members = {
        f"{kind}.{old}": f"{kind}.{member.new}"
        for kind, owner in kinds.items()
        for old, member in vars(owner).items() if isinstance(member, Renamed)
    }  # fmt: skip
    names = {
        "option": OLD_OPTIONS,
        "key of a scenario": reading.OLD_KEYS,
        "parameter of a bridge": config.OLD_KEYS,
        "declaration of a controller": controller.RENAMED,
        "keyword of `rtmms.connect`": {"tracks": "setpoints", "settable": "tunable_parameters"},
        "member": members
        | {
            "Polar.beyond": "Polar.with_stall_extension",
            "CoupledLimit.most": "CoupledLimit.max_difference",
            "Element.words": "Element.choices",
            "rtmms.base.memory.given": "rtmms.base.memory.step_input",
        },
        "output": RENAMED_OUTPUTS,
        "default name of a robot": {"one, two": "manta_1, manta_2"},
        "member of a plant": RENAMED_MEMBERS,
        "class of `rtmms.plant`": rtmms.plant.RENAMED,
        "class of `rtmms.bridging.rates`": rates.RENAMED,
        "key of the report": report.RENAMED,
        "name on the wire (version 1, 2)": {old: new for new, old in IN_VERSION_1.items()},
        "module": MOVED,
    }
    rows = [f"| {place} | `{old}` | `{new}` |" for place, renamed in names.items() for old, new in renamed.items()]
    return "\n".join(["| where | old name | new name |", "|---|---|---|", *rows])


def _printed(text: Callable[[Any], str], result: Any) -> str:
    """Return machine and day of a result, and the lines that its command prints."""
    return f"Measured on: {tables_loop.machine(result)}.\n\n```text\n{text(result)}\n```"


def _measured(table: Callable[[Any], str], result: Any) -> str:
    """Return machine and day of a result, and a table of it."""
    return f"Measured on: {tables_loop.machine(result)}.\n\n{table(result)}"


Part = tuple[Callable[..., str], tuple[str, ...]]
WITHOUT_PAGE = ("template", "view")
"""Bridges that are for readers of their code, or that `rtmms run --view` starts."""

PARTS: dict[str, Part] = {
    "one-step": (tables_loop.one_step, ("plant",)),
    "in-real-time": (tables_loop.in_real_time, ("loop", "soak_hour")),
    "loop-run": (tables_loop.run, ("loop",)),
    "loop-times": (tables_loop.times, ("loop",)),
    "loop-ratios": (tables_loop.ratios, ("loop",)),
    "loop-misses": (tables_loop.misses, ("loop",)),
    "loop-paces": (tables_loop.paces, ("loop", "loop_10khz")),
    "exchange": (tables_loop.exchange, ("exchange",)),
    "hour": (tables_loop.hour, ("soak_hour",)),
    "round-trip": (partial(_measured, tables_loop.round_trip), ("bridges",)),
    "rollout": (partial(_printed, rollout.text), ("rollout",)),
    "derivatives": (partial(_printed, derivatives.text), ("derivatives",)),
    "environments": (partial(_printed, environments.text), ("environments",)),
    "mujoco-step": (partial(_printed, mujoco_step.text), ("mujoco",)),
    "water": (partial(_printed, water.text), ("water",)),
    "fish-speed": (partial(_printed, fish.text), ("fish",)),
    "predictive-courses": (partial(_measured, predictive.courses_table), ("predictive",)),
    "predictive-realtime": (partial(_measured, predictive.realtime_table), ("predictive_realtime",)),
    "guards-verdicts": (partial(_measured, tables_guards.verdicts), ("guards",)),
    "intervals": (partial(_printed, intervals.text), ("intervals",)),
    "guards-calibration": (tables_guards.calibration, ("guards",)),
    "parameters": (manta_page.parameter_table, ()),
    **{f"parameters {robot}": (partial(robot_table, robot), ()) for robot in robots() if robot != "manta"},
    **{f"sensor {name}".rstrip(): (partial(_sensor_table, name), ()) for name in ("", *KINDS, "sight")},
    **{f"keys {name}": (partial(parameters_table, kind), ()) for name, kind in TABLES.items()},
    **{
        f"bridge {name}".rstrip(): (partial(_bridge_table, name), ())
        for name in ("", *bridges())
        if name not in WITHOUT_PAGE
    },
    "outputs": (manta_page.output_table, ()),
    "against": (against.page, ("against",)),
    "renamed": (_renamed_table, ()),
}
"""Writer of each part by its name, and the results that it receives."""


def main(as_json: bool = False, check: bool = False) -> int:
    """Run the command.

    Parameters
    ----------
    as_json : bool, default False
        Print JSON.
    check : bool, default False
        Write nothing.

    Returns
    -------
    int
        1 where `check` finds a page that is not up to date.
    """
    old = stale(ROOT)
    if not check:
        for page, text in old.items():
            (ROOT / page).write_text(text, encoding="utf-8")
    if as_json:
        print(json.dumps({"stale" if check else "written": sorted(old)}))
    else:
        state = "not up to date: run rtmms bench tables" if check else "written"
        print("\n".join(f"{page}: {state}" for page in sorted(old)) or "all pages are up to date")
    return int(check and bool(old))


def stale(root: Path) -> dict[str, str]:
    """Return the pages that are out of date.

    Parameters
    ----------
    root : Path
        Folder of the repository.

    Returns
    -------
    dict[str, str]
        Right text by page.

    Raises
    ------
    ModelError
        A page has a wrong mark.
    """
    reports: dict[str, Any] = {}

    def result(name: str) -> Any:
        if name not in reports:
            reports[name] = json.loads((root / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))
        return reports[name]

    def part(name: str) -> str:
        write, of = PARTS[name]
        return write(*map(result, of))

    results = {}
    for path in pages(root):
        text, page = path.read_text(encoding="utf-8"), str(path.relative_to(root))
        try:
            new = fill_page(text, {name: f"\n{_folded(part(name))}\n\n" for name in blocks(text) if name in PARTS})
        except ModelError as fault:
            raise ModelError(f"bench tables: {page}: {fault}") from None
        if new != text:
            results[page] = new
    return results


def pages(root: Path) -> list[Path]:
    """Return the pages of a repository.

    Parameters
    ----------
    root : Path
        Folder of the repository.

    Returns
    -------
    list[Path]
        Files.
    """
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def _folded(text: str) -> str:
    """Fold lines of prose to WIDTH; rows of tables and lines of a fenced block stay."""
    lines: list[str] = []
    fenced = False
    for line in text.splitlines():
        fenced ^= line.startswith("```")
        fits = fenced or line.startswith(("|", "```")) or not line
        lines += [line] if fits else fill(line, WIDTH, break_long_words=False, break_on_hyphens=False).splitlines()
    return "\n".join(lines)
