"""rtmms gaits: the effect of a gait's shapes on a robot, and the best closed curve of shapes."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import rtmms
from rtmms.base.budget import Budget
from rtmms.base.errors import ModelError
from rtmms.base.files import KINDS, Kind, new_file_beside, refuse_output
from rtmms.base.terminal import print_json, print_text
from rtmms.cli.option_types import (
    MAX_THREADS,
    Installed,
    KnownName,
    NumberType,
    as_in_run,
    folder,
    refuse_without_effect,
    settings,
)
from rtmms.view.style import FORMATS, written_as

if TYPE_CHECKING:
    from rtmms.locomotion.connections import Connection
    from rtmms.locomotion.optimise import Best
    from rtmms.locomotion.paths import Path as Gait
    from rtmms.locomotion.plant import HasLocomotion
    from rtmms.locomotion.reconstruction import Motion

PER = ("cost", "length")


SEARCH_OPTIONS = ("at", "most_power", "points", "generations", "seed", "threads", "budget")
"""Options of the command that only --search uses."""


@click.command()
@click.argument("robot", type=Installed("rtmms.plants"))
@click.option("--gait", "word", metavar="GAIT", help="circle:a=1,c1=0,c2=0, square:a=1, rectangle:a=1,b=1, one of the "
              "robot's own, or a FILE.csv of shapes; without it the best one is sought.")  # fmt: skip
@click.option(
    "--cycles", type=click.IntRange(1, 100_000), default=1, show_default=True, help="Number of cycles to swim."
)
@click.option("--goal", type=KnownName("goal", ("distance", "turn")), help="Quantity that the best gait maximises; "
              "default the robot's own.")  # fmt: skip
@click.option("--per", type=KnownName("measure", PER), default="cost", show_default=True,
              help="Divisor of the goal: cost of a cycle, or its length in the shape space.")  # fmt: skip
@click.option("--search", metavar="GOAL[,GOAL]", help="Search for the best gaits: speed, cost_of_transport, power; "
              "with two goals, for the front between them.")  # fmt: skip
@click.option("--at", metavar="VALUE,...", help="Values of the first goal at which the second is optimised; "
              "default evenly between its extremes.")  # fmt: skip
@click.option("--most-power", type=NumberType("W"), help="Largest mean power of a gait of the search.")
@click.option(
    "--points",
    type=click.IntRange(1, 100),
    default=5,
    show_default=True,
    help="Number of values of the first goal, without --at.",
)
@click.option(
    "--generations",
    type=click.IntRange(1, 10_000),
    default=15,
    show_default=True,
    help="Generations of the search at each value.",
)
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, help="Seed of the search.")
@click.option("--budget", type=NumberType("s"), metavar="S", help="Wall time of --search, after which the best gaits "
              "so far are printed.")  # fmt: skip
@click.option("--threads", type=click.IntRange(1, MAX_THREADS), metavar="N", help="Threads; default one for each core.")
@as_in_run("set_")
@click.option("-o", "--output", "out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Folder of the figures, and of the shapes of a gait that was found.")  # fmt: skip
@click.option("--format", "form", type=KnownName("format", FORMATS), default=FORMATS[0], show_default=True,
              help="Format of the figures.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def gaits(
    robot: str, word: str | None, cycles: int, goal: str | None, per: str, set_: tuple[str, ...], out: Path | None,
    form: str, as_json: bool, search: str | None, at: str | None, most_power: float | None, points: int,
    generations: int, seed: int, threads: int | None, budget: float | None,
) -> int:  # fmt: skip
    """Compute the net motion of a gait of ROBOT, its work and cost, with figures of curvature and motion.

    Without --gait, of the best gait that is found. With --search, of a robot that swims by the words of a controller:
    the gaits that are best for goals. Ctrl-C ends it; with -o DIR the same command goes on from there.
    """
    context = click.get_current_context()
    refuse_without_effect(context, ("form",) if out is None else (), "-o DIR")
    refuse_without_effect(context, SEARCH_OPTIONS if search is None else ("cycles", "goal", "per"),
                          "--search" if search is None else "no --search")  # fmt: skip
    refuse_without_effect(context, ("goal", "per") if word is not None else (), "no --gait")
    if search is not None:
        from rtmms.cli.gait_search import search_and_print
        from rtmms.studies.gait_search import Search

        if word is not None:
            raise click.UsageError("--search: expected no --gait with it; give one of the two")
        asked = Search(
            robot, tuple(search.split(",")), _numbers("--at", at), points, most_power, generations, seed=seed,
            parameters=settings(set_),
        )  # fmt: skip
        return search_and_print(asked, out, form, threads, Budget(budget), as_json=as_json)
    from rtmms.locomotion.connections import Connection
    from rtmms.locomotion.paths import gait_path, keep_limits
    from rtmms.locomotion.reconstruction import is_closed

    if out is not None:
        folder("-o", out)
        for name in ("motion", "curvature"):
            refuse_output(out / f"{robot}-{name}.{form}", "-o", KINDS[f".{form}"])
    plant = _plant(robot, settings(set_))
    assert plant.locomotion is not None
    if out is not None and word is None:
        shapes = Kind("file of a gait's shapes", (",".join(plant.model.joint_names).lower().encode() + b"\n",))
        refuse_output(out / f"{robot}-gait.csv", "-o", shapes)
    robot_gaits = plant.locomotion.gaits
    item = Connection(plant.model, plant.locomotion.kind) if plant.locomotion.travel is None else None
    best: Best | None = None
    if word is None:
        best = _best(plant, item, goal, per, robot)
        gait = best.path
    else:
        from rtmms.locomotion.plant import limits

        gait = gait_path(word, plant.model.n, robot_gaits, plant.model.joint_names)
        keep_limits(gait, *limits(plant), plant.model.joint_names, word)
        if not is_closed(plant.model, gait):
            raise ModelError(f"gait '{word}': expected a closed gait, got one whose last shape differs from its first")
    motion = _moved(plant, item, gait, cycles)
    result: dict[str, Any] = {
        "robot": robot, "gait": word or "best", "cycles": cycles, "displacement": _displacement(motion),
        "work": motion.work, "cost": motion.cost, "kind": plant.locomotion.kind, "cycle_s": gait.duration,
        "dynamic": item is None,
    }  # fmt: skip
    if best is not None and item is not None:
        result |= {
            "goal": goal or plant.locomotion.goal,
            "per": per,
            "score": best.score,
            "length": best.length,
            "coefficients": best.coefficients.tolist(),
            "beside": {
                name: _score(item, gait_path(name, 2, robot_gaits), goal or plant.locomotion.goal, per)
                for name in robot_gaits
            },
        }
    with written_as(form):
        result["figures"] = [] if out is None else _drawn(robot, word, plant, item, gait, motion, out)
    if as_json:
        print_json(json.dumps(result, allow_nan=False))
    else:
        print_text(as_table(result, plant.locomotion.note))
    return 0


def _numbers(option: str, text: str | None) -> tuple[float, ...]:
    try:
        result = tuple(float(part) for part in text.split(",")) if text else ()
    except ValueError:
        result = (math.nan,)
    if not all(math.isfinite(item) for item in result):
        raise ModelError(f"{option}: expected finite numbers separated by commas, got '{text}'")
    return result


def _plant(robot: str, values: dict[str, Any]) -> HasLocomotion:
    from rtmms.locomotion.plant import HasLocomotion

    plant = rtmms.plant.loading.build_plant(robot, **values)
    if not isinstance(plant, HasLocomotion) or plant.locomotion is None:
        raise ModelError(
            f"robot '{robot}': gaits: expected a robot that moves by its shape, such as cat, purcell or snakeboard"
        )
    return plant


def _best(plant: HasLocomotion, item: Connection | None, goal: str | None, per: str, robot: str) -> Best:
    from rtmms.locomotion.optimise import best_gait
    from rtmms.locomotion.plant import limits

    assert plant.locomotion is not None
    if item is None or item.kind == "nonholonomic":
        raise ModelError(
            f"robot '{robot}': the search for the best gait needs motion by inertia or drag; name a gait with --gait"
        )
    print_text(f"rtmms: searching for the best gait of '{robot}'; this takes some seconds", err=True)
    least, greatest = limits(plant)
    return best_gait(
        item, goal or plant.locomotion.goal, per, least=least, greatest=greatest, size=plant.locomotion.shape
    )


def _moved(plant: HasLocomotion, item: Connection | None, gait: Gait, cycles: int) -> Motion:
    from rtmms.locomotion.reconstruction import reconstruct

    assert plant.locomotion is not None
    if item is None:
        assert plant.locomotion.travel is not None
        return plant.locomotion.travel(plant.model, gait, cycles)
    return reconstruct(item, gait, cycles=cycles)


def _displacement(motion: Motion) -> Any:
    """Return the displacement in the starting frame, for JSON."""
    net = [float(value) for value in motion.displacement]
    return net if motion.planar else {"rotation_vector": net[:3], "position": net[3:]}


def _score(connection: Connection, gait: Gait, goal: str, per: str) -> float:
    """Return the score of a known gait, as the search has it."""
    from rtmms.locomotion.optimise import score

    return score(connection, gait, goal, per)


def _drawn(
    robot: str, word: str | None, plant: HasLocomotion, item: Connection | None, gait: Gait, motion: Motion, out: Path
) -> list[str]:  # fmt: skip
    from rtmms.view.gait_figure import draw, draw_motion
    from rtmms.view.style import figure_file

    title = f"{robot}: {word or 'the best gait found'}"
    if item is None:
        built = [figure_file(out, f"{robot}-motion")]
        draw_motion(motion, plant.model.joint_names, title, built[0])
    else:
        built = draw(item, gait, motion, title, out, robot)
    if word is None:
        shapes = out / f"{robot}-gait.csv"
        lines = [",".join(plant.model.joint_names)]
        lines += [",".join(f"{value:.10g}" for value in row) for row in gait.sampled(400)]
        with new_file_beside(shapes, "-o") as part:
            part.write_text("\n".join(lines) + "\n", encoding="utf-8")
        built.append(shapes)
    return [str(path) for path in built]


def as_table(result: dict[str, Any], notes: Any) -> str:
    """Return the result as text for a person.

    Parameters
    ----------
    result : dict[str, Any]
        Result as printed with --json.
    notes : Any
        Further lines.

    Returns
    -------
    str
        Lines.
    """
    net = result["displacement"]
    if isinstance(net, dict):
        ways = [("rotation vector", "  ".join(f"{x:.10g}" for x in net["rotation_vector"]) + " rad"),
                ("position", "  ".join(f"{x:.10g}" for x in net["position"]) + " m")]  # fmt: skip
    else:
        ways = [("displacement", f"x {net[0]:.10g} m  y {net[1]:.10g} m  theta {net[2]:.10g} rad")]
    put_in = "dissipated" if result["kind"] == "stokes" else "put in, if nothing is given back"
    cost = "sqrt(W s), whatever the pace" if result["kind"] == "stokes" else "sqrt(J) s, whatever the pace"
    cost = "J, of the power's size" if result["dynamic"] else cost
    rows = [
        ("robot", result["robot"]),
        (
            "gait",
            f"{result['gait']}, {result['cycles']} cycle{'s' if result['cycles'] > 1 else ''} "
            f"of {result['cycle_s']:.6g} s",
        ),
        *ways,
        ("work", f"{result['work']:.6g} J ({put_in})"),
        ("cost", f"{result['cost']:.6g} {cost}"),
    ]
    if "score" in result:
        rows.append((f"{result['goal']} per {result['per']}", f"{result['score']:.8g}"))
        rows += [
            (f"  {name}", f"{score:.8g}" + (f"  ({notes[name]})" if name in notes else ""))
            for name, score in result["beside"].items()
        ]
    rows += [("file", path) for path in result["figures"]]
    return "\n".join(f"{name:<18}  {text}" for name, text in rows)
