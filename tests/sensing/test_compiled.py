"""A step of plant, faults and sensors as one compiled call: the bits of steps from Python, and no objects."""

from __future__ import annotations

from ctypes import c_double
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.base.jit import COMPILED, kernel
from rtmms.base.pointers import ARGUMENTS, call
from rtmms.plant.optional_protocols import CompiledOutputs, CompiledStep
from rtmms.plant.protocol import Plant
from rtmms.sensing import Sensed, read_profile
from rtmms.sensing.faults import Faulty
from rtmms.sensing.sensed import Estimated
from tests.growth import growth

pytestmark = pytest.mark.skipif(not COMPILED, reason="of compiled code")

OVER = {"imu": {"dropout": 0.1, "jitter_s": 0.003}, "depth": {"rate_hz": 300.0}}


@kernel
def called(function: int, arguments: int) -> int:
    return int(call(function, arguments))


class Plain:
    """A plant that has nothing beside what it must, but that it can be set."""

    def __init__(self, plant: Any) -> None:
        self.dt, self.actuators, self.outputs = plant.dt, plant.actuators, plant.outputs
        self.reset, self.step, self.observe = plant.reset, plant.step, plant.observe
        self.snapshot, self.restore, self.set = plant.snapshot, plant.restore, plant.set
        self._plant = plant

    @property
    def parameters(self) -> Any:
        return self._plant.parameters


class Driven:
    """Steps by `compiled_step`, as the loop does."""

    def __init__(self, plant: Any) -> None:
        self.plant, self._arguments = plant, np.zeros(ARGUMENTS, dtype=np.int64)

    def step(self, command: Any) -> None:
        entry: CompiledStep = self.plant.compiled_step()
        self._arguments[: len(entry.arguments)] = entry.arguments
        (c_double * len(command)).from_address(entry.command)[:] = command
        self.plant.finish_compiled_step(called(entry.function, self._arguments.ctypes.data))


def pair() -> tuple[Any, Any]:
    """The same one, entered, and from Python."""
    plants: list[Plant] = [rtmms.load("manta"), Plain(rtmms.load("manta"))]
    built = [Sensed(Faulty(plant), read_profile("typical", plant, OVER)) for plant in plants]
    assert built[1].compiled_step() is None
    assert built[1].compiled_outputs() is None
    return built[0], built[1]


def swim(k: int) -> np.ndarray:
    return 0.4 * np.sin(0.02 * k + np.arange(4.0))


def same(item: Any, other: Any) -> None:
    observed, expected = item.observe(), other.observe()
    assert list(observed) == list(expected)
    for name, value in expected.items():
        np.testing.assert_array_equal(observed[name], value, err_msg=name)


def outputs_of(plant: Any) -> dict[str, np.ndarray]:
    """What compiled code gets of its outputs."""
    account: CompiledOutputs = plant.compiled_outputs()
    arguments = np.zeros(ARGUMENTS, dtype=np.int64)
    arguments[: len(account.arguments)] = account.arguments
    called(account.function, arguments.ctypes.data)
    return {name: np.array((c_double * size).from_address(at)[:]) for name, (at, size) in account.numbers.items()}


FAULTS = (
    {"left.front": "stuck", "left.back": "slow=0.3", "right.front": "backlash=0.1", "right.back": "dead_band=0.2"},
    {"left.front": "delay=0.05", "left.back": "free=3", "right.front": "", "right.back": "", "depth": "spikes=1"},
    {"left.front": "", "left.back": "", "imu": "bias=0.1", "dvl": "silent", "depth": ""},
)


def test_the_bits_are_those_of_steps_from_python() -> None:
    item, other = pair()
    item.reset(seed=7)
    other.reset(seed=7)
    driven, stored = Driven(item), (b"", b"")
    for k in range(400):
        if k % 100 == 50:
            for plant in (item, other):
                plant.set(**{f"fault.{name}": word for name, word in FAULTS[k // 100 % len(FAULTS)].items()})
        if k == 200:
            item.set(gravity_m_s2=9.7)
            other.set(gravity_m_s2=9.7)
            same(item, other)
            stored = item.snapshot(), other.snapshot()
        (driven if k % 7 else item).step(swim(k))
        other.step(swim(k))
        if k % 20 == 0:
            same(item, other)
    assert item.snapshot()[-item._state.nbytes :] == other.snapshot()[-other._state.nbytes :]
    flat = {name: np.ravel(value) for name, value in other.observe().items()}
    observed = outputs_of(item)
    assert set(observed) == set(flat)
    for name, value in flat.items():
        np.testing.assert_array_equal(observed[name], value, err_msg=name)
    item.restore(stored[0])
    other.restore(stored[1])
    same(item, other)
    np.testing.assert_array_equal(outputs_of(item)["truth.rod_torque"], other.observe()["truth.rod_torque"])
    driven.step(swim(0))
    other.step(swim(0))
    same(item, other)


def test_a_state_does_not_depend_on_outputs_that_were_read_in_between() -> None:
    """Torques of the rods are computed for a sensor's samples; reading them in other steps changes no bit."""
    slow = {"current": {"rate_hz": 100.0, "noise_a": 0.0, "resolution_a": 0.0, "turn_on_a": 0.0}}
    item, other = (Sensed(plant, read_profile("typical", plant, slow)) for plant in (rtmms.load("manta") for _ in "ab"))
    constant = item.sensors["current"].torque_constant_n_m_a  # type: ignore[attr-defined]
    torques, samples = {}, set()
    for k in range(55):
        item.step(swim(k))
        other.step(swim(k))
        outputs_of(item)
        outputs = item.observe()
        torques[k + 1] = outputs["truth.rod_torque"]
        at = round(float(outputs["current.time"]) / item.dt)
        if at > 0:
            samples.add(at)
            np.testing.assert_allclose(constant * outputs["current.value"], torques[at], rtol=1e-12)
    assert samples == {10, 20, 30, 40, 50}
    assert item.snapshot() == other.snapshot()


def test_a_step_leaves_no_objects() -> None:
    item, _ = pair()
    item.set(**{"fault.left.front": "free"})
    entry = item.compiled_step()
    arguments = np.zeros(ARGUMENTS, dtype=np.int64)
    arguments[: len(entry.arguments)] = entry.arguments
    function, at = entry.function, arguments.ctypes.data

    def work() -> None:
        for _ in range(50):
            item.compiled_step()
            item.finish_compiled_step(called(function, at))

    assert growth(work) == 0


def test_an_estimate_follows_what_compiled_steps_gave() -> None:
    plants = [rtmms.load("manta"), Plain(rtmms.load("manta"))]
    item, other = (Estimated(plant, read_profile("typical", plant, {"gps": {"off": True}})) for plant in plants)
    driven = Driven(item)
    assert item.compiled_outputs() is None
    for k in range(600):
        driven.step(swim(k))
        other.step(swim(k))
    same(item, other)
    assert other.observe()["estimate.position"] == pytest.approx(other.observe()["truth.position"], abs=0.1)
