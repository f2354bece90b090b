"""A peer of one of several robots: names as the robot has them alone, and no other robot in reach."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.wire.plant.server import Server
from tests.wire.bench import Host, Raw, Toy
from tests.wire.looping import Looping


class Pair(Host):
    """Two toys on one clock."""

    def __init__(self, two: dict[str, Any] | None = None, **options: Any) -> None:
        self.plant = rtmms.World([("one", Toy()), ("two", Toy(), two or {})])  # type: ignore[assignment]
        anywhere = dict.fromkeys(("exchange", "step", "telemetry"), "tcp://127.0.0.1:*")
        options = {"robot": "world", "token": None, "deadline_s": 5e-4} | anywhere | options
        self.server = Server(self.plant, **options)
        self.exchange = self.server.endpoints["exchange"]
        self.command = np.zeros(8)
        self.step, self.raws = 0, []


@pytest.fixture
def pair() -> Iterator[Pair]:
    host = Pair()
    yield host
    host.server.close()


def test_names_are_the_robots_own(pair: Pair) -> None:
    with Looping(pair) as running:
        with rtmms.connect(pair.exchange, name="mine", claim=["left.*"], robot="two") as link:
            assert link.plant.robot == "Toy"
            assert link.plant.robot_name == "two"
            assert link.plant.actuators[0].name == "left.front"
            assert link.plant.granted == ("left.front", "left.back")
            for state in link:
                assert set(state.outputs) == {"position", "quaternion", "speed", "thrust"}
                link.command({"left.front": 0.25, "left.back": -0.5})
                if state["position"][0] == 0.25:
                    break
        running.wait(lambda: pair.command.tolist()[4:6] == [0.25, -0.5])
        assert pair.command.tolist()[:4] == [0.0] * 4
        assert pair.rejected == {}


def test_what_a_robot_sees_of_another_is_among_its_outputs() -> None:
    host = Pair(two={"sees": ["one"]})
    try:
        with Looping(host), rtmms.connect(host.exchange, name="mine", robot="two", outputs=["one.*", "speed"]) as link:
            observed = {f"one.{name}" for name in ("range", "bearing", "position", "valid", "time")}
            assert {output.name for output in link.plant.outputs if output.name.startswith("one.")} == observed
            state = next(iter(link))
            assert state["one.valid"] == 1.0
            assert set(state.outputs) == observed | {"speed"}
    finally:
        host.server.close()


def test_one_that_asks_for_none_gets_all(pair: Pair) -> None:
    with Looping(pair), rtmms.connect(pair.exchange, name="all", claim=["*.front"]) as link:
        assert {name: robot.robot for name, robot in link.plant.robots.items()} == {"one": "Toy", "two": "Toy"}
        assert link.plant.robots["two"].actuators[0].name == "left.front"
        assert link.plant.granted == tuple(
            f"{item}.{side}.front" for item in ("one", "two") for side in ("left", "right")
        )
        state = next(iter(link))
        assert "two.speed" in state.outputs


def test_two_peers_of_two_robots_do_not_meet(pair: Pair) -> None:
    with (
        Looping(pair),
        rtmms.connect(pair.exchange, name="a", claim=["*"], robot="one") as first,
        rtmms.connect(pair.exchange, name="b", claim=["*"], robot="two") as second,
    ):
        assert len(first.plant.granted) == len(second.plant.granted) == 4


def test_an_observer_of_one_robot(pair: Pair) -> None:
    with Looping(pair), rtmms.connect(pair.exchange, name="eye", robot="one", outputs=["sp*"]) as link:
        state = next(iter(link))
        assert set(state.outputs) == {"speed"}


def test_an_unknown_robot_is_refused(pair: Pair, make_host: Callable[..., Host]) -> None:
    with Looping(pair), pytest.raises(rtmms.NotConnectedError, match="unknown robot 'twp'; did you mean two"):
        rtmms.connect(pair.exchange, name="mine", claim=["*"], robot="twp")
    alone = make_host(token=None)
    with Looping(alone), pytest.raises(rtmms.NotConnectedError, match="this plant is one robot"):
        rtmms.connect(alone.exchange, name="mine", claim=["*"], robot="one")


def test_a_command_out_of_reach_is_refused(pair: Pair, make_raw: Callable[[Host], Raw]) -> None:
    pair.server.close()
    host = Pair(token="secret")
    raw = make_raw(host).join(["left.*"], robot="two")
    host.publish()
    raw.read_message()
    raw.command({"one.left.front": 0.5}, 0)
    host.arrived()
    host.collect(0.0)
    assert host.rejected == {"unknown_actuator": 1}
    raw.command({"right.front": 0.5}, 0)
    host.arrived()
    host.collect(0.0)
    assert host.rejected == {"unknown_actuator": 1, "not_claimed": 1}
    host.server.close()


def test_parameters_and_set_points_are_reported_by_robot(pair: Pair) -> None:
    answers: list[Any] = []
    with (
        Looping(pair) as running,
        rtmms.connect(
            pair.exchange,
            name="two.gait",
            claim=["*"],
            robot="two",
            tunable_parameters={"depth_m": 1.0},
            setpoints={"depth_m": 1.0},
        ) as link,
        rtmms.connect(pair.exchange, name="eye") as eye,
    ):
        asking = Thread(target=lambda: answers.append(eye.request("set", {"two.gait.depth_m": 2.0})))
        next(iter(link))  # it is let in
        running.wait(lambda: pair.server.set_points() == {"two.depth_m": 1.0})
        asking.start()
        for state in link:
            link.command({}, state.step)
            if not asking.is_alive():
                break
        asking.join(10.0)
        assert link.tunable_parameters["depth_m"] == 2.0
        assert answers == [{"values": {"depth_m": 2.0}}]
