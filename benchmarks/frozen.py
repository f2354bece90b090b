"""`rtmms bench frozen REV`: whether this tree behaves as another commit does, bit for bit.

Both sides compute the same list of digests: states and outputs of robots, methods, couplings and compositions over many
steps, linear models, rollouts, drawings, reports, logs, and the texts of help and refusals. A digest that differs is
listed with the first values of both sides. A change that means to keep behaviour keeps every digest; one that means to
change some explains them in the changelog. The test tests/wire/plant/test_replayed.py checks the wire's transcripts.

This file is also the program of each side: `python frozen.py`, with the Python of either side. That part uses only the
public interface of rtmms and the commands that both commits have.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

STEPS = 1000
SHORT = 200
SHOWN_NUMBERS = 3
"""Numbers of an output beside a digest, to show a change."""

COUPLINGS = ("sequential", "iterated", "monolithic")
METHODS = ("rk4", "implicit1", "implicit2", "abam")
LINEAR = ("manta", "eel", "quadrotor", "torpedo")
ROLLED = ("manta", "eel", "snakeboard")
CHANGING = (
    "wall_s",
    "real_time_factor",
    "timing_us",
    "machine",
    "realtime",
    "version",
    "memory",
    "accuracy",
    "witness",
    "stall_detector",
)
"""Parts of a report that depend on the machine and on the time."""

Value = dict[str, Any]


def digest(data: bytes) -> str:
    """Return a short name of some bytes.

    Parameters
    ----------
    data : bytes
        The bytes.

    Returns
    -------
    str
        Twenty hexadecimal digits.
    """
    return hashlib.sha256(data).hexdigest()[:20]


# --- what runs on either side -----------------------------------------------------------------------------------------


def commands(plant: Any, steps: int) -> Any:
    """Return commands about the neutral ones, each actuator within its limits at a frequency of its own.

    Parameters
    ----------
    plant : Any
        The plant.
    steps : int
        Number of steps.

    Returns
    -------
    : (steps, n) array
        In the actuators' units.
    """
    import numpy as np

    rows = np.zeros((steps, len(plant.actuators)))
    time = plant.dt * np.arange(steps)
    for k, channel in enumerate(plant.actuators):
        low = -0.3 if channel.lower is None else float(np.max(channel.lower))
        high = 0.3 if channel.upper is None else float(np.min(channel.upper))
        middle = float(np.mean(channel.neutral)) if channel.neutral is not None else 0.0
        size = 0.3 * min(abs(high - middle), abs(middle - low), 1e3)
        rows[:, k] = np.clip(middle + size * np.sin(2.0 * np.pi * (0.5 + 0.1 * k) * time + 0.3 * k), low, high)
    return rows


def stepped(plant: Any, steps: int = STEPS, seed: int = 3) -> Value:
    """Step a plant.

    Parameters
    ----------
    plant : Any
        The plant.
    steps : int, default STEPS
        Number of steps.
    seed : int, default 3
        Seed of the reset.

    Returns
    -------
    Value
        Digests of the outputs of every step, and of the state at the end, and a few numbers of each output.
    """
    import numpy as np

    plant.reset(seed)
    outputs = hashlib.sha256()
    ended = ""
    for row in commands(plant, steps):
        try:
            plant.step(row)
        except Exception as fault:  # it ends where it ended before
            ended = type(fault).__name__
            break
        for name, value in sorted(plant.observe().items()):
            outputs.update(name.encode() + np.asarray(value, dtype=float).tobytes())
    observed = {name: np.ravel(value)[:SHOWN_NUMBERS].tolist() for name, value in plant.observe().items()}
    return {"outputs": outputs.hexdigest()[:20], "ended": ended, "shown": observed}


def _import_class(name: str, *modules: str) -> Any:
    """Return a class by its name from the first module that this commit has."""
    for module in modules:
        with suppress(ImportError, AttributeError):
            return getattr(import_module(module), name)
    raise ImportError(f"{name}: expected it in one of {', '.join(modules)}")


def plants() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the plants to step.

    Yields
    ------
    tuple[str, Callable[[], Any]]
        Name, and a function that builds the plant.
    """
    import rtmms
    from rtmms.plant import robots

    for name in sorted(robots()):
        yield f"robot {name}", partial(rtmms.load, name)
    for coupling in COUPLINGS:
        yield f"manta {coupling}", partial(rtmms.load, "manta", coupling=coupling)
    for actuation in ("servo", "ideal"):
        yield f"manta {actuation}, held", partial(rtmms.load, "manta", actuation=actuation, body="fixed")
    for method in METHODS:
        yield f"a tree of one's own by {method}", partial(_swimmer, method)
    yield "rods and tendons", partial(_example, "18_octopus")
    yield from _compositions()


def _swimmer(method: str) -> Any:
    """Return three links in the water, of a plain tree."""
    import numpy as np

    import rtmms
    from rtmms import model as m

    def link(name: str) -> m.Body:
        along = m.at(x=-0.1, roll=0.5 * np.pi, yaw=0.5 * np.pi)
        solid = m.EllipticCylinder(0.02, 0.04, 0.2, 1000.0, along)
        strip = m.elliptic_strip(0.02, 0.04, 0.2, 1000.0, m.at(x=-0.1), drag=(0.02, 1.2, 1.2))
        return m.Body(name, solids=[solid], elements=[strip], fluid_density=1000.0)

    names = ("head", "middle", "tail")
    joints = [m.Joint(f"j{k}", names[k], names[k + 1], placement=m.at(x=-0.2), axis=(0, 0, 1)) for k in range(2)]
    tree = rtmms.Mechanism("swimmer", [link(name) for name in names], joints)
    bends = [m.JointMotion(f"j{k}", lower=-1, upper=1, bandwidth=30.0) for k in range(2)]
    return rtmms.TreePlant(tree, dt=2e-3, actuators=bends, method=method)


def _example(name: str) -> Any:
    from importlib import import_module

    sys.path.insert(0, os.environ["FROZEN_EXAMPLES"])
    return import_module(name).robot()


def _compositions() -> Iterator[tuple[str, Callable[[], Any]]]:
    import rtmms
    from rtmms.sensing import read_profile, seen_through
    from rtmms.sensing.faults import Faulty

    Estimated: Any = _import_class("Estimated", "rtmms.sensing.sensed", "rtmms.sensing.estimated")
    Levels: Any = _import_class("Levels", "rtmms.plant.levels", "rtmms.world.levels", "rtmms.levels.levels")

    def sensed(name: str) -> Any:
        plant = rtmms.load(name)
        return seen_through(plant, read_profile("typical", plant))

    def estimated(name: str) -> Any:
        plant = rtmms.load(name)
        return Estimated(plant, read_profile("typical", plant))

    def faulty(name: str) -> Any:
        return Faulty(rtmms.load(name))

    def all_of_it() -> Any:
        plant = Faulty(rtmms.load("manta"))
        return Estimated(plant, read_profile("typical", plant))

    for name in ("manta", "eel", "quadrotor"):
        yield f"{name}, sensors", partial(sensed, name)
        yield f"{name}, estimate", partial(estimated, name)
        yield f"{name}, faults", partial(faulty, name)
    yield "manta, faults, estimate", all_of_it
    yield "manta, levels", lambda: Levels(rtmms.load("manta"))
    yield "world", lambda: rtmms.World([("one", "manta"), ("two", "manta", {"profile": "typical"}), ("three", "eel")])


def linear(name: str) -> Value:
    """Linearise a robot about the state after some steps.

    Parameters
    ----------
    name : str
        Name of the robot.

    Returns
    -------
    Value
        Digests of A and B.
    """
    import numpy as np

    import rtmms

    plant = rtmms.load(name)
    plant.reset(1)
    rows = commands(plant, 50)
    for row in rows:
        plant.step(row)
    model = rtmms.linearise(plant, rows[-1])
    return {
        part: {"digest": digest(np.ascontiguousarray(getattr(model, part)).tobytes()),
               "shown": np.ravel(getattr(model, part))[:SHOWN_NUMBERS].tolist()}
        for part in ("a", "b") if hasattr(model, part)
    }  # fmt: skip


def rolled(name: str) -> Value:
    """Roll out several runs of a robot at a time.

    Parameters
    ----------
    name : str
        Name of the robot.

    Returns
    -------
    Value
        A digest of each output.
    """
    import numpy as np

    import rtmms

    plant = rtmms.load(name)
    rows = np.stack([(0.5 + 0.1 * k) * commands(plant, SHORT) for k in range(4)])
    result = rtmms.rollout(plant, rows)
    outputs = getattr(result, "outputs", result)
    parts = outputs.items() if isinstance(outputs, Mapping) else [("all", outputs)]
    return {key: digest(np.ascontiguousarray(np.asarray(item, dtype=float)).tobytes()) for key, item in sorted(parts)}


def drawn(name: str) -> Value:
    """Draw a robot.

    Parameters
    ----------
    name : str
        Name of the robot.

    Returns
    -------
    Value
        Digests of the exposed bodies and of the drawn points, to 1e-9 m in any order.
    """
    import numpy as np

    import rtmms
    from rtmms.plant.description import describe_plant

    origin = import_module("rtmms.record.origin")
    to_json_types = getattr(origin, "to_json_types", None) or origin.plain  # its name before 0.3
    PlantInfo: Any = _import_class("PlantInfo", "rtmms.wire.protocol.received_state", "rtmms.wire.protocol.state")

    try:
        from rtmms.view.scene import Picture
        from rtmms.wire.protocol.welcome import plain_parameters
    except ModuleNotFoundError:  # of a commit before these names
        Picture = import_module("rtmms.view.picture").Picture  # type: ignore[misc]
        plain_parameters = import_module("rtmms.wire.protocol.messages").plain_parameters

    plant = rtmms.load(name)
    shape = getattr(plant, "shape", None)
    info = PlantInfo(
        name, plant.dt, "", None, None, plant.actuators, plant.outputs, parameters=plain_parameters(plant),
        shape=describe_plant(plant).shape() or {},
    )  # fmt: skip
    picture = Picture(info)
    points = np.round(picture.points(picture.draw(plant.observe())), 9) + 0.0  # 0.0 has no sign then
    return {
        "digest": digest(json.dumps(to_json_types(shape), sort_keys=True).encode()),
        "points": digest(np.unique(points, axis=0).tobytes()),
    }


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `rtmms WORDS` with this Python.

    Parameters
    ----------
    folder : Path
        Working folder.
    *arguments : str
        The words.

    Returns
    -------
    subprocess.CompletedProcess[str]
        Status and output.
    """
    return subprocess.run(
        [sys.executable, "-m", "rtmms", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=os.environ | {"COLUMNS": "200", "NO_COLOR": "1", "XDG_RUNTIME_DIR": str(folder)},
    )


def reports(folder: Path) -> Iterator[tuple[str, Value]]:
    """Yield a run's report without the parts that the machine determines, its log as a table, and its replay.

    Parameters
    ----------
    folder : Path
        Working folder.

    Yields
    ------
    tuple[str, Value]
        Name and value.
    """
    run = ("run", "manta", "--mode", "lockstep", "--duration", "0.5", "--seed", "2", "--quiet", "--json")
    done = command(folder, *run, "--log", "run.mcap")
    report = json.loads(done.stdout)
    report["schedule"].pop("trial_us", None)  # measured times
    steady_fields = {key: value for key, value in report.items() if key not in CHANGING}
    yield "report", {"keys": sorted(report), "kept": json.loads(json.dumps(steady_fields))}
    command(folder, "log", "csv", "run.mcap", "-o", "run.csv")
    table = folder / "run.csv"
    yield "log as a table", {"digest": digest(_without_times(table.read_text())) if table.exists() else "none"}
    yield "replay", {"status": command(folder, "replay", "--check", "run.mcap").returncode}


def _without_times(table: str) -> bytes:
    """Return a table of a log without its columns in ns, which depend on the machine."""
    rows = [line.split(",") for line in table.splitlines()]
    columns = [k for k, name in enumerate(rows[0]) if not name.endswith("_ns")]
    return "\n".join(",".join(row[k] for k in columns) for row in rows).encode()


WRONG = (
    ("run", "mantaa"), ("run", "manta", "--set", "chainz=3"), ("run", "manta", "--dt", "nan"),
    ("run", "manta", "--controller", "gaitt"), ("run", "manta", "--controller", "gait:amplitude=3"),
    ("run", "manta", "--coupling", "tight"), ("run", "nothing.toml"), ("run", "manta", "--mode", "fast"),
    ("replay", "nothing.mcap"), ("sweep", "manta", "-o", "a.csv"), ("identify", "a.mcap", "--fit", "x"),
    ("trim", "cat", "--set", "x=1"), ("gaits", "manta"), ("plot", "nothing.mcap", "-o", "a.png"), ("list", "mant"),
)  # fmt: skip


def texts(folder: Path) -> Iterator[tuple[str, Value]]:
    """Yield the texts of help and of refusals.

    Parameters
    ----------
    folder : Path
        Working folder.

    Yields
    ------
    tuple[str, Value]
        Name and value.
    """
    from rtmms.cli.main import COMMANDS

    for name in ("", *sorted(COMMANDS)):
        done = command(folder, *([name] if name else []), "--help")
        yield f"help {name}".strip(), {"status": done.returncode, "text": done.stdout}
    for arguments in WRONG:
        done = command(folder, *arguments)
        yield f"refusal {' '.join(arguments)}", {"status": done.returncode, "text": done.stderr}


def measured(report: Callable[[str], None]) -> dict[str, Value]:
    """Compute all digests of this side.

    Parameters
    ----------
    report : Callable[[str], None]
        Receives the name of each part.

    Returns
    -------
    dict[str, Value]
        By name.
    """
    from rtmms.plant import robots

    result: dict[str, Value] = {}
    for name, make in plants():
        report(name)
        result[name] = stepped(make(), STEPS if name.startswith("robot ") else SHORT)
    for what, names, item in (
        ("linear model of", LINEAR, linear), ("rollout of", ROLLED, rolled), ("drawing of", sorted(robots()), drawn),
    ):  # fmt: skip
        for name in names:
            report(f"{what} {name}")
            result[f"{what} {name}"] = item(name)
    with tempfile.TemporaryDirectory() as folder:
        for parts in (reports, texts):
            for name, value in parts(Path(folder)):
                report(name)
                result[name] = json.loads(json.dumps(value).replace(folder, "FOLDER"))
    return result


# --- the command ------------------------------------------------------------------------------------------------------


def differences(ours: Mapping[str, Value], theirs: Mapping[str, Value]) -> list[str]:
    """Return a line for each entry that one side lacks or that differs, with the first part that does.

    Parameters
    ----------
    ours, theirs : Mapping[str, Value]
        Digests of both sides.

    Returns
    -------
    list[str]
        Lines.
    """
    lines = []
    for name in sorted({*ours, *theirs}):
        if name not in ours or name not in theirs:
            lines.append(f"{name}: only {'theirs' if name not in ours else 'ours'}")
        elif ours[name] != theirs[name]:
            part = next(key for key in {**ours[name], **theirs[name]} if ours[name].get(key) != theirs[name].get(key))
            lines.append(f"{name}: {part}: {theirs[name].get(part)!s:.300} -> {ours[name].get(part)!s:.300}")
    return lines


def main(as_json: bool = False, rev: str = "HEAD", /, out: str = "") -> int:
    """Compare this tree with a commit.

    Parameters
    ----------
    as_json : bool, default False
        Print JSON.
    rev : str, default 'HEAD'
        The other commit.
    out : str, default ''
        FILE.json for the digests of both sides.

    Returns
    -------
    int
        1 where an entry differs.
    """
    from .against import ROOT, environment, resolved

    def report(text: str) -> None:
        print(f"bench frozen: {text}", file=sys.stderr, flush=True)

    commit = resolved(rev)
    result = {}
    for side, python in {"ours": sys.executable, "theirs": str(environment(commit, report))}.items():
        report(side)
        ran = subprocess.run(
            [python, "-P", str(Path(__file__).resolve())], stdout=subprocess.PIPE, text=True, check=True,
            env=os.environ | {"FROZEN_EXAMPLES": str(ROOT / "examples"), "RTMMS_QUIET": "1"},
        )  # fmt: skip
        result[side] = json.loads(ran.stdout)
    if out:
        Path(out).write_text(json.dumps({"commit": commit, **result}, indent=1))
    lines = differences(result["ours"], result["theirs"])
    if as_json:
        print(json.dumps({"commit": commit, "compared": len(result["ours"]), "differ": lines}))
    else:
        print("\n".join([*lines, f"{len(result['ours'])} compared with {commit[:12]}, {len(lines)} differ"]))
    return int(bool(lines))


if __name__ == "__main__":
    json.dump(measured(lambda text: print(f"  {text}", file=sys.stderr, flush=True)), sys.stdout)
