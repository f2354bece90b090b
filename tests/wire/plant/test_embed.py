"""A plant within a program: peers over inproc, its end, its faults."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import rtmms
from tests.pendulum import Pendulum
from tests.wire.bench import PATIENCE_S, Toy


def test_a_lockstep_run_within_a_program() -> None:
    with rtmms.embed(Toy(), robot="toy", steps=50) as plant, rtmms.connect(plant.exchange, claim="*") as link:
        observed = []
        for state in link:
            observed.append(state.step)
            link.command({"left.front": 0.01 * state.step})
        outcome = plant.wait(PATIENCE_S)
    assert observed == list(range(50))  # every step, none passed over
    assert (outcome.ended, outcome.steps) == ("duration", 50)
    assert outcome.final["position"][0] == pytest.approx(0.49)
    assert link.ended == "the plant sent bye: the run ended: duration"
    assert link.plant.robot == "toy"


def test_it_gives_the_bits_that_stepping_it_gives() -> None:
    with rtmms.embed(Pendulum(), seed=3, steps=200) as served:
        with rtmms.connect(served.exchange, claim="*") as link:
            for state in link:
                link.command({"torque": 0.5 - 0.001 * state.step, "offset": 0.1})
        outcome = served.wait(PATIENCE_S)
    plant = Pendulum()
    plant.reset(3)
    for k in range(200):
        plant.step(np.array([0.5 - 0.001 * k, 0.1]))
    assert outcome.final["angle"] == plant.observe()["angle"]


def test_two_controllers_and_an_observer_share_it() -> None:
    def drive(exchange: str, rods: str, value: float) -> None:
        with rtmms.connect(exchange, name=rods, claim=f"{rods}.*") as link:
            for _ in link:
                link.command({f"{rods}.front": value})

    with rtmms.embed(Toy(), mode="free") as plant:
        threads = [
            threading.Thread(target=drive, args=(plant.exchange, rods, v))
            for rods, v in (("left", 0.1), ("right", 0.2))
        ]
        for thread in threads:
            thread.start()
        with rtmms.connect(plant.exchange, outputs=["position"]) as link:
            both = next(state for state in link if state["position"][0] == 0.1 and state["position"][2] == 0.2)
            assert both.step > 0
        plant.end()
        for thread in threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()


def test_leaving_the_block_ends_the_run() -> None:
    with rtmms.embed(Toy()) as plant:
        link = rtmms.connect(plant.exchange, claim="*")
        link.command({}, next(link).step)
    assert plant.outcome is not None
    assert plant.outcome.ended == "stop"
    assert len(list(link)) <= 1  # the state of the step that was under way
    assert "bye" in link.ended
    link.close()


def test_one_that_nobody_drives_is_left_in_peace() -> None:
    with rtmms.embed(Toy()) as plant:
        pass
    assert plant.wait(PATIENCE_S).steps == 0


def test_a_fault_of_the_plant_is_raised_where_it_is_waited_for() -> None:
    plant = Pendulum()
    plant.fault_at = 0.5

    def drive() -> None:
        with rtmms.embed(plant, steps=100) as served, rtmms.connect(served.exchange, claim="*") as link:
            for _ in link:
                link.command({})
            assert "bye" in link.ended

    with pytest.raises(ZeroDivisionError, match="a bug in the plant"):
        drive()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"mode": "realtime"}, "lockstep or free"), ({"steps": 0}, "at least 1"), ({"seed": -1}, "at least 0")],
)
def test_wrong_words(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(rtmms.ModelError, match=message):
        rtmms.embed(Toy(), **arguments)  # type: ignore[arg-type]


def test_a_plant_that_is_not_what_it_states_is_refused_at_the_entry() -> None:
    class Wrong(Toy):
        def observe(self) -> dict[str, object]:
            return super().observe() | {"position": [0.0, 0.0]}

    with pytest.raises(rtmms.ModelError, match="declared"), rtmms.embed(Wrong()):  # type: ignore[arg-type]
        pass


def test_nobody_there_is_reported() -> None:
    with pytest.raises(ConnectionError, match="no plant answered"):
        rtmms.connect("inproc://nobody", timeout_s=0.1)


@pytest.mark.full
def test_it_runs_again_and_again() -> None:
    before = set(threading.enumerate())  # those of earlier tests may end meanwhile
    for _ in range(20):
        with rtmms.embed(Toy(), steps=3) as plant, rtmms.connect(plant.exchange, claim="*") as link:
            for _ in link:
                link.command({})
    assert set(threading.enumerate()) <= before
