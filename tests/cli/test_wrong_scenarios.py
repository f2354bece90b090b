"""Scenario files with something wrong: each is reported before it runs, with file, line, what was got and expected."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from rtmms.base.errors import ModelError
from rtmms.cli.running.scenario import check_expectations, check_peers, check_times, scenario
from rtmms.robots.manta.parameters import MantaParameters
from rtmms.scenario.plant import agenda
from rtmms.sensing import Sensed, read_profile
from tests.cli.shell import rtmms as shell
from tests.sensing.mover import Mover

HEAD = 'robot = "manta"\nmode = "lockstep"\nduration = 3.0\n'
PILOT = HEAD + '[[controller]]\nname = "autopilot"\n'
EVENT = PILOT + "[[event]]\nat_s = 1.0\n"
SENSORS = HEAD + '[sensors]\nprofile = "typical"\n'


class Swimmer(Mover):
    """Has a manta's parameters, so far as they are described."""

    parameters = MantaParameters()
    settable = ("gravity_m_s2", "left_chains_lost", "right_chains_lost")
    trace_outputs = ("position",)

    def set(self, **parameters: Any) -> None:
        raise AssertionError("nothing is set before the run")

    def summarise(self, time: Any, trace: Any) -> dict[str, float | None]:
        return {"mean_speed_m_s": None}


def held(path: Path) -> None:
    """All that is looked at before the first step."""
    result = scenario(str(path))
    check_times(result, result.options["duration"])
    check_peers(result)
    plant: Any = Swimmer()
    try:
        sensors = read_profile(result.options.get("sensors", "ideal"), plant, result.sensors)
        plant = Sensed(plant, sensors) if sensors else plant
    except ModelError as fault:
        raise ModelError(result.located(str(fault))) from None
    check_expectations(result, plant, {"robot": "mover", "steps": 0})
    agenda(result.events, plant, result.controllers or (), str(result.path))


WRONG = {
    "a key": (HEAD + "duraton = 3\n", 4, "unknown key 'duraton'; did you mean duration"),
    "a key in two spellings": (HEAD + "max_misses = 3\nmax-misses = 4\n", 5, "max-misses: expected this key once"),
    "an expectation of a vector": (
        HEAD + '[expect]\n"final.position" = "> 0"\n', 5,
        "'final.position' has several numbers; expected one of them, such as final.position[0]",
    ),
    "an event's key of the robot's own controller": (
        HEAD + '[[event]]\nat_s = 1.0\nset = { "gait.frequency" = 1.0 }\n', 4,
        "did you mean frequency_hz",
    ),
    "a mode": (HEAD.replace("lockstep", "lockstp"), 2, "unknown mode 'lockstp'; did you mean lockstep"),
    "a duration": ('robot = "manta"\nduration = nan\n', 2, "expected a number > 0 s, got 'nan'"),
    "a list for a controller": (
        EVENT + 'set = { "autopilot.depth_m" = [1.0, 2.0] }\n', 6,
        "depth_m: expected a number, got [1.0, 2.0]",
    ),
    "a list for a fault": (EVENT + 'set = { "fault.left" = [1.0] }\n', 6, "expected a single value, got a list"),
    "a list for a number": (EVENT + "set = { gravity_m_s2 = [1.0, 2.0] }\n", 6, "must be a number in m/s2"),
    "a list of texts": (EVENT + 'set = { current_m_s = ["a"] }\n', 8, "expected a single value, or a list of numbers"),
    "a seed": (HEAD + "seed = 1.5\n", 4, "seed: expected a whole number, got 1.5"),
    "a duration without an end": (HEAD.replace("3.0", "1e308"), 3, "from 1e-09 to 1e+09 s"),
    "a parameter that is no number": (HEAD + "[parameters]\nbody_mass_kg = nan\n", 5, "expected a finite number"),
    "a controller": (
        HEAD + '[[controller]]\nname = "autopilt"\n', 5,
        "unknown controller 'autopilt'; did you mean autop",
    ),
    "a file of a controller": (HEAD + '[[controller]]\nfile = "not.py"\n', 5, "there is no file"),
    "a controller's key": (PILOT + "depht_m = 1.0\n", 6, "'depht_m'; did you mean depth_m"),
    "its type": (PILOT + 'depth_m = "deep"\n', 6, "depth_m: expected a number, got 'deep'"),
    "its range": (PILOT + "turn_p = 2.0\nroll_deg = 50.0\n", 7, "roll_deg: expected a number from -10 to 10, got 50"),
    "a gain": (PILOT + "depth_p = -3.0\n", 6, "depth_p: expected a number from 0 to 110, got -3"),
    "a waypoint": (
        HEAD + '[[controller]]\nname = "path"\ncourse = "waypoints"\nwaypoints = "0 0 -1; 5 nan -1"\n', 6,
        "waypoint 2: expected three finite numbers",
    ),
    "a course": (HEAD + '[[controller]]\nname = "path"\ncourse = "helx"\n', 6, "'helx'; did you mean helix"),
    "a bridge": (HEAD + '[[bridge]]\nname = "mavlnk"\n', 5, "unknown bridge 'mavlnk'; did you mean mavlink"),
    "a bridge's key": (HEAD + '[[bridge]]\nname = "udp"\nprt = 3\n', 6, "'prt'; did you mean port"),
    "an event's controller": (EVENT + 'set = { "autopilt.depth_m" = 1.0 }\n', 6, "did you mean autopilot"),
    "an event's parameter": (EVENT + 'set = { "autopilot.depht_m" = 1.0 }\n', 6, "'depht_m'; did you mean depth_m"),
    "an event's type": (EVENT + 'set = { "autopilot.depth_m" = "deep" }\n', 6, "expected a number, got 'deep'"),
    "an event's range": (EVENT + 'set = { "autopilot.roll_deg" = 50.0 }\n', 6, "expected a number from -10 to 10"),
    "an event of the plant": (EVENT + 'set = { "gravty_m_s2" = 1.0 }\n', 6, "did you mean gravity_m_s2"),
    "its value": (EVENT + 'set = { "gravity_m_s2" = "low" }\n', 6, "must be a number in m/s2, got 'low'"),
    "an event that comes too late": (
        PILOT + "[[event]]\nat_s = 5.0\nset = { gravity_m_s2 = 9.0 }\n", 6,
        "before the end",
    ),
    "a fault that ends before it begins": (
        EVENT + 'until_s = 0.5\nfault = "stuck"\ntarget = "rod"\n', 8, "a time after at_s, 1 s, got 0.5",
    ),
    "a fault": (EVENT + 'fault = "stuk"\ntarget = "rod"\n', 6, "did you mean stuck"),
    "a fault's target": (
        EVENT + 'fault = "stuck"\ntarget = "rodd"\n', 6,
        "unknown target of a fault 'rodd'; did you mean rod",
    ),
    "a fault without its number": (EVENT + 'fault = "slow"\ntarget = "rod"\n', 6, "expected slow=NUMBER"),
    "a delay": (EVENT + 'fault = "delay"\ntarget = "rod"\nvalue = 3.0\n', 6, "delay: expected < 0.512 s, got 3"),
    "more chains than there are": (
        EVENT + 'fault = "lost_chains"\ntarget = "left"\nvalue = 31\n', 6,
        "30 chains, got 31",
    ),
    "a sensor": (SENSORS + "[sensors.imuu]\nrate_hz = 100.0\n", 6, "unknown sensor 'imuu'; did you mean imu"),
    "a sensor's key": (SENSORS + "[sensors.imu]\nrate_hzz = 100.0\n", 7, "'rate_hzz'; did you mean rate_hz"),
    "a rate beyond the step's": (
        SENSORS + "[sensors.imu]\nrate_hz = 5000.0\n", 7,
        "at most one sample a step, 1000 Hz, got 5000",
    ),
    "a profile": (HEAD + '[sensors]\nprofile = "typicl"\n', 5, "'typicl'; did you mean typical"),
    "an expectation": (
        HEAD + '[expect]\nmean_sped_m_s = ">= 0.3"\n', 5,
        "no 'mean_sped_m_s'; did you mean mean_speed_m_s",
    ),
    "a count that is expected": (HEAD + '[expect]\n"exchange.mises" = "== 0"\n', 5, "did you mean exchange.misses"),
    "a quantity that is tracked": (
        HEAD + '[expect]\n"tracking.dept_m.rms" = "<= 1"\n', 5,
        "did you mean tracking.depth_m",
    ),
    "an index": (HEAD + '[expect]\n"final.position[7]" = "> 0.5"\n', 5, "no 'final.position[7]'"),
    "a comparison": (HEAD + '[expect]\nmean_speed_m_s = "about 3"\n', 5, "with one of <=, >="),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_it_is_refused_with_its_line(tmp_path: Path, case: tuple[str, int, str]) -> None:
    text, line, message = case
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    with pytest.raises(ModelError) as fault:
        held(path)
    assert str(fault.value).startswith(f"{path}:{line}: ")
    assert message in str(fault.value)


def test_what_is_right_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "right.toml"
    path.write_text(
        EVENT + 'set = { "autopilot.depth_m" = 2.0, gravity_m_s2 = 9.7 }\n[[event]]\nat_s = 1.0\nfault = "stuck"\n'
        'target = "rod"\n[expect]\n"tracking.depth_m.rms" = "<= 1"\nmean_speed_m_s = ">= 0"\n'
        '"final.position[2]" = "< 1"\n"exchange.misses" = "== 0"\n"timing_us.plant.p99" = "< 900"\n'
        'ended = "== duration"\n"accuracy.verdict" = "== good"\n'
    )
    result = scenario(str(path))
    check_peers(result)
    check_expectations(result, Swimmer(), {"robot": "mover"})


MANY = {
    "sensors": "[sensors]\n" + "".join(f"imu.a{i} = {{}}\n" for i in range(300)),
    "parameters": "[parameters]\n" + "".join(f"a{i} = 1.0\n" for i in range(1001)),
    "controller": '[[controller]]\nname = "gait"\n' * 65,
    "expect": "[expect]\n" + "".join(f'a{i} = "<= 1"\n' for i in range(1001)),
    "keys and values": f"[sweep.over]\nseed = {list(range(50_001))}\n",
}


@pytest.mark.parametrize("what", MANY)
def test_a_scenario_has_a_size(tmp_path: Path, what: str) -> None:
    """200,000 sensors took minutes and gigabytes."""
    (tmp_path / "many.toml").write_text(f'robot = "purcell"\n{MANY[what]}')
    result = shell(tmp_path, "run", "many.toml", "--quiet")
    assert result.status == 2
    assert re.search(rf"many\.toml.*{what}.*", result.err)
    assert "expected at most" in result.err


def test_a_file_of_numba_in_the_working_directory_is_refused(tmp_path: Path) -> None:
    """Numba obeys it: the bits of a run, and the rows of a table that was begun without it, were others."""
    (tmp_path / ".numba_config.yaml").write_text("disable_jit: 1\n")
    result = shell(tmp_path, "list")
    assert result.status == 2
    assert result.err.startswith("rtmms: .numba_config.yaml: expected no such file in the working directory")
