"""Memory layouts: what a record holds, how compiled code reads it, forks for other runs, fresh scratch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rtmms import TreePlant
from rtmms.base.jit import COMPILED, kernel
from rtmms.base.memory import FLAG, INTEGER, Layout, Record, model, number, part, scratch, state, step_input, whole
from rtmms.mechanism.entry import SYSTEM
from rtmms.mechanism.step import SOUND, take_step
from rtmms.robots import torpedo

WORK = Layout("W", scratch("s", "n", 4), scratch("on", "n", fill=1.0), number("start"), number("count", INTEGER))
GROUND = Layout("G", model("rows", "contacts", 3), state("lost", 2), number("both", FLAG))
WHOLE = Layout(
    "All",
    state("y", "13 + 2 * n"), state("steps", 1, dtype=INTEGER), part("ground", GROUND), part("work", WORK),
    model("spare", "n", optional=True), step_input("command", 2), whole("memory"), scratch("last", "memory"),
)  # fmt: skip


def record(*, ground: bool = True, spare: bool = False) -> Record:
    values: dict[str, Any] = {
        "work": {"start": 2.5, "count": 7}, "ground": {"rows": np.full((2, 3), 0.5), "both": True} if ground else None
    }  # fmt: skip
    return WHOLE.make({**values, "spare": np.arange(3.0) if spare else None}, {"n": 3})


@kernel
def of_the_ground(ground: Any, y: Any) -> float:
    if ground is not None:
        return float(ground.rows.sum() + ground.lost[1] + (10.0 if ground.both else 0.0))
    return float(y[0])


@kernel
def use(whole_: Any) -> float:
    """Writes scratch, state and the whole of the state, and reads numbers."""
    work = whole_.work
    for i in range(work.s.shape[0]):
        for j in range(work.s.shape[1]):
            work.s[i, j] += 10.0 * i + j
    whole_.steps[0] += 1
    whole_.memory[0] = work.start + work.count
    total = of_the_ground(whole_.ground, whole_.y)
    return total + work.s[2, 3]


@kernel
def compared(address: int) -> float:
    return use(at_address(address))


at_address = WHOLE.type("spare").at()


def test_a_kernel_reads_and_writes_by_name() -> None:
    for ground, message in ((True, 3.0 + 10.0 + 0.25), (False, 9.5)):
        item = record(ground=ground)
        if ground:
            item.ground.lost[1] = 0.25
        assert use(item) == message + 23.0
        assert item.work.s[1].tolist() == [10.0, 11.0, 12.0, 13.0]
        assert (item.y[0], item.steps[0], item.memory[0]) == (9.5, 1, 9.5)


@pytest.mark.skipif(not COMPILED, reason="plain Python has no addresses")
def test_by_its_address_it_is_the_same_record() -> None:
    item = record()
    assert compared(item.address) == use(record())
    assert item.steps[0] == 1
    assert item.numba_type == WHOLE.type("spare")
    assert record(ground=False).numba_type == WHOLE.type("ground", "spare") != item.numba_type
    assert record(spare=True).numba_type == WHOLE.type()


def test_state_is_one_array_and_everything_else_is_not_in_it() -> None:
    item = record()
    views = item.state_views()
    assert {name: array.shape for name, array in views.items()} == {"y": (19,), "steps": (1,), "ground.lost": (2,)}
    assert item.memory.size == 22
    item.memory[:] = np.arange(22.0)
    assert item.y[18] == 18.0
    assert item.ground.lost.tolist() == [20.0, 21.0]
    other = np.full(22, 3.0)
    item.state_views(other)["ground.lost"][0] = -1.0
    assert other[20] == -1.0
    assert item.ground.lost[0] == 20.0


def test_a_fork_shares_the_model_alone() -> None:
    item = record()
    item.memory[:21], item.command[:] = np.arange(21.0), [4.0, 5.0]
    item.work.s[:] = np.nan
    two = item.fork()
    assert two.ground.rows is item.ground.rows
    assert (two.memory == item.memory).all()
    assert not np.isnan(two.work.s).any()
    assert two.command.tolist() == [4.0, 5.0]
    assert (two.work.start, two.work.count, two.ground.both) == (2.5, 7, True)
    two.y[:], two.command[0], two.work.cell("start")[0] = -1.0, 9.0, 0.0
    assert (item.y[1], item.command[0], item.work.start) == (1.0, 4.0, 2.5)
    room = np.zeros(22)
    assert np.shares_memory(item.fork(room).y, room)


def test_a_fork_takes_up_the_model_of_now_and_keeps_its_state() -> None:
    item = record()
    two = item.fork()
    two.y[:] = -1.0
    item.ground.adopt({"rows": item.ground.rows + 1.0})
    item.work.put(count=9)
    item.command[:] = 6.0
    assert two.ground.rows is not item.ground.rows
    assert two.adopt_from(item)
    assert two.ground.rows is item.ground.rows
    assert two.ground.record_words[two.ground._arrays["rows"]] == item.ground.rows.ctypes.data
    assert (two.work.count, two.command.tolist(), two.y[0]) == (9, [6.0, 6.0], -1.0)
    assert two.record_words.tolist()[0] != item.record_words.tolist()[0], "its own memory"


def test_scratch_is_made_anew() -> None:
    item = record()
    item.work.s[:], item.work.on[:], item.last[:], item.y[:] = np.nan, np.nan, np.nan, 2.0
    item.clear()
    assert not item.work.s.any()
    assert item.work.on.tolist() == [1.0, 1.0, 1.0]
    assert not item.last.any()
    assert (item.y == 2.0).all()


def test_complex_records_are_for_derivatives() -> None:
    item = record().as_complex(command=np.array([1j, 2.0]))
    assert {array.dtype for array in (item.work.s, item.y, item.ground.lost)} == {np.dtype(complex)}
    assert item.ground.rows.dtype == float
    assert item.command[0] == 1j


@pytest.mark.parametrize(
    ("values", "output"),
    [
        ({"ground": {}}, "G.rows: expected an array of the model"),
        ({"ground": {"rows": np.ones((2, 4))}}, r"G.rows: expected f8 \(2, 3\)"),
        ({"ground": {"rows": np.ones(3)}}, "G.rows"),
        ({"ground": {"rows": np.ones((2, 3), dtype=np.int64)}}, "G.rows"),
        ({"ground": {"rows": np.ones((3, 2)).T}}, "G.rows"),
        ({"ground": None, "other": 1.0}, "no such field: other"),
    ],
)
def test_what_does_not_fit_is_named(values: dict[str, Any], output: str) -> None:
    with pytest.raises(TypeError, match=output):
        WHOLE.make({"work": {}, **values}, {"n": 3})


def test_forks_of_a_plant_run_beside_it() -> None:
    """Three runs of one model with commands of their own: each as the plant alone would go, which stays where it is."""
    plant: TreePlant = torpedo.load()
    for _ in range(5):
        plant.step(plant.neutral)
    stored, commands = plant.snapshot(), [plant.neutral + d for d in (0.0, 0.05, -0.1)]
    forks = [plant.system.fork() for _ in commands]
    for k in range(20):
        for fork, command in zip(forks, commands, strict=True):
            fork.command.values[:] = command
            fork.hold.cell("start")[0] = (5 + k) * plant.dt
            status = plant._entries.step(fork.address) if plant._entries else take_step(fork)
            assert status == SOUND
    assert plant.snapshot() == stored
    for fork, command in zip(forks, commands, strict=True):
        plant.restore(stored)
        for _ in range(20):
            plant.step(command)
        assert fork.memory.tobytes() == plant.system.memory.tobytes()
    assert plant.system.layout is SYSTEM
