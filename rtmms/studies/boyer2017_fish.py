"""Dead fish in its vortex street: drift against flexural stiffness, energy, computing time, and figures."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rtmms.base.spatial import Array
from rtmms.fluids.ambient import Flow
from rtmms.mechanism.plant import TreePlant
from rtmms.model.compiler import compile_model
from rtmms.robots import fish
from rtmms.studies.boyer2017_claims import FISH
from rtmms.view.tables import canvas, save
from rtmms.view.verdict import Row, rows_of

STIFFNESS = (2e-4, 3e-4, 5e-4, 7e-4, 1e-3, 1.5e-3, 2e-3, 3e-3, 5e-3, 1e-2)
"""Flexural stiffnesses of the sweep, N m2."""
LENGTH_S = 10.0
SETTLED_S = 3.0
WORKS = ("flow", "wake", "drag", "damping")


@dataclass(frozen=True)
class Run:
    """Run of the dead fish.

    Attributes
    ----------
    time : Array
        (k,) times, s.
    nose : Array
        (k, 2) positions of the nose, m.
    series : dict[str, Array]
        Outputs over time, by name.
    wall : float
        Wall time, s.
    plant : TreePlant
        The plant at the end.
    """

    time: Array
    nose: Array
    series: dict[str, Array]
    wall: float
    plant: TreePlant

    @property
    def drift(self) -> float:
        """Speed along the stream, from SETTLED_S on, m/s."""
        x = self.nose[:, 0]
        first = float(np.interp(SETTLED_S, self.time, x))
        return (float(x[-1]) - first) / (float(self.time[-1]) - SETTLED_S)

    @property
    def residual(self) -> float:
        """Energy that is not accounted for by the works, as a share of the flow's work."""
        last = {name: float(values[-1]) for name, values in self.series.items()}
        works = sum(last[f"{name}_work"] for name in WORKS) + last["work"]
        return abs(last["energy"] - float(self.series["energy"][0]) - works) / abs(last["flow_work"])


def run(length: float = LENGTH_S, dt: float = 1e-3, every: int = 20, **values: Any) -> Run:
    """Run the dead fish.

    Parameters
    ----------
    length : float, default LENGTH_S
        Simulated time, s.
    dt : float, default 0.001
        Step, s.
    every : int, default 20
        Steps between samples.
    **values : Any
        Parameters of the fish.

    Returns
    -------
    Run
        The run.
    """
    plant = fish.load(dt, **{"start_depth_m": 0.0, **values})
    steps = round(length / dt)
    names = ("energy", "work", "kinetic_energy", "elastic_energy", "fluid_energy", *(f"{name}_work" for name in WORKS))
    stored: list[dict[str, Array]] = [plant.observe()]
    wall = 0.0
    for _ in range(steps // every):
        start = time.perf_counter()
        for _ in range(every):
            plant.step(plant.neutral)
        wall += time.perf_counter() - start
        stored.append(plant.observe())
    series = {name: np.array([float(row[name]) for row in stored]) for name in names}
    nose = np.array([row["position"][:2] for row in stored])
    clock: Array = dt * every * np.arange(float(len(stored)))
    return Run(clock, nose, series, wall, plant)


def sweep() -> dict[float, Run]:
    """Run the dead fish with each stiffness.

    Returns
    -------
    dict[float, Run]
        Runs by stiffness, N m2.
    """
    return {stiffness: run(flexural_stiffness_n_m2=stiffness) for stiffness in STIFFNESS}


def numbers(runs: dict[float, Run]) -> dict[str, float]:
    """Return the numbers by the keys of FISH.

    Parameters
    ----------
    runs : dict[float, Run]
        Runs by stiffness.

    Returns
    -------
    dict[str, float]
        Numbers by key.
    """
    finer = run(2.0, 5e-4, flexural_stiffness_n_m2=2e-3)
    coarse = run(2.0, flexural_stiffness_n_m2=2e-3)
    drifts = np.array([runs[stiffness].drift for stiffness in STIFFNESS])
    crossing = int(np.argmax(drifts < 0.0))
    a, b = np.log(STIFFNESS[crossing - 1]), np.log(STIFFNESS[crossing])
    share = drifts[crossing - 1] / (drifts[crossing - 1] - drifts[crossing])
    return {
        "stiff": runs[1.5e-3].drift,
        "stiffer": runs[3e-3].drift,
        "soft": runs[5e-4].drift,
        "softer": runs[2e-4].drift,
        "holds": float(np.exp(a + share * (b - a))),
        "work": max(abs(item.series["work"][-1]) for item in runs.values()),
        "audit": runs[1.5e-3].residual,
        "audit_order": float(np.log2(coarse.residual / finer.residual)),
        "accelerating": _accelerating(),
        "printed": _printed(),
        "fish_speed": LENGTH_S / min(item.wall for item in runs.values()),
    }


def _accelerating() -> float:
    """Return the travel of a bent fish in an accelerating stream less the stream's own, after 1 s, m."""
    model = compile_model(replace(fish.describe(fish.Fish(tether="none"))))
    plant = TreePlant(
        model, 1e-3, method="implicit2", nodes={"strip_nodes": 1}, flow=Flow((0.1, 0, 0), acceleration=(0.7, -0.3, 0)),
        audited=True,
    )  # fmt: skip
    state = model.state()
    state.twist[0] = 0.1
    plant.place(state)
    for _ in range(1000):
        plant.step(plant.neutral)
    return float(np.max(np.abs(plant.vector[:2] - np.array([0.1 + 0.35, -0.15]))))


def _printed(length: float = 10.0, every: int = 10) -> float:
    """Return the power p . (G - G^T) V_r of the gradient as printed over that of the flow, both summed along a run."""
    plant = fish.load(start_depth_m=0.0)
    total, flow = 0.0, 0.0
    from rtmms.base.spatial import adjoint
    from rtmms.fluids.ambient import GRADIENT, U
    from rtmms.model.layout import S_TWIST, S_WORLD_ROT

    for _ in range(round(length / plant.dt) // every):
        for _ in range(every):
            plant.step(plant.neutral)
        observed = plant.observe()
        flow += abs(float(observed["flow_power"]))
        s = plant.system.work.s
        for (row, element), ambient in zip(_strips(plant), plant.system.fluid.ambient, strict=False):
            place = element.placement
            strip_twist = adjoint(place.rotation, place.position) @ s[row, S_TWIST : S_TWIST + 6]
            r = s[row, S_WORLD_ROT : S_WORLD_ROT + 9].reshape(3, 3) @ place.rotation
            v = strip_twist[:3] - r.T @ ambient[U : U + 3]
            p = np.array([0.0, element.added[1] * element.length * v[1], element.added[2] * element.length * v[2]])
            slope = r.T @ ambient[GRADIENT : GRADIENT + 9].reshape(3, 3) @ r
            total += float((v + r.T @ ambient[U : U + 3]) @ (slope.T - slope) @ p)
    return abs(total) / flow


def _strips(plant: TreePlant) -> list[Any]:
    from rtmms.model.elements import Strip

    return [pair for pair in plant.model.elements if isinstance(pair[1], Strip)]


def draw(runs: dict[float, Run], out: Path, paper: str) -> list[Path]:
    """Draw station holding against flexural stiffness, paths, energy, and the street with the fish in it.

    Parameters
    ----------
    runs : dict[float, Run]
        Runs by stiffness.
    out : Path
        Folder of the figures.
    paper : str
        Name of the paper, for the files.

    Returns
    -------
    list[Path]
        Files of the figures.
    """
    return [
        _station(runs, out, paper),
        _ways(runs, out, paper),
        _energy(runs[2e-3], out, paper),
        _street(runs[2e-3], out, paper),
    ]


def _station(runs: dict[float, Run], out: Path, paper: str) -> Path:
    figure, axes = canvas()
    axes.semilogx(STIFFNESS, [runs[stiffness].drift for stiffness in STIFFNESS], "o-")
    axes.axhline(0.0, color="black", linewidth=0.8)
    axes.set(xlabel="EI (N m2)", ylabel="drift along the stream (m/s)",
             title="A dead fish in a vortex street: below 0 it swims upstream")  # fmt: skip
    return save(figure, out, f"{paper}-station")


def _ways(runs: dict[float, Run], out: Path, paper: str) -> Path:
    figure, axes = canvas()
    for stiffness in (2e-4, 5e-4, 1e-3, 1.5e-3, 3e-3):
        axes.plot(runs[stiffness].time, runs[stiffness].nose[:, 0], label=f"EI = {stiffness:g} N m2")
    axes.set(xlabel="t (s)", ylabel="x of the nose (m), stream towards +x", title="Ways of the nose")
    axes.legend()
    return save(figure, out, f"{paper}-ways")


def _energy(item: Run, out: Path, paper: str) -> Path:
    figure, axes = canvas(2, 1, (7.0, 6.0))
    for name in ("kinetic", "elastic", "fluid"):
        axes[0].plot(item.time, 1e3 * item.series[f"{name}_energy"], label=name)
    for name in WORKS:
        axes[1].plot(item.time, 1e3 * item.series[f"{name}_work"], label=f"work of {name}")
    for part, title in zip(
        axes, ("what is stored (mJ), EI = 2e-3 N m2", "where it comes from and goes (mJ)"), strict=True
    ):
        part.set(xlabel="t (s)", title=title)
        part.legend()
    return save(figure, out, f"{paper}-energy")


def _street(item: Run, out: Path, paper: str) -> Path:
    """Draw the vorticity of the street at the run's end, and the fish's links in it."""
    from rtmms.dynamics import body_poses
    from rtmms.fluids.ambient import SAMPLE, sample

    plant = item.plant
    x0, t = float(plant.vector[0]), plant.time
    xs, ys = np.linspace(x0 - 0.2, x0 + 0.4, 121), np.linspace(-0.12, 0.12, 49)
    vorticity, now, flow = np.zeros((len(ys), len(xs))), np.zeros(SAMPLE), plant.flow.pack()
    for i, y in enumerate(ys):
        for j, x in enumerate(xs):
            sample(flow, np.zeros(3), t, x, y, 0.0, now)
            vorticity[i, j] = now[6] - now[4]
    figure, axes = canvas(size=(8.0, 3.6))
    maximum = float(np.abs(vorticity).max())
    axes.contourf(xs, ys, vorticity, 21, cmap="RdBu_r", vmin=-maximum, vmax=maximum)
    _, places = body_poses(plant.model, plant.state)
    names = [plant.model.body_names.index(name) for name in plant.model.body_names if name != "body"]
    axes.plot(places[names, 0], places[names, 1], "k.-")
    axes.set(xlabel="x (m)", ylabel="y (m)", aspect="equal", title=f"Vorticity and joints, t = {t:.0f} s")
    return save(figure, out, f"{paper}-street")


def part(out: Path | None, paper: str = "boyer2017") -> tuple[list[Row], list[Path]]:
    """Compute the rows, and draw the figures.

    Parameters
    ----------
    out : Path | None
        Folder of figures; None: no figures.
    paper : str, default 'boyer2017'
        Name of the paper, for the files.

    Returns
    -------
    tuple[list[Row], list[Path]]
        Rows of the table, and files of the figures.
    """
    runs = sweep()
    return rows_of(FISH, numbers(runs)), draw(runs, out, paper) if out is not None else []
