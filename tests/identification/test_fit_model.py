"""rtmms.identify, the Python function: recordings of several kinds, what is free, objectives, and how a fit may end."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest

import rtmms
from rtmms.base.budget import Budget
from rtmms.base.errors import ArgumentError, ModelError, UnknownNameError
from rtmms.base.parameters import parameter_values
from rtmms.mechanism.actuators import JointSpeed, JointTorque
from rtmms.mechanism.plant import TreePlant
from rtmms.model.description import Body, Joint, Mechanism
from rtmms.model.solids import Box, at
from rtmms.plant.loading import robots
from rtmms.studies.fit_descent import Iteration, Watch
from rtmms.studies.fit_features import Feature, Objective, aligning_delay, drive_frequency, read_objectives
from rtmms.studies.fit_model import Identified, Reader, fit_and_assess
from rtmms.studies.fit_prediction import free_start
from rtmms.studies.fit_unknowns import asked_for
from rtmms.studies.fitting import Settings
from rtmms.studies.recordings import of_plant

DT = 1e-2
TRUTH = {"mass_kg": 1.2, "damping": 0.08}


def pendulum(
    mass_kg: Annotated[float, rtmms.Parameter("Mass of the rod.", "kg", le=50)] = 1.0, damping: float = 0.08,
    first_rad: float = 0.0, dt: float = DT,
) -> TreePlant:  # fmt: skip
    """A rod on a base that is held: one keyword with a declaration, and two without."""
    rod = Box(0.04, 0.04, 0.5, mass_kg / (0.04 * 0.04 * 0.5), at(z=-0.25))
    joint = Joint("shoulder", "base", "arm", axis=(0, 1, 0), damping=damping)
    tree = Mechanism("pendulum", [Body("base"), Body("arm", solids=[rod])], [joint], base="fixed")
    plant = TreePlant(tree, dt, actuators=[JointTorque("shoulder")])
    plant.initial_pose = {"joint_position": [first_rad]}
    plant.reset()
    return plant


def swing(count: int = 300, frequency_hz: float | None = None, seed: int = 7) -> np.ndarray:
    """(count, 1) N m, smooth; a wave where a frequency is given."""
    time = DT * np.arange(count)
    if frequency_hz is not None:
        return np.sin(2.0 * np.pi * frequency_hz * time)[:, None]
    knots = np.arange(0.0, DT * count + 0.3, 0.25)
    return np.interp(time, knots, np.random.default_rng(seed).normal(size=len(knots)))[:, None]


def recording(
    commands: np.ndarray, noise: float = 0.0, seed: int = 0, late_s: float = 0.0, **truth: Any
) -> dict[str, Any]:
    """Columns as a logger of one's own has them: samples at the end of each step, `late_s` after it."""
    plant = pendulum(**{**TRUTH, **truth})
    angle = [plant.observe()["joint_position"][0]]
    for command in commands:
        plant.step(command)
        angle.append(plant.observe()["joint_position"][0])
    time = DT * np.arange(len(commands) + 1)
    chance = np.random.default_rng(seed)
    return {
        "time": time,
        "command.shoulder.torque": np.append(commands[:, 0], 0.0),
        "joint_position": np.interp(time - late_s, time, angle)[:, None] + noise * chance.normal(size=(len(time), 1)),
    }


def test_a_mapping_of_arrays_and_a_function_of_keywords() -> None:
    result = rtmms.identify(pendulum, recording(swing()), fit=["mass_kg", "damping"], parameters={"damping": 0.05},
                           at_rest=True, threads=1)  # fmt: skip
    assert result.values == pytest.approx(TRUTH, rel=1e-5)
    assert result.names == ["mass_kg", "damping"]
    assert result.covariance.shape == (2, 2)
    errors = np.sqrt(np.diag(result.covariance))
    assert list(result.standard_errors.values()) == pytest.approx(errors.tolist())
    bounds = {name: item["bounds"] for name, item in result.report["parameters"].items()}
    assert bounds["mass_kg"][1] == 50.0
    assert bounds["damping"] == [None, None], "nothing is declared of it, so that nothing is known"
    shown = result.predictions["recording 1"]["joint_position"]
    assert shown.measured.shape == shown.model.shape == (len(shown.time), 1)
    assert np.abs(shown.measured - shown.model).max() < 1e-6
    assert 0 < (~shown.fitted).sum() < len(shown.time)


def test_a_figure(tmp_path: Path) -> None:
    result = rtmms.identify(pendulum, recording(swing()), fit="mass_kg", at_rest=True, threads=1)
    drawn = result.figure(tmp_path / "fit.png")
    assert len(drawn.subfigs) == 2
    assert (tmp_path / "fit.png").stat().st_size > 5000
    assert "mass_kg = 1.2 +- " in str(result)


def test_tables_and_frames(tmp_path: Path) -> None:
    """A CSV table, and whatever has columns as a DataFrame has them."""
    columns = recording(swing())
    path = tmp_path / "swing.csv"
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["t", "u", "angle"])
        out.writerows(zip(*(np.ravel(column).tolist() for column in columns.values()), strict=True))
    names = {"time": "t", "command.shoulder.torque": "u", "joint_position[0]": "angle"}
    table = rtmms.identify(pendulum, path, fit="mass_kg", columns=names, at_rest=True, threads=1)

    class Column:
        def __init__(self, values: Any) -> None:
            self.values = values

        def to_numpy(self) -> Any:
            return np.ravel(self.values)

    class Frame:
        """The members of a DataFrame of pandas that are used."""

        columns = ("time", "command.shoulder.torque", "joint_position[0]")

        def __getitem__(self, name: str) -> Column:
            return Column(columns[name.removesuffix("[0]")])

        def to_numpy(self) -> Any:
            raise AssertionError

    frame = rtmms.identify(pendulum, Frame(), fit="mass_kg", at_rest=True, threads=1)
    assert table.values["mass_kg"] == pytest.approx(frame.values["mass_kg"], rel=1e-9)


@pytest.mark.parametrize(("chosen", "text"), [
    ({"model": 3}, "identify: model: expected a name or a file"),
    ({"recordings": [5]}, "recording 1: expected a file, a log, a mapping"),
    ({"fit": "mas_kg"}, "did you mean mass_kg"),
    ({"fit": "first_rad", "bounds": {"first_rad": (2.0, 1.0)}}, "expected LOW:HIGH with LOW < HIGH"),
    ({"free": ["start.knee"]}, "unknown coordinate of --free 'start.knee'"),
    ({"free": ["start.x"]}, "the mechanism or a command determines x"),
    ({"free": ["start.shoulder"], "pin": ["start.joint_position*"]}, "both name start"),
    ({"lead_in": 5.0}, "--lead-in 5: expected less than 3 s"),
    ({"bounds": {"mass_kg": (1.0, 60.0)}}, "expected bounds within 1e-06 to 50"),
    ({"objectives": ["harmonic"]}, "channel: expected an output of the robot"),
    ({"objectives": ["mean_speed:value=1"]}, "noise: expected the standard deviation"),
    ({"objectives": ["harmonic:axes=m0"]}, "axes: expected two markers A:B"),
    ({"objectives": ["harmonic:axes=joint_position:joint_velocity"]}, "axes: expected outputs that are positions"),
    ({"objectives": ["mean_speed:recording=other,value=1,noise=1"]}, "unknown recording of --objective 'other'"),
])  # fmt: skip
def test_what_is_refused(chosen: dict[str, Any], text: str) -> None:
    arguments = {"model": pendulum, "recordings": recording(swing()), "fit": "mass_kg", "at_rest": True, **chosen}
    with pytest.raises((ModelError, ArgumentError, UnknownNameError), match=re.escape(text)):
        rtmms.identify(**arguments, threads=1)


def free_of(identified: Identified) -> dict[str, str]:
    return {item["name"]: item["why"] for item in identified.report["free"]}


def test_a_first_state_is_freed_and_pinned() -> None:
    """From 0.2 rad: unknown at a table's start, known at rest, and either by the options."""
    data = recording(swing(), noise=1e-4, first_rad=0.2)
    arguments: dict[str, Any] = {"fit": "mass_kg", "threads": 1, "hold_out": 0.0}
    assert set(free_of(rtmms.identify(pendulum, data, **arguments))) == {
        "mass_kg", "start.0.joint_position[0]", "start.0.joint_velocity[0]",
    }  # fmt: skip
    result = rtmms.identify(pendulum, data, pin=["start.shoulder.rate"], **arguments)
    assert set(free_of(result)) == {"mass_kg", "start.0.joint_position[0]"}
    assert result.values["mass_kg"] == pytest.approx(1.2, abs=4.0 * result.standard_errors["mass_kg"])
    freed = rtmms.identify(pendulum, data, free=["start.shoulder"], at_rest=True, **arguments)
    assert free_of(freed) == {"mass_kg": "--fit", "start.0.joint_position[0]": "--free"}
    assert freed.report["nuisances"]["start.0.joint_position[0]"] == pytest.approx(0.2, abs=1e-3)


def test_values_and_delays_of_each_recording() -> None:
    """Two rods of other masses with one damping, whose clocks are late by other delays."""
    both = [
        recording(swing(seed=1), mass_kg=1.1, late_s=0.02), recording(swing(seed=2), mass_kg=1.3, late_s=-0.01),
    ]  # fmt: skip
    result = rtmms.identify(
        pendulum, both, fit=["damping"], per_recording=["mass_kg"], delay_per_recording=True, at_rest=True, threads=1,
        bounds={"mass_kg": (0.5, 3.0)},
    )  # fmt: skip
    wanted = {"damping": 0.08, "mass_kg@1": 1.1, "mass_kg@2": 1.3, "delay@1": 0.02, "delay@2": -0.01}
    assert result.values == pytest.approx(wanted, rel=2e-2, abs=2e-4)
    assert result.report["parameters"]["mass_kg@2"]["bounds"] == [0.5, 3.0]
    assert free_of(result)["mass_kg@1"] == "--per-recording"


def test_a_lead_in_is_simulated_and_not_compared() -> None:
    """Samples before it are nonsense; the part held back is a share of the time after it."""
    data = recording(swing(), noise=1e-4)
    data["joint_position"][:100] = 3.0
    data["joint_position"][150:160] = np.nan  # no samples
    result = rtmms.identify(pendulum, data, fit="mass_kg", at_rest=True, threads=1, lead_in=1.005, hold_out=0.5)
    assert result.values["mass_kg"] == pytest.approx(1.2, abs=4.0 * result.standard_errors["mass_kg"])
    shown = result.predictions["recording 1"]["joint_position"]
    assert shown.time.min() == pytest.approx(1.01)
    assert shown.fitted.sum() == pytest.approx(90, abs=2), "half of 2 s, less ten samples that are not there"


# Objectives.


def test_harmonics_need_no_common_clock() -> None:
    """Amplitude and phase of angle at the drive's frequency, in a recording whose clock began at another time."""
    commands, damped = swing(1000, 0.5), {"damping": 0.4}
    data = recording(commands, noise=1e-3, **damped)
    late = recording(commands, noise=1e-3, late_s=0.31, **damped)
    arguments: dict[str, Any] = {
        "fit": ["mass_kg"],
        "parameters": damped,
        "at_rest": True,
        "threads": 1,
        "lead_in": 3.0,
    }
    item = "harmonic:channel=joint_position[0],order="
    for values in (data, late):
        result = rtmms.identify(pendulum, values, objectives=[f"{item}1", f"{item}3"], **arguments)
        assert result.values["mass_kg"] == pytest.approx(1.2, abs=4.0 * result.standard_errors["mass_kg"])
        assert result.standard_errors["mass_kg"] < 0.05
        assert set(result.report["fit"]) == {"harmonic1.joint_position[0]", "harmonic3.joint_position[0]"}


def test_an_amplitude_that_is_given() -> None:
    """The table has commands alone; what was measured is a number with a noise."""
    commands, damped = swing(1200, 0.5), {"damping": 0.4}
    data = recording(commands, **damped)
    rows = data.pop("joint_position")[-800:, 0]  # four periods
    size = float(2.0 * np.abs(np.mean(rows * np.exp(-1j * np.pi * DT * np.arange(800)))))
    asked = {"kind": "harmonic", "channel": "joint_position[0]", "value": size, "noise": 1e-3}
    result = rtmms.identify(pendulum, data, fit="mass_kg", objectives=[asked], parameters=damped, at_rest=True,
                           lead_in=4.0, threads=1)  # fmt: skip
    assert result.values["mass_kg"] == pytest.approx(1.2, rel=2e-2)
    assert 0.0 < result.standard_errors["mass_kg"] < 0.1


def test_objectives_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "speeds.toml"
    path.write_text('[[objective]]\nkind = "mean_speed"\nvalue = 0.2\nnoise = 0.01\n[[objective]]\nkind = "harmonic"\n'
                    'channel = "joint_position[1]"\norder = 2\nclock = "common"\n')  # fmt: skip
    speed, wave = read_objectives([str(path)])
    assert (speed.kind, speed.value, speed.outputs) == ("mean_speed", 0.2, ("position",))
    assert (wave.order, wave.parts, wave.clock) == (2, ("joint_position", 1), "common")
    path.write_text('[[objective]]\nkind = "mean_sped"\n')
    with pytest.raises(ModelError, match=r"speeds.toml: objective 1: .*did you mean mean_speed"):
        read_objectives([str(path)])


def test_the_frequency_of_a_drive() -> None:
    data = Reader(pendulum, {}, at_rest=True).read_all([recording(swing(777, 1.37))])[0]
    assert drive_frequency(data, "here") == pytest.approx(1.37, rel=1e-4)
    still = Reader(pendulum, {}, at_rest=True).read_all([recording(np.ones((300, 1)))])[0]
    with pytest.raises(ModelError, match="expected the frequency of the drive, got none, and the"):
        drive_frequency(still, "here")


def test_the_delay_that_aligns_harmonics() -> None:
    rate, delay = np.array([3.0, 6.0, 9.0]), 0.4
    model = np.array([1.0 + 0.2j, 0.3 - 0.1j, 0.05j])
    measured = model * np.exp(-1j * rate * delay)
    pairs = list(zip(model.tolist(), measured.tolist(), [0.1] * 3, rate.tolist(), strict=True))
    assert aligning_delay(pairs) == pytest.approx(delay, abs=1e-12)


# How a fit ends, and its message.


def test_iterations_are_reported() -> None:
    observed: list[Iteration] = []
    rtmms.identify(pendulum, recording(swing()), fit="mass_kg", at_rest=True, threads=1, progress=observed.append)
    assert [item.number for item in observed] == list(range(1, len(observed) + 1))
    assert observed[0].values == {"mass_kg": 1.0}
    assert observed[-1].values["mass_kg"] == pytest.approx(1.2, rel=1e-4)
    assert all(item.left_s >= 0.0 and item.cost >= 0.0 for item in observed)


def test_ctrl_c_gives_the_best_so_far() -> None:
    def press(iteration: Iteration) -> None:
        if iteration.number == 3:
            raise KeyboardInterrupt

    result = rtmms.identify(
        pendulum, recording(swing(), noise=1e-3), fit=["mass_kg", "damping"], at_rest=True, threads=1, progress=press
    )
    assert result.report["note"].startswith("Ctrl-C ended the search after 3 iterations")
    assert result.advice[0] == result.report["note"]
    assert result.values["mass_kg"] == pytest.approx(1.2, rel=0.1), "two steps of Gauss-Newton are close already"
    assert np.isfinite(result.covariance).all()


def test_a_budget_ends_a_search_and_one_that_is_too_short_is_refused() -> None:
    recordings = Reader(pendulum, {}, at_rest=True).read_all([recording(swing(), noise=1e-3)])
    asked = asked_for(["mass_kg"], recordings, recordings[0].build(), {}, {})
    watch = Watch()

    def late(iteration: Iteration) -> None:
        if iteration.number == 2:
            watch.budget = Budget(0.0)

    watch.iterated = late
    result = fit_and_assess(recordings, asked, Settings(), watch)
    assert result.report["note"].startswith("the time budget of 0 s ended the search after 2 iterations")
    with pytest.raises(ModelError, match=r"--budget 0: expected time for at least one iteration"):
        fit_and_assess(recordings, asked, Settings(), Watch(budget=Budget(0.0)))


def test_a_poor_fit_reports_which_channel_of_which_recording_and_what_to_do() -> None:
    good, late = recording(swing(seed=1), noise=1e-3), recording(swing(seed=2), noise=1e-3, late_s=0.05)
    result = rtmms.identify(pendulum, [good, late], fit=["mass_kg", "damping"], at_rest=True, threads=1)
    poor = [text for text in result.advice if text.startswith("recording 2: joint_position")]
    assert len(poor) == 1
    assert "--fit delay.joint_position" in poor[0]
    offset = recording(swing(seed=1), noise=1e-3)
    offset["joint_position"] = offset["joint_position"] + 0.3
    result = rtmms.identify(pendulum, offset, fit="damping", parameters={"mass_kg": 1.2}, at_rest=True, threads=1)
    assert any("--fit bias.joint_position" in text for text in result.advice)


def test_a_bound_names_what_pushes_against_it() -> None:
    result = rtmms.identify(pendulum, recording(swing(), noise=1e-3), fit="mass_kg", bounds={"mass_kg": (0.5, 1.1)},
                           at_rest=True, threads=1)  # fmt: skip
    assert result.values["mass_kg"] == pytest.approx(1.1)
    assert any(text.startswith("mass_kg: stopped at its upper bound 1.1; joint_position of recording 1 pushes it there")
               for text in result.advice)  # fmt: skip


def test_a_bound_of_the_model_is_not_to_be_widened() -> None:
    def weak(mass_kg: Annotated[float, rtmms.Parameter("Mass.", "kg", le=1.1)] = 1.0) -> TreePlant:
        return pendulum(mass_kg)

    result = rtmms.identify(weak, recording(swing(), noise=1e-3), fit="mass_kg", at_rest=True, threads=1)
    assert result.values["mass_kg"] == pytest.approx(1.1)
    (text,) = [text for text in result.advice if text.startswith("mass_kg")]
    assert "beyond which the model accepts nothing; joint_position of recording 1 pushes it there most" in text
    assert "--bounds" not in text


@pytest.mark.filterwarnings("error")
def test_a_bound_that_nothing_pushes_against_is_no_advice() -> None:
    """A parameter without an effect stays at its bound; the report calls it indistinct, and asks for no wider bound."""

    def deaf(mass_kg: float = 1.0, drag: Annotated[float, rtmms.Parameter("No effect.", ge=0)] = 0.0) -> TreePlant:
        return pendulum(mass_kg)

    result = rtmms.identify(deaf, recording(swing(), noise=1e-3), fit=["mass_kg", "drag"], at_rest=True, threads=1)
    assert result.report["parameters"]["drag"]["at_bound"]
    assert ["drag"] in [item["names"] if isinstance(item, dict) else item for item in result.report["indistinct"]]
    assert not any("bound" in text for text in result.advice)


def test_a_model_that_fails_names_recording_and_reason() -> None:
    def brittle(mass_kg: float = 1.0) -> TreePlant:
        if mass_kg > 1.05:
            raise ModelError("the rod breaks")
        return pendulum(mass_kg)

    with pytest.raises(ModelError, match=r"the model fails .*recording 1: the rod breaks.*--set"):
        rtmms.identify(
            brittle, recording(swing()), fit="mass_kg", prior={"mass_kg": (2.0, 0.1)}, at_rest=True, threads=1
        )


# What the mechanism holds.


def test_the_start_of_a_joint_whose_rate_is_commanded() -> None:
    """Its angle is a state: where it began is sought, and found."""
    tree = Mechanism("wheel", [Body("base"), Body("rim", 1.0, inertia=np.eye(3))], [Joint("hub", "base", "rim")],
                     base="fixed")  # fmt: skip

    def wheel(bandwidth: float = 10.0) -> TreePlant:
        return TreePlant(tree, DT, actuators=[JointSpeed("hub", bandwidth=bandwidth)])

    plant = wheel(8.0)
    plant.place(joint_position=[0.7])
    commands = swing(200)
    angle = [plant.observe()["joint_position"][0]]
    for command in commands:
        plant.step(command)
        angle.append(plant.observe()["joint_position"][0])
    data = {"time": DT * np.arange(201), "command.hub.speed": np.append(commands[:, 0], 0.0),
            "joint_position[0]": np.array(angle)}  # fmt: skip
    result = rtmms.identify(wheel, data, fit="bandwidth", threads=1)
    assert result.values["bandwidth"] == pytest.approx(8.0, rel=1e-3)
    assert {"start.0.joint_position[0]", "start.0.joint_velocity[0]"} <= set(free_of(result))


def test_a_robot_in_a_plane_keeps_roll_pitch_and_heave() -> None:
    """Of a cart on wheels surge and yaw rate are free, and its whole pose in the plane, to which they lead."""

    def free_words(plant: Any) -> list[str]:
        state = free_start(plant, np.zeros((50, len(plant.actuators))))
        return [word for (word, *_), free in zip(state.names[:12], state.movable[:12], strict=True) if free]

    hull = Body("hull", 1.0, inertia=np.eye(3))
    flat = TreePlant(Mechanism("raft", [hull], [], contacts=[rtmms.model.Plane("hull")]), DT, actuators=[])
    assert free_words(flat) == ["x", "y", "yaw", "vx", "vy", "wz"]
    skate = TreePlant(
        Mechanism("skate", [hull], [], contacts=[rtmms.model.Plane("hull"), rtmms.model.Axle("hull")]), DT, actuators=[]
    )
    assert free_words(skate) == ["x", "y", "yaw", "vx", "wz"]


def test_objective_of_a_speed_in_its_words() -> None:
    assert Objective("mean_speed").parts == ("position", -1)
    assert Objective("mean_speed", "velocity[0]").parts == ("velocity", 0)


@pytest.mark.parametrize("turn", [0.0, 2.5])
def test_harmonics_in_axes_of_two_markers(turn: float) -> None:
    """A head yaws while it swims, and a tail waves behind it; how the camera is turned does not matter."""
    t = np.arange(400) / 60.0
    wave = 2.0 * np.pi * 0.9 * t
    yaw, sway = np.radians(5.0) * np.cos(wave - 0.3), 0.04 * np.cos(wave + 0.7)
    along = np.stack([np.cos(turn + yaw), np.sin(turn + yaw), 0.0 * t], axis=1)
    across = np.stack([-along[:, 1], along[:, 0], 0.0 * t], axis=1)
    nose = 0.12 * t[:, None] * np.array([np.cos(turn), np.sin(turn), 0.0])
    unseen = np.array([0.0, 0.0, np.nan])
    samples = {"a": nose + unseen, "b": nose - 0.1 * along + unseen,
               "c": nose - 0.5 * along + sway[:, None] * across + unseen}  # fmt: skip
    samples["a"][7] = np.nan

    def results(objective: Objective, components: tuple[int, ...], slope: bool = False) -> complex:
        feature = Feature(objective, 0.9, 0.0, 9.0, not slope, components, slope)
        values, _ = feature.of(t, feature.signal(samples))
        return complex(*values)

    assert results(Objective("harmonic", axes="b:a"), (0,)) == pytest.approx(np.radians(5.0) * np.exp(-0.3j), rel=1e-6)
    lateral = results(Objective("harmonic", "c[1]", "b:a"), (1,))
    assert lateral == pytest.approx(0.04 * np.exp(0.7j), rel=1e-6)
    assert results(Objective("mean_speed", "a"), (0, 1), slope=True) == pytest.approx(0.12, rel=1e-9)


def test_the_turns_of_a_motor_are_the_drive() -> None:
    """Where its speed is constant: 3 Hz of 6 pi rad/s. A torque that is constant drives nothing periodic."""
    tree = Mechanism("wheel", [Body("base"), Body("rim", 1.0, inertia=np.eye(3))], [Joint("hub", "base", "rim")],
                     base="fixed")  # fmt: skip
    for motor, expected in ((JointSpeed("hub"), 3.0), (JointTorque("hub"), None)):
        plant = TreePlant(tree, DT, actuators=[motor])
        recorded = of_plant(plant, np.full((50, 1), 6.0 * np.pi), lambda plant=plant: plant)
        if expected is None:
            with pytest.raises(ModelError, match="expected the frequency of the drive"):
                drive_frequency(recorded, "run")
        else:
            assert drive_frequency(recorded, "run") == pytest.approx(expected)


def test_recordings_of_an_equal_model_share_a_plant() -> None:
    """The plant is built once for each set of values, not once for each recording."""
    built = 0

    def counted(mass_kg: float = 1.0, damping: float = 0.08, dt: float = DT) -> TreePlant:
        nonlocal built
        built += 1
        return pendulum(mass_kg, damping, dt=dt)

    several = [recording(swing(60, seed=k)) for k in range(4)]
    rtmms.identify(counted, several[:1], fit="mass_kg", at_rest=True, threads=1)
    item, built = built, 0
    rtmms.identify(counted, several, fit="mass_kg", at_rest=True, threads=1)
    assert built < 2 * item + 4


ARM = """<robot name="arm"><link name="base"/><link name="upper"><inertial><origin xyz="0 0 -0.2"/><mass value="1.0"/>
<inertia ixx="0.02" iyy="0.02" izz="0.002" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="shoulder" type="continuous"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
<dynamics damping="0.1" friction="0"/></joint></robot>"""


def driven(robot: str, parameter: str, factor: float = 1.05, **arguments: Any) -> tuple[dict[str, Any], float]:
    """Columns of a run of a robot with a parameter that differs from the model's, and its value."""
    default = parameter_values(rtmms.load(robot, **arguments))[parameter]
    plant = rtmms.load(robot, **{**arguments, parameter: factor * default})
    steps = int(np.clip(1.0 / plant.dt, 60, 600))
    time = plant.dt * np.arange(steps + 1)
    low = np.array([-1.0 if actuator.lower is None else actuator.lower for actuator in plant.actuators])
    high = np.array([1.0 if actuator.upper is None else actuator.upper for actuator in plant.actuators])
    middle = np.array([actuator.neutral for actuator in plant.actuators])
    reach = np.minimum(np.minimum(high - middle, middle - low), 1.0)
    reach = np.where(reach > 0.0, reach, 0.1 * (high - low))
    wave = 0.2 * reach * np.sin(2.0 * np.pi * time[:, None] + np.arange(len(low)))
    commands = np.clip(middle + wave, low, high)
    small = [output.name for output in plant.outputs if np.prod(output.shape) <= 24]
    rows = {name: [plant.observe()[name]] for name in small}
    for command in commands[:-1]:
        plant.step(command)
        for name, value in plant.observe().items():
            if name in rows:
                rows[name].append(value)
    columns = {f"command.{actuator.name}": commands[:, k] for k, actuator in enumerate(plant.actuators)}
    return {"time": time, **columns, **{name: np.array(row) for name, row in rows.items()}}, factor * default


@pytest.mark.full
def test_a_urdf_file(tmp_path: Path) -> None:
    path = str(tmp_path / "arm.urdf")
    Path(path).write_text(ARM)
    data, truth = driven(path, "gravity_m_s2", dt=DT)
    result = rtmms.identify(path, data, fit="gravity_m_s2", dt=DT, at_rest=True, threads=1)
    assert result.values["gravity_m_s2"] == pytest.approx(truth, rel=1e-5)


PARAMETERS = {
    "bluerov2": "quadratic_surge_kg_m", "cat": "mass_kg", "continuous_eel": "length_m", "eel": "c2", "fish": "length_m",
    "fluid_swimmer": "half_length_m", "manta": "drag_coefficient", "modal_moth": "pressure", "moth": "span_m",
    "purcell": "length_m", "quadrotor": "mass_kg", "roller_racer": "seat_kg", "satellite": "mass_kg",
    "snake": "half_length_m", "snakeboard": "mass_kg", "tendon_fish": "tail_drag", "torpedo": "length_m",
    "trikke": "frame_kg", "unicycle": "wheel_m",
}  # fmt: skip
"""Of each robot a parameter that a short run shows."""


def test_each_robot_has_a_parameter_to_fit() -> None:
    assert PARAMETERS.keys() == robots().keys()


@pytest.mark.full
@pytest.mark.parametrize(("robot", "parameter"), PARAMETERS.items())
def test_every_robot(robot: str, parameter: str) -> None:
    data, truth = driven(robot, parameter)
    result = rtmms.identify(robot, data, fit=parameter, at_rest=True, threads=2)
    assert result.values[parameter] == pytest.approx(truth, rel=1e-3)
