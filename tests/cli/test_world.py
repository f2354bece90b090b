"""Several robots from the command line: who drives whom, how mistakes are reported, replay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rtmms.base.errors import ModelError
from rtmms.cli.running.scenario import check_expectations, scenario
from rtmms.cli.running.several import drivers, failing, robots_of_command, shared_out
from rtmms.scenario.expectations import expectation, judge
from tests.cli.shell import finish, start
from tests.cli.shell import rtmms as shell

TWO = [{"name": "one", "robot": "manta"}, {"name": "two", "robot": "eel"}]


def test_robots_without_a_name_have_that_of_their_kind_and_a_number_where_there_are_several() -> None:
    def names(*arguments: str) -> list[str]:
        return [robot["name"] for robot in robots_of_command(arguments)]

    assert names("manta", "follower=eel", "manta", "eel") == ["manta_1", "follower", "manta_2", "eel"]
    assert names("models/my arm.urdf", "mine.py:arm", "2d.xml", "x" * 40) == ["my_arm", "arm", "d", "x" * 24]
    assert names("a/arm.urdf", "b/arm.urdf") == ["arm_1", "arm_2"]


def test_old_default_names_work_with_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    robots = robots_of_command(["manta", "two=eel", "manta"])
    assert drivers(robots, ("gait:robot=one,frequency_hz=0.6", "gait:robot=three")) == (
        "gait:robot=manta_1,frequency_hz=0.6", "gait:robot=manta_2"
    )  # fmt: skip
    assert "robot one is manta_1 now; the next version removes the old name" in capsys.readouterr().err
    built = shared_out(robots, {"one.chains": 8, "two.kp_n_m": 1.0, "manta_2.chains": 16}, {})["robots"]
    assert [item["parameters"] for item in built] == [{"chains": 8}, {"kp_n_m": 1.0}, {"chains": 16}]
    assert not any("old_name" in item for item in built)
    with pytest.raises(ModelError, match="unknown robot 'one'"):  # `one` was never the default of a named robot
        shared_out(robots_of_command(["a=manta", "b=manta"]), {"one.chains": 8}, {})


def test_robots_without_a_place_begin_side_by_side() -> None:
    import numpy as np

    import rtmms

    world = rtmms.World(robots_of_command(["quadrotor", "purcell", "other=quadrotor"]), dt=1e-3)
    alone = rtmms.load("quadrotor", dt=1e-3).observe()["position"]
    for _ in range(2):
        outputs = world.observe()
        np.testing.assert_array_equal(outputs["quadrotor.position"], alone)
        np.testing.assert_array_equal(outputs["other.position"], np.add(alone, (0.0, 4.0, 0.0)))
        world.step(np.full(len(world.actuators), 300.0))
        world.reset()
    again = rtmms.World(world.described(), dt=1e-3)  # as a log keeps them
    np.testing.assert_array_equal(again.observe()["other.position"], np.add(alone, (0.0, 4.0, 0.0)))
    placed = rtmms.World([{"name": "a", "robot": "quadrotor", "aside_m": 2.0, "position": (1.0, 0.0, 3.0)}])
    np.testing.assert_array_equal(placed.observe()["a.position"], [1.0, 0.0, 3.0])


def test_each_gets_its_own_drivers() -> None:
    assert drivers(TWO, None) == ("gait:robot=one",)  # the eel swims by itself
    assert drivers(TWO, ("gait:frequency_hz=0.6",)) == ("gait:frequency_hz=0.6,robot=one",)
    assert drivers(TWO, ("gait:robot=one",)) == ("gait:robot=one",)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("gait:robot=oen", "unknown robot 'oen'; did you mean one"),
        ("gait:robot=two", "drives manta, not eel"),
        ("hover", "the robots of this run: eel, manta"),
        ("nosuch", "unknown controller 'nosuch'"),
    ],
)
def test_a_driver_of_nobody_is_reported(word: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        drivers(TWO, (word,))


def test_what_is_reported_of_one_and_of_all() -> None:
    built = shared_out(TWO, {"one.chains": 8, "dens": 1.0}, {"sensors": "typical"})
    assert built["dens"] == 1.0
    assert built["robots"][0]["parameters"] == {"chains": 8}
    assert [item["profile"] for item in built["robots"]] == ["typical", "typical"]
    with pytest.raises(ModelError, match="unknown robot 'three'"):
        shared_out(TWO, {"three.chains": 8}, {})
    with pytest.raises(ModelError, match="--preset"):
        shared_out(TWO, {}, {"preset": "small"})


def test_only_robots_of_which_something_fails_are_built_for_it() -> None:
    robots: list[dict[str, Any]] = [dict(item) for item in TWO]
    failing(robots, ["fault.two.joint_1"])
    assert [robot.get("faults", False) for robot in robots] == [False, True]


@pytest.mark.full
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("manta", "mante"), "unknown robot 'mante'; did you mean manta"),
        (("a=manta", "a=manta"), "two robots have the name 'a'"),
        (("manta", "manta", "--set", "three.chains=4"), "unknown robot 'three'"),
    ],
)
def test_mistakes_are_reported(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    result = finish(start(tmp_path, "run", *arguments, "--mode", "lockstep", "--duration", "0.1", "--quiet"), 200)
    assert result.status == 2
    assert message in result.err
    assert "Traceback" not in result.err


@pytest.mark.full
def test_two_run_and_replay_to_the_bit(tmp_path: Path) -> None:
    arguments = ("manta", "eel", "--mode", "lockstep", "--duration", "1", "--log", "w.mcap", "--json", "--quiet")
    result = finish(start(tmp_path, "run", *arguments), 240)
    assert result.status == 0, result.err
    assert {name: item["robot"] for name, item in result.report["robots"].items()} == {"manta": "manta", "eel": "eel"}
    position = result.report["robots"]["eel"]["final"]["position"]
    assert position == result.report["final"]["eel.position"]
    again = finish(start(tmp_path, "replay", "w.mcap", "--check"), 240)
    assert again.status == 0, again.err


def test_tables_of_sensors_are_for_each_robot(tmp_path: Path) -> None:
    """Their values stood in the file and changed nothing."""
    scenario = tmp_path / "two.toml"
    robots = "".join(f'[[robot]]\nname = "{name}"\nrobot = "manta"\n' for name in ("one", "two"))
    head = f'mode = "lockstep"\nduration = 0.05\n{robots}[sensors]\nprofile = "typical"\n'
    observed = {}
    for rate in (20.0, 100.0):
        scenario.write_text(f"{head}[sensors.depth]\nrate_hz = {rate}\njitter_s = 0.0\nphase_s = 0.0\n")
        result = shell(tmp_path, "run", "two.toml", "--controller", "none", "--json", "--quiet")
        assert result.status == 0, result.err
        observed[rate] = [result.report["final"][f"{name}.depth.time"] for name in ("one", "two")]
    assert observed == {20.0: [0.0, 0.0], 100.0: [pytest.approx(0.04)] * 2}
    scenario.write_text(f"{head}[sensors.sonar]\nrate_hz = 1.0\n")
    result = shell(tmp_path, "run", "two.toml", "--controller", "none", "--json", "--quiet")
    assert result.status == 2
    assert "robot 'one': " in result.err
    assert "sonar" in result.err


def test_an_expectation_may_name_each_part_of_a_robots_report(tmp_path: Path) -> None:
    path = tmp_path / "world.toml"
    import rtmms

    names = [
        "robots.quadrotor.final.position[0]", "robots.quadrotor.robot", "robots.other.start_position_m[2]",
        "robots.other.tracking.altitude_m.rms",
    ]  # fmt: skip
    head = 'duration = 1\nrobot = "quadrotor"\n[expect]\n'
    path.write_text(head + "".join(f'"{name}" = "!= 7"\n' for name in names))
    world = rtmms.World(robots_of_command(["quadrotor", "other=quadrotor"]), dt=1e-3)
    check_expectations(scenario(str(path)), world, {"robot": "world", "steps": 0})
    path.write_text(head + '"robots.third.final.position[0]" = "!= 7"\n')
    with pytest.raises(ModelError, match=r"world.toml:4: expect: the report will have no 'robots.third.final.position"):
        check_expectations(scenario(str(path)), world, {"robot": "world", "steps": 0})


def test_a_true_or_false_of_the_report_is_compared_as_a_word() -> None:
    report = {"realtime": {"memory_locked": True}}
    held, other = judge([expectation("realtime.memory_locked", f"== {word}") for word in ("true", "false")], report)
    assert (held.holds, other.holds) == (True, False)
    assert other.sentence == "expected realtime.memory_locked == false, got true"
