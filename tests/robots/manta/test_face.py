"""The manta as users meet it: names, limits, snapshots, refusals, what a step leaves behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import rtmms
from rtmms.robots.manta import Manta, load
from rtmms.robots.manta import model as checks
from rtmms.robots.manta.coupling import spectral_radius
from tests.growth import growth
from tests.robots.gaits import gait, randomise, run


def drive(plant, commands):
    for command in commands:
        plant.step(command)


def test_channels():
    plant = rtmms.load("manta")
    assert isinstance(plant, rtmms.Plant)
    assert [a.name for a in plant.actuators] == ["left.front", "left.back", "right.front", "right.back"]
    outputs = plant.observe()
    assert [o.name for o in plant.outputs] == list(outputs)
    assert all(np.shape(outputs[o.name]) == o.shape for o in plant.outputs)
    for name in ("position", "quaternion", "velocity", "angular_velocity", "rod_angle", "rod_torque", "thrust"):
        assert name in outputs


def test_outputs_are_new_arrays_and_a_function_of_the_state():
    plant = load()
    randomise(plant, 3)
    a = plant.observe()
    stored = {k: v.copy() for k, v in a.items()}
    state = plant._state.copy()
    plant.step(np.full(4, 0.1))
    assert all((a[k] == stored[k]).all() for k in a)
    plant._state[:] = state
    assert all((plant.observe()[k] == stored[k]).all() for k in a)


def test_snapshot_continues_with_the_same_bits():
    command = gait(ramp=0.1)
    a = load()
    for k in range(100):
        a.step(command(k * 1e-3))
    blob = a.snapshot()
    b = load()
    b.restore(blob)
    for k in range(100, 200):
        a.step(command(k * 1e-3))
        b.step(command(k * 1e-3))
    assert a.snapshot() == b.snapshot()
    a.reset(seed=5)
    assert a.snapshot() == load().snapshot()


def test_snapshots_of_another_model_are_refused():
    with pytest.raises(rtmms.ModelError, match="expected a snapshot of the present model, step, version"):
        load().restore(load(chains=20).snapshot())
    with pytest.raises(rtmms.ModelError, match="expected a snapshot of this version"):
        load().restore(b"nonsense")
    with pytest.raises(rtmms.ModelError, match="bytes"):
        load().restore(load().snapshot()[:-8])


@pytest.mark.parametrize("size", [(1, 1), (2, 24), (1000, 2), (16, 3), (33, 4)])
def test_sizes(size):
    plant = load(chains=size[0], links=size[1])
    for _ in range(20):
        plant.step(np.array([0.1, 0.1, 0.1, 0.1]))
    q = plant.observe()["joint_position"]
    assert q.shape == (2, size[1], size[0])
    assert np.isfinite(q).all()
    assert np.abs(q).max() > 0.0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"body_mass_kg": -1}, r"'body_mass_kg': must be > 0 kg, got -1"),
        ({"support_length_m": 0}, r"'support_length_m': must be > 0 m, got 0"),
        ({"chains": 0}, r"'chains': must be >= 1, got 0"),
        ({"chains": 1001}, r"'chains': must be <= 1000"),
        ({"chains": 2.5}, r"whole number"),
        ({"links": 25}, r"<= 24"),
        ({"body": "held"}, r"one of free, fixed"),
        ({"added_mass": "maybe"}, r"true or false"),
        ({"body_inertia_kg_m2": "1,2,nan"}, r"\[2\]: must be finite"),
        ({"body_inertia_kg_m2": (1, 2)}, r"must be 3 numbers, got 2"),
        ({"interface_tolerance_m_s2": 1000}, r"'interface_tolerance_m_s2': must be <= 0.001 m/s2, rad/s2, got 1000"),
        ({"interface_passes_max": 1e9}, r"'interface_passes_max': must be <= 100000"),
        ({"servo_damping": 1e9}, r"'servo_damping': must be <= 100000, got 1e\+09"),
        ({"water_density_kg_m3": 1e6}, r"must be <= 20000 kg/m3"),
        ({"current_m_s": (0.0, 1e4, 0.0)}, r"'current_m_s'\[1\]: must be <= 100 m/s, got 10000"),
        ({"current_m_s": (0.0, 0.0, -1e4)}, r"'current_m_s'\[2\]: must be >= -100 m/s"),
        ({"body_inertia_kg_m2": (1, 1, 5)}, r"greater than the sum of the other two; got 1, 1, 5"),
        ({"damping_per": "chain"}, r"one of fin, joint"),
        ({"bending": "even"}, r"one of carried, centred"),
        ({"front_rod_m": 0.1}, r"front_rod_m: must be at least back_rod_m"),
        ({"dt": 0}, r"dt: must be > 0"),
        ({"dt": "fast"}, r"dt: expected a number"),
        ({"dt": float("nan")}, r"dt: must be > 0"),
        ({"chian": 3}, r"unknown manta parameter 'chian'; did you mean .*chains"),
        ({"preset": "papr"}, r"did you mean paper"),
        ({"coupling": "monolitic"}, r"did you mean monolithic"),
        ({"integrator": "rk4"}, r"rk4 needs dt <= .* s for these chains, got 0.001 s"),
        ({"current_field": lambda x: x}, r"current_field: must compile"),
        ({"current_field": lambda x, y, z, t: (x, y)}, r"three velocities"),
    ],
    ids=lambda v: str(next(iter(v))) if isinstance(v, dict) else "",
)
def test_bad_parameters_are_refused_by_name(parameters, message):
    with pytest.raises(rtmms.ModelError, match=message):
        load(**parameters)


def test_words_of_a_person_are_read():
    arguments = {"chains": "20", "body": "fixed", "added_mass": "true", "current_m_s": "0.1, 0, 0"}
    plant = load(dt="0.002", coupling="monolithic", **arguments)
    assert (plant.dt, plant.parameters.chains, plant.parameters.added_mass) == (0.002, 20, True)
    assert plant.parameters.current_m_s == (0.1, 0.0, 0.0)


def test_rk4_holds_the_step_it_allows_and_not_much_more():
    from rtmms.mechanism.methods import METHODS
    from rtmms.robots.manta.model import largest_step

    plant = load(chains=3, body="fixed")
    largest = largest_step(plant.model.links, METHODS["rk4"].stability, tip_speed=0.0)

    def grows(dt):
        p = load(chains=3, body="fixed", integrator="rk4", dt=dt)
        p.system.joints[:, :16] = 1e-3
        for _ in range(3000):
            p.step(np.zeros(4))
        return float(np.abs(p.system.joints[:, 16:]).max())

    assert grows(0.95 * largest) < 1.0
    with pytest.raises(rtmms.ModelError, match="rk4 needs"):
        load(chains=3, body="fixed", integrator="rk4", dt=1.1 * largest)


@pytest.mark.parametrize("dt", [1e-3, 1e-2])
def test_sequential_is_refused_exactly_where_it_blows_up(dt, monkeypatch):
    """The bound on the spectral radius against what happens when it is ignored."""
    observed = []
    monkeypatch.setattr(checks, "spectral_radius", lambda b, a: observed.append(spectral_radius(b, a)) or 0.0)
    for mass in (20.0, 6.0, 3.0, 1.5):
        j = [mass / 20.0 * x for x in (1.33, 1.93, 2.73)]
        plant = load(body_mass_kg=mass, body_inertia_kg_m2=j, added_mass=dt > 5e-3, dt=dt)
        command, blown = gait(ramp=0.2, right=(35.0, 40.0)), False  # the unstable mode rolls
        try:
            for k in range(round(1.5 / dt)):
                plant.step(command(k * dt))
        except rtmms.DivergedError:
            blown = True
        assert blown == (observed[-1] >= 1.0), (mass, observed[-1])
    assert min(observed) < 1.0 < max(observed) or dt > 5e-3


def test_the_refusal_names_bound_and_ways_out():
    parts = r"spectral radius .*below 1, got 1\.\d+; use coupling iterated or monolithic"
    with pytest.raises(rtmms.ModelError, match=parts):
        load(added_mass=True, dt=0.01)
    for coupling in ("iterated", "monolithic"):
        assert load(added_mass=True, dt=0.01, coupling=coupling).coupling == coupling
    assert load(added_mass=True, dt=0.01, body="fixed").coupling == "sequential"


def test_iterated_reports_its_passes():
    plant = load(coupling="iterated")
    for k in range(10):
        plant.step(gait()(k * 1e-3 + 0.3))
    o = plant.observe()
    assert 2 <= o["interface_passes"] < 100
    assert o["interface_residual"] <= plant.parameters.interface_tolerance_m_s2
    hasty = load(coupling="iterated", interface_passes_max=1)
    with pytest.raises(rtmms.DivergedError, match="did not converge in 1 passes"):
        drive(hasty, [gait()(k * 1e-3 + 0.3) for k in range(10)])


def test_bad_commands_change_nothing():
    plant = load()
    before = plant.snapshot()
    for bad, message in (
        ([0.0, np.nan, 0.0, 0.0], "left.back must be finite"),
        ([np.inf] * 4, "left.front, left.back"),
        ([0.0] * 3, "shape"),
        ("abc", "4 finite numbers"),
        (np.zeros((2, 2)), "shape"),
    ):
        with pytest.raises(ValueError, match=message):
            plant.step(bad)
        assert plant.snapshot() == before
    plant.step([0.1, 0.1, 0.1, 0.1])  # a list is welcome, if slower
    other = load()
    other.step(np.full(4, 0.1, np.float32))
    assert other.observe()["rod_angle"] == pytest.approx(plant.observe()["rod_angle"], abs=1e-8)


def test_a_diverging_run_keeps_the_last_good_state():
    plant = load(dt=0.02, rod_acceleration_limit_rad_s2=1e9, rod_rate_limit_rad_s=1e9, servo_frequency_hz=400.0)
    with pytest.raises(rtmms.DivergedError, match=r"diverged at t = .* s: .*joint") as e:
        drive(plant, [np.array([1.0, 1.0, -1.0, -1.0]) * (-1) ** k * 0.85 for k in range(400)])
    for name, value in e.value.last_good.items():
        assert np.isfinite(value).all(), name
    assert plant.observe()["position"] == pytest.approx(e.value.last_good["position"])


def test_summary_without_cycles_or_speed():
    plant = load(body="fixed")
    time, trace = run(plant, lambda t: np.zeros(4), 0.2)
    s = plant.summarise(time, trace)
    assert s["mean_speed_m_s"] == 0.0
    assert s["cost_of_transport"] is None
    assert s["turn_radius_m"] is None
    assert s["strouhal"] is None
    assert set(plant.summarise(time[:1], {k: v[:1] for k, v in trace.items()}).values()) == {None}


def test_summary_takes_whole_cycles():
    """A drift and a ripple: the mean over whole cycles has no trace of the ripple."""
    from rtmms.robots.manta.plant import mean, window

    t = np.linspace(0.0, 10.0, 2001)
    start, end, cycles = window(t, np.sin(2.0 * np.pi * 0.6 * t) + 0.3)
    assert cycles == 2
    assert (end - start) * 0.6 == pytest.approx(2.0, abs=1e-3)
    assert start >= 5.0
    assert mean(t, 1.0 + 5.0 * np.sin(2.0 * np.pi * 0.6 * t), start, end) == pytest.approx(1.0, abs=1e-3)


def child(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_step_makes_no_objects():
    plant = load()
    command = np.full(4, 0.1)

    def step(steps: int) -> None:
        for _ in range(steps):
            plant.step(command)

    step(100)
    assert growth(lambda: step(1000)) < 20


STATS = """
import numpy as np
from numba.core.runtime import rtsys
from rtmms.robots.manta import load
plant = load(coupling='{coupling}')
command = np.full(4, 0.1)
def allocations(steps):
    before = rtsys.get_allocation_stats().alloc
    for _ in range(steps):
        plant.step(command)
    return rtsys.get_allocation_stats().alloc - before
allocations(1)
print(allocations(1), allocations(100))
"""


@pytest.mark.full
@pytest.mark.parametrize("coupling", ["sequential", "iterated", "monolithic"])
def test_numba_allocates_nothing(coupling):
    item, hundred = child(STATS.format(coupling=coupling), NUMBA_NRT_STATS="1").split()
    assert item == hundred == "0"


@pytest.mark.full
def test_kernels_are_vectors_where_the_processor_has_them(tmp_path):
    """A change that stops the compiler from vectorising the lanes costs a factor of four and shows nowhere else."""
    code = """
import json, os, llvmlite.binding as ll
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # no second process: what it compiles has no assembly here
from rtmms.robots.manta import load
load()
from rtmms.robots.manta import fin_chains as f
out = {}
for k in (f.drive_block, f.condense_block, f.accelerate_block):
    within = k.get_overload.__self__  # as other kernels call it
    asm = "".join(within.inspect_asm().values())
    out[k.__name__] = [asm.count("zmm"), asm.count("ymm")]
print(json.dumps([dict(ll.get_host_cpu_features()), out]))
"""
    features, counts = json.loads(child(code, NUMBA_CACHE_DIR=str(tmp_path)))
    if not features.get("avx2"):
        pytest.skip("this processor has no 256-bit vectors")
    for name, (zmm, ymm) in counts.items():
        assert zmm + ymm > 100, name


@pytest.mark.full
def test_kernels_agree_without_the_compiler(tmp_path):
    code = """
import sys, numpy as np
from rtmms.robots.manta import load
plant = load(chains=2, links={links}, coupling='{coupling}', added_mass=True)
for k in range(3):
    plant.step(np.array([0.1, 0.2, -0.1, 0.05]))
sys.stdout.write(repr(plant._state.tolist() + plant._out.tolist()))
"""
    for links, coupling in ((3, "monolithic"), (2, "sequential")):
        text = code.format(links=links, coupling=coupling)
        plain = np.array(eval(child(text, NUMBA_DISABLE_JIT="1")))
        compiled = np.array(eval(child(text)))
        assert plain == pytest.approx(compiled, rel=1e-9, abs=1e-11)


def test_the_manta_is_what_the_entry_point_gives():
    assert isinstance(rtmms.load("manta", chains=10), Manta)
    with pytest.raises(rtmms.UnknownNameError, match="did you mean manta"):
        rtmms.load("manto")


@pytest.mark.full  # kernels that nothing else in the default suite uses
def test_a_preset_file(tmp_path):
    file = tmp_path / "light.toml"
    file.write_text('preset = "paper"\nbody_mass_kg = 15.0\nbody_inertia_kg_m2 = [1.0, 1.5, 2.0]\ndt = 0.002\n')
    plant = rtmms.load("manta", preset=str(file))
    assert (plant.dt, plant.parameters.body_mass_kg, plant.parameters.support_roll) == (0.002, 15.0, "zero")
    assert rtmms.load("manta", preset=str(file), dt=1e-3, body_mass_kg=16.0).parameters.body_mass_kg == 16.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("body_mass_kg = nan", r"light.toml: .*'body_mass_kg': must be finite, got nan"),
        ("body_mass_kg = -3", r"light.toml: .*'body_mass_kg': must be > 0 kg, got -3"),
        ("body_inertia_kg_m2 = [1.0, inf, 2.0]", r"light.toml: .*\[1\]: must be finite"),
        ("body_mas = 3", r"light.toml: unknown manta parameter 'body_mas'; did you mean body_mass_kg"),
        ("dt = 0.0", r"light.toml: dt: must be > 0"),
        ("body_mass_kg = x\n", r"light.toml: not TOML: .*line 1"),
    ],
)
def test_a_preset_file_with_a_fault_is_named(tmp_path, text, message):
    file = tmp_path / "light.toml"
    file.write_text(text)
    with pytest.raises(rtmms.ModelError, match=message):
        rtmms.load("manta", preset=str(file))


def test_a_preset_file_that_is_not_there():
    with pytest.raises(rtmms.ModelError, match=r"nowhere.toml: there is no such file"):
        rtmms.load("manta", preset="nowhere.toml")
