"""Manoeuvres of `rtmms bench predictive --tasks-too` of which the motion itself is measured, from a log of the run: a
turn of the manta from its cruise, its cost of transport, a quadrotor through a gate, the eel in space, the moth in
gusts, to the side and ahead.

Each with the predictive controller and beside it the one without a model.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from rtmms.record.log import Step, open_log
from rtmms.terminal import print_text

from .closing import SCENARIOS, run

EXAMPLES = SCENARIOS.parent
TURNED_RAD, BEAT_S = math.radians(0.95 * 90.0), 1.25
"""What counts as a turn of 90 degrees, as where a heading settles; a beat of the eel."""
GATE, BEYOND, ARRIVED_M = (2.0, 0.3, 1.0), (4.0, 0.0, 0.5), 0.1
"""Those of examples/quadrotor/gate.py; so close to the place beyond, it has arrived."""


@dataclass(frozen=True)
class Run:
    """time (s,) s, position (s, 3) m, yaw (s,) rad, unwrapped: after each step;  report  of the run"""

    time: Any
    position: Any
    yaw: Any
    report: Mapping[str, Any]


def recorded(words: list[str]) -> Run:
    """`rtmms run WORDS` in lockstep, and its motion."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.mcap"
        report = run([*words, "--mode", "lockstep", "--priority", "off", "--log", str(path)])
        if report["ended"] != "duration":
            return Run(np.zeros(0), np.zeros((0, 3)), np.zeros(0), report)
        log = open_log(path)
        rows = []
        for row in log.rows():
            if not isinstance(row, Step):
                continue
            told = log.split(row.outputs)
            prefix = "truth." if "truth.position" in told else ""
            w, x, y, z = told[f"{prefix}quaternion"]
            yaw = math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
            rows.append((row.step + 1, *told[f"{prefix}position"], yaw))
    found = np.array(rows)
    return Run(found[:, 0] * float(log.origin["dt"]), found[:, 1:4], np.unwrap(found[:, 4]), report)


def turned(of: Run, at_s: float) -> dict[str, str]:
    """From the order to turn: mean rate until 95 % are done, radius as way over angle, the most off the depth then."""
    after = of.time >= at_s
    time, yaw, place = of.time[after], of.yaw[after] - of.yaw[after][0], of.position[after]
    done = np.flatnonzero(yaw >= TURNED_RAD)
    if not len(done):
        return {"turned": f"{math.degrees(float(yaw.max())):.0f} deg only"}
    end = int(done[0])
    way = float(np.linalg.norm(np.diff(place[: end + 1, :2], axis=0), axis=1).sum())
    off = np.abs(place[:, 2] - of.position[np.searchsorted(of.time, at_s), 2])
    return {
        "rate": f"{math.degrees(float(yaw[end])) / (time[end] - time[0]):.1f} deg/s",
        "radius": f"{way / float(yaw[end]):.2f} m",
        "off its depth, turning": f"{100.0 * float(off[: end + 1].max()):.1f} cm",
        "and after": f"{100.0 * float(off.max()):.1f} cm",
    }


def transported(of: Run) -> dict[str, str]:
    """Over whole beats of the second half."""
    told = of.report["summary"]
    half = of.position[len(of.position) // 2 :, 2]
    return {
        "cost of transport": f"{told['cost_of_transport']:.4f}", "speed": f"{told['mean_speed_m_s']:.2f} m/s",
        "power": f"{told['mean_power_w']:.2f} W", "depth, rms": f"{100.0 * float(np.std(half)):.1f} cm",
    }  # fmt: skip


def flown(of: Run) -> dict[str, str]:
    """How far off the gate's middle it was where it crossed the wall, and when it stayed at the place beyond."""
    crossed = np.flatnonzero(of.position[:, 0] >= GATE[0])
    if not len(crossed):
        return {"through the wall": "never"}
    off = float(np.linalg.norm(of.position[crossed[0], 1:] - GATE[1:]))
    far = np.flatnonzero(np.linalg.norm(of.position - BEYOND, axis=1) > ARRIVED_M)
    arrived = "never" if far[-1] + 1 >= len(of.time) else f"{of.time[far[-1] + 1]:.2f} s"
    return {"off the gate's middle": f"{100.0 * off:.1f} cm", "arrived": arrived}


def swum(of: Run) -> dict[str, str]:
    """Of the eel: when the means over a beat of heading and depth are within 3 deg and 3 cm for good, and what they
    are in the last ten seconds; or how far off its course it is, from 10 s on."""
    told = of.report["tracking"]
    if "cross_track_m" in told:
        half = of.time >= 0.5 * of.time[-1]
        way = float(np.linalg.norm(np.diff(of.position[half], axis=0), axis=1).sum())
        return {
            "off the course, rms": f"{100.0 * told['cross_track_m']['rms']:.1f} cm",
            "way of the head": f"{way / (of.time[-1] - of.time[half][0]):.2f} m/s",
        }
    count = round(BEAT_S / float(of.time[1] - of.time[0]))
    mean: Callable[[Any], Any] = lambda row: np.convolve(row, np.ones(count) / count, "valid")
    heading, depth = np.degrees(mean(of.yaw)) - 30.0, mean(-of.position[:, 2]) - 0.3
    outside = np.flatnonzero((np.abs(heading) > 3.0) | (np.abs(depth) > 0.03))
    time = of.time[count - 1 :]
    settled = "never" if outside[-1] + 1 >= len(time) else f"after {time[outside[-1] + 1]:.1f} s"
    late = time > time[-1] - 10.0
    return {
        "settled": settled, "heading, rms": f"{np.sqrt(np.mean(heading[late] ** 2)):.1f} deg",
        "depth, rms": f"{100.0 * np.sqrt(np.mean(depth[late] ** 2)):.1f} cm",
    }  # fmt: skip


def held(of: Run) -> dict[str, str]:
    """How far from its place, of the moth, from the first gust on; and its height alone."""
    after = of.position[of.time >= GUST_S]
    far, height = np.linalg.norm(after, axis=1), np.abs(after[:, 2])
    cm: Callable[[Any], str] = lambda row: f"{100.0 * float(np.sqrt(np.mean(row**2))):.1f} cm"
    return {
        "off its place, rms": cm(far), "at most": f"{100.0 * float(far.max()):.1f} cm", "height, rms": cm(height),
        "at the end": f"{100.0 * float(far[-400:].mean()):.1f} cm",
    }  # fmt: skip


def moved(of: Run, place: tuple[float, float, float]) -> dict[str, str]:
    """When it is within 1 cm of a place for good, and how far it strays from the straight way there and beyond it."""
    off = np.linalg.norm(of.position - place, axis=1)
    outside = np.flatnonzero(off > 0.01)
    way = np.asarray(place) / np.linalg.norm(place)
    along = of.position @ way
    aside = float(np.linalg.norm(of.position - np.outer(along, way), axis=1).max())
    beyond = max(0.0, float(along.max()) - float(np.linalg.norm(place)))
    stays = "never" if outside[-1] + 1 >= len(of.time) else f"after {of.time[outside[-1] + 1]:.2f} s"
    return {
        "there within 1 cm": stays, "off at the end": f"{100.0 * float(off[-400:].mean()):.1f} cm",
        "beyond it": f"{100.0 * beyond:.1f} cm", "off the way": f"{100.0 * aside:.1f} cm",
    }  # fmt: skip


THROUGH_THE_GATE = """robot = "quadrotor"
duration = 10.0
[[controller]]
name = "hover"
x_m = 2.0
y_m = 0.3
z_m = 1.0
[[event]]
at_s = 4.0
set = { "hover.x_m" = 4.0, "hover.y_m" = 0.0, "hover.z_m" = 0.5 }
"""
"""`hover` knows no gate: it stops in it, and goes on."""
MOTH_AHEAD = """robot = "moth"
duration = 4.0
[[controller]]
name = "moth_hover"
speed_m_s = 0.3
[[event]]
at_s = 0.67
set = { "moth_hover.speed_m_s" = 0.0 }
"""
"""`moth_hover` knows no place: 0.3 m/s for as long as 0.2 m take."""
GUST, GUST_S = str(SCENARIOS / "moth_gust.toml"), 0.5
EEL = ["eel", "--set", "gait=none"]
SPOT = "heading_deg=90,speed_m_s=0,depth_m=0"
ASIDE, HELIX = "heading_deg=30,depth_m=0.3", "course=helix,radius_m=2,rise_m=-0.5,turns=1,depth_m=0"
THRIFTY = f"predictive:cost={EXAMPLES / 'manta' / 'thrifty.py'}:thrifty,frequency_hz=0.5"
THROUGH = f"predictive:model=quadrotor,method=ilqr,cost={EXAMPLES / 'quadrotor' / 'gate.py'}:gate"
MANOEUVRES: tuple[tuple[str, str, list[str], Callable[[Run], dict[str, str]], str], ...] = (
    ("manta, 90 deg from 0.4 m/s", "predictive, ilqr", [str(SCENARIOS / "predictive_turn.toml")],
     lambda of: turned(of, 7.0), "30 deg/s, radius 1 m, depth within 15 cm"),
    ("manta, 90 deg from 0.4 m/s", "autopilot", [str(SCENARIOS / "turn_by_both.toml")],
     lambda of: turned(of, 20.0), ""),
    ("manta, 90 deg on the spot", "predictive, ilqr",
     ["manta", "--controller", f"predictive:method=ilqr,{SPOT}", "--duration", "10"], lambda of: turned(of, 0.0), ""),
    ("manta, 90 deg on the spot", "predictive",
     ["manta", "--controller", f"predictive:targets=3,samples=64,{SPOT}", "--duration", "10"],
     lambda of: turned(of, 0.0), ""),
    ("manta, 90 deg on the spot", "autopilot",
     ["manta", "--controller", f"autopilot:{SPOT}", "--duration", "20"], lambda of: turned(of, 0.0), ""),
    ("manta, at 0.5 m/s", "predictive, with power in its cost", ["manta", "--controller", THRIFTY, "--duration", "40"],
     transported, "cost of transport 0.012"),
    ("manta, at 0.5 m/s", "predictive", ["manta", "--controller", "predictive:speed_m_s=0.5", "--duration", "40"],
     transported, ""),
    ("manta, at 0.5 m/s", "autopilot",
     ["manta", "--controller", "autopilot:speed_m_s=0.5,depth_m=0", "--duration", "40"], transported, ""),
    ("manta, at its usual speed", "gait", ["manta", "--controller", "gait", "--duration", "40"], transported, ""),
    ("quadrotor, through a gate", "predictive, ilqr", ["quadrotor", "--controller", THROUGH, "--duration", "5"],
     flown, ""),
    ("quadrotor, through a gate", "hover, by way of the gate", ["{gate}"], flown, ""),
    ("eel, 30 deg to the left and 0.3 m deeper", "predictive",
     [*EEL, "--controller", f"predictive:model=eel,{ASIDE}", "--duration", "40"], swum, ""),
    ("eel, 30 deg to the left and 0.3 m deeper", "eel_course",
     [*EEL, "--controller", f"eel_course:{ASIDE}", "--duration", "40"], swum, ""),
    ("eel, a helix of 2 m", "predictive",
     [*EEL, "--controller", f"predictive:model=eel,{HELIX}", "--duration", "40", "--tracking-from", "10"], swum, ""),
    *(("moth, gusts of 0.4 m/s", name, [GUST, "--controller", word], held, "")
      for name, word in (
          ("predictive, linear", "predictive:model=moth"), ("moth_hover", "moth_hover"), ("lqr", "lqr"))),
    *(("moth, 0.2 m to the left", name, ["moth", "--controller", word, "--duration", "4"],
       lambda of: moved(of, (0.0, 0.2, 0.0)), "")
      for name, word in (("predictive, linear", "predictive:model=moth,y_m=0.2"), ("lqr", "lqr:y_m=0.2"))),
    *(("moth, 0.2 m ahead", name, words, lambda of: moved(of, (0.2, 0.0, 0.0)), "")
      for name, words in (
          ("predictive, linear", ["moth", "--controller", "predictive:model=moth,x_m=0.2", "--duration", "4"]),
          ("moth_hover, 0.3 m/s for 0.67 s", ["{ahead}"]),
          ("lqr", ["moth", "--controller", "lqr:x_m=0.2", "--duration", "4"]))),
)  # fmt: skip
"""What is to be done, by whom, words of `rtmms run`, what is measured, targets."""


def manoeuvres(only: str = "") -> list[dict[str, Any]]:
    """A row each; `only`: those whose task begins with it."""
    rows: list[dict[str, Any]] = []
    with TemporaryDirectory() as folder:
        files = {"{gate}": Path(folder) / "gate.toml", "{ahead}": Path(folder) / "ahead.toml"}
        for file, text in zip(files.values(), (THROUGH_THE_GATE, MOTH_AHEAD), strict=True):
            file.write_text(text, encoding="utf-8")
        for what, controller, words, measure, target in MANOEUVRES:
            if not what.startswith(only):
                continue
            ran = recorded([str(files.get(word, word)) for word in words])
            ended = str(ran.report["ended"])
            told: dict[str, Any] = next(
                (one["figures"] for one in ran.report["exchange"]["peers"] if one["figures"]), {}
            )
            measured = measure(ran) if ended == "duration" else {"ended": ended}
            rows.append({
                "task": what, "controller": controller, "target": target, "measured": measured,
                "plan_ms": told.get("plan_ms"), "core": told.get("core"), "load": os.getloadavg()[0],
            })  # fmt: skip
            print_text(f"{what}, {controller}: done", err=True)
    return rows


def tell_manoeuvres(rows: list[dict[str, Any]]) -> None:
    """As a table."""
    print_text("\n| manoeuvre | controller | target | measured | of a core |\n|---|---|---|---|---|")
    for row in rows:
        measured = ", ".join(f"{name} {value}" for name, value in row["measured"].items())
        core = "" if row["core"] is None else f"{row['core']:.2f}"
        print_text(f"| {row['task']} | {row['controller']} | {row['target']} | {measured} | {core} |")
