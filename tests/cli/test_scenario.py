"""A run from a scenario file: its options, controllers, events and expectations, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.cli.shell import rtmms

CUSTOM = """
import rtmms

class Push(rtmms.Controller):
    claim = ("torque",)
    tunable_parameters = ("torque",)

    def __init__(self, torque: float = 0.1) -> None:
        self.torque = torque

    def update(self, state):
        return {"torque": self.torque}
"""
SCENARIO = """
robot = "pendulum"
mode = "{mode}"
duration = 0.5
quiet = true
as-json = true
exchange = "tcp://127.0.0.1:*"
step = "tcp://127.0.0.1:*"
telemetry = "tcp://127.0.0.1:*"
log = "{log}"

[parameters]
damping = 0.3

[[controller]]
file = "push.py"
torque = 0.2

[[event]]
at_s = 0.25
set = {{ "push.torque" = -1.0 }}

[expect]
"exchange.misses" = "== 0"
"final.angle" = "{angle}"
"""


def write(tmp_path: Path, text: str) -> str:
    (tmp_path / "push.py").write_text(CUSTOM)
    (tmp_path / "run.toml").write_text(text)
    return str(tmp_path / "run.toml")


def by_hand(changes_at: int = 25) -> float:
    angle = rate = 0.0
    for k in range(50):
        rate += 1e-2 * ((0.2 if k < changes_at else -1.0) + 0.5 - 0.3 * rate - 9.81 * math.sin(angle))
        angle += 1e-2 * rate
    return angle


@pytest.mark.full
@pytest.mark.parametrize("mode", ["lockstep"])
def test_an_event_acts_before_the_step_of_its_time(tmp_path: Path, mode: str) -> None:
    """Step 25 is the first that the controller answers with its new torque; the log replays."""
    file = write(tmp_path, SCENARIO.format(mode=mode, angle="<= 1", log=f"{tmp_path}/a.mcap"))
    result = rtmms(tmp_path, "run", file)
    assert result.status == 0, result.err
    report = result.report
    assert (report["steps"], report["mode"]) == (50, mode)
    assert report["final"]["angle"] == pytest.approx(by_hand(), rel=1e-12)
    assert [item["holds"] for item in report["expect"]] == [True, True]
    assert rtmms(tmp_path, "replay", f"{tmp_path}/a.mcap", "--check").status == 0


def test_the_command_line_wins(tmp_path: Path) -> None:
    file = write(tmp_path, SCENARIO.format(mode="realtime", angle="<= 1", log=f"{tmp_path}/a.mcap"))
    arguments = ("--mode", "lockstep", "--controller", "none", "--duration", "0.1", "--set", "damping=0.0")
    result = rtmms(tmp_path, "run", file, *arguments)
    assert result.status == 2
    assert "event at 0.25 s: expected a time before the end of the run, 0.1 s" in result.err


@pytest.mark.full
def test_what_does_not_hold_ends_with_1(tmp_path: Path) -> None:
    file = write(tmp_path, SCENARIO.format(mode="lockstep", angle="> 3", log=f"{tmp_path}/a.mcap"))
    result = rtmms(tmp_path, "run", file)
    assert result.status == 1
    assert "rtmms: expected final.angle > 3.0, got 0.0" in result.err
    assert [item["holds"] for item in result.report["expect"]] == [True, False]


@pytest.mark.full
@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("duration = 0.5", 'duration = "long"', 4, "duration: expected a number, got 'long'"),
        ("duration = 0.5", "duration = -1", 4, "expected a number > 0"),
        ("quiet = true", "quiet = 1", 5, "quiet: expected true or false, got 1"),
        ('mode = "lockstep"', 'mode = "lokstep"', 3, "unknown mode 'lokstep'; did you mean lockstep"),
        ("damping = 0.3", "damping = -0.3", 13, "damping must be >= 0"),
        ("damping = 0.3", "dampign = 0.3", 13, "unknown parameter of pendulum 'dampign'; did you mean damping"),
        ('"push.torque"', '"puch.torque"', 19, "unknown controller 'puch'; did you mean push"),
        ("at_s = 0.25", "at_s = 0.5", 19, "expected a time before the end of the run, 0.5 s"),
    ],
)
def test_wrong_words_end_with_2_file_and_line(tmp_path: Path, old: str, new: str, line: int, message: str) -> None:
    text = SCENARIO.format(mode="lockstep", angle="<= 1", log=f"{tmp_path}/a.mcap")
    assert old in text
    file = write(tmp_path, text.replace(old, new))
    result = rtmms(tmp_path, "run", file)
    assert (result.status, result.out) == (2, "")
    assert f"{file}:{line}: " in result.err
    assert message in result.err
    assert "Traceback" not in result.err
    assert not (tmp_path / "a.mcap").exists()


@pytest.mark.full
@pytest.mark.parametrize(
    ("event", "message", "steps"),
    [
        ("push.torqe", "unknown parameter of push 'torqe'; did you mean torque", 0),  # its controller is connected
        ("gain", "this plant has no parameters that can be changed while it runs", 25),
    ],
)
def test_an_event_that_cannot_be_ends_the_run_with_its_line(
    tmp_path: Path, event: str, message: str, steps: int
) -> None:
    text = SCENARIO.format(mode="lockstep", angle="<= 1", log=f"{tmp_path}/a.mcap").replace("push.torque", event)
    result = rtmms(tmp_path, "run", write(tmp_path, text))
    assert result.status == 1
    assert f"run.toml:19: event at 0.25 s: set: {message}" in result.err
    assert (result.report["ended"], result.report["steps"]) == ("failed", steps)


@pytest.mark.full
def test_a_value_that_a_controller_refuses_ends_the_run(tmp_path: Path) -> None:
    text = SCENARIO.format(mode="lockstep", angle="<= 1", log=f"{tmp_path}/a.mcap").replace("-1.0", '"much"')
    result = rtmms(tmp_path, "run", write(tmp_path, text))
    assert (result.status, result.report["ended"]) == (1, "failed")
    assert "push: " in result.err


@pytest.mark.full
def test_an_example_runs_in_realtime_too(tmp_path: Path) -> None:
    text = SCENARIO.format(mode="realtime", angle="< 1", log=f"{tmp_path}/a.mcap")
    result = rtmms(tmp_path, "run", write(tmp_path, text.replace('"exchange.misses" = "== 0"', "")))
    assert result.status == 0
    angle = result.report["final"]["angle"]
    assert abs(angle - by_hand()) < 0.5 * abs(angle - by_hand(changes_at=50))  # a command or some may have been late


SENSED = """
robot = "tests.sensing"
mode = "lockstep"
duration = 0.5
seed = 3
quiet = true
as-json = true
exchange = "tcp://127.0.0.1:*"
step = "tcp://127.0.0.1:*"
telemetry = "tcp://127.0.0.1:*"
log = "{log}"

[[controller]]
name = "{controller}"

[sensors]
profile = "typical"
[sensors.imu]
rate_hz = 100.0
[sensors.gps]
off = true
[sensors.mag]
field_t = [0.0, 2e-5, -4e-5]
"""


@pytest.mark.full
def test_gravity_that_changes_in_a_run_is_felt_and_replays(tmp_path: Path) -> None:
    """A manta is as heavy as its water, so that it stays; its accelerometer feels the new gravity."""
    event = "[[event]]\nat_s = 0.1\nset = {{ gravity_m_s2 = 3.0 }}\n"
    text = SENSED.replace("tests.sensing", "manta").replace('[[controller]]\nname = "{controller}"\n', event)
    result = rtmms(tmp_path, "run", write(tmp_path, "estimate = true\n" + text.format(log=tmp_path / "a.mcap")))
    assert result.status == 0, result.err
    assert result.report["final"]["imu.accel"] == pytest.approx([0.0, 0.0, 3.0], abs=0.2)
    assert rtmms(tmp_path, "replay", f"{tmp_path}/a.mcap", "--check").status == 0


@pytest.mark.full
def test_a_run_seen_through_sensors_replays_and_starts_again_with_the_same_bits(tmp_path: Path) -> None:
    """A controller whose outputs are hidden by the sensors is refused; one that asks for none drives. The estimate is
    among the outputs, and changes none of the others."""
    text = SENSED.replace("tests.sensing", "mover")
    blind = rtmms(tmp_path, "run", write(tmp_path, text.format(log=tmp_path / "a.mcap", controller="sees")))
    assert blind.status == 2
    assert "unknown output 'velocity'; did you mean" in blind.err
    finals = []
    for name in ("a", "b"):
        wanted = "estimate = true\n" if name == "b" else ""
        scenario = wanted + text.format(log=tmp_path / f"{name}.mcap", controller="deaf")
        result = rtmms(tmp_path, "run", write(tmp_path, scenario))
        assert result.status == 0, result.err
        finals.append(result.report["final"])
        assert rtmms(tmp_path, "replay", f"{tmp_path}/{name}.mcap", "--check").status == 0
    estimate = {name: finals[1].pop(name) for name in list(finals[1]) if name.startswith("estimate.")}
    assert set(estimate) == {"estimate.position", "estimate.quaternion", "estimate.velocity"}
    assert estimate["estimate.position"] == pytest.approx(finals[0]["truth.position"], abs=0.1)
    assert finals[0] == finals[1]
    assert finals[0]["imu.time"] == pytest.approx(0.49)
    assert finals[0]["truth.velocity"] == [0.0, 0.0, 0.0]
    assert "gps.position" not in finals[0]


@pytest.mark.parametrize(
    ("word", "message"),
    [("typcial", "unknown sensors 'typcial'; did you mean typical"), ("none.toml", "none.toml: there is no such file")],
)
def test_sensors_that_there_are_not(tmp_path: Path, word: str, message: str) -> None:
    result = rtmms(tmp_path, "run", "mover", "--sensors", word, "--quiet")
    assert (result.status, result.out) == (2, "")
    assert message in result.err


FAULTY = """
robot = "mover"
mode = "lockstep"
duration = 0.5
quiet = true
as-json = true
exchange = "tcp://127.0.0.1:*"
step = "tcp://127.0.0.1:*"
telemetry = "tcp://127.0.0.1:*"
log = "{log}"

[[controller]]
name = "deaf"

[[event]]
at_s = 0.1
until_s = 0.3
fault = "stuck"
target = "rod"

[[event]]
at_s = 0.2
fault = "silent"
target = "depth"

[sensors.encoder]
rate_hz = 1000.0
[sensors.depth]
rate_hz = 1000.0

[expect]
"final.depth.time" = "< 0.21"
"""


@pytest.mark.full
def test_faults_begin_and_end_and_replay(tmp_path: Path) -> None:
    result = rtmms(tmp_path, "run", write(tmp_path, FAULTY.format(log=tmp_path / "a.mcap")))
    assert result.status == 0, result.err
    assert result.report["final"]["depth.time"] == pytest.approx(0.2, abs=2e-3)
    assert rtmms(tmp_path, "replay", f"{tmp_path}/a.mcap", "--check").status == 0
    rows = rtmms(tmp_path, "log", "csv", f"{tmp_path}/a.mcap", "-o", str(tmp_path / "a.csv"))
    assert rows.status == 0
    wrong = FAULTY.replace('"stuck"', '"stuk"').format(log=tmp_path / "b.mcap")
    result = rtmms(tmp_path, "run", write(tmp_path, wrong))
    assert result.status == 2
    assert "run.toml:15: event at 0.1 s: unknown fault of rod 'stuk'; did you mean stuck" in result.err
