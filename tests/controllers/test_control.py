"""`rtmms control` as a user meets it: right words, wrong words, a controller of their own that fails."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.wire.bench import PATIENCE_S, Host
from tests.wire.looping import Looping

MINE = """
import rtmms
class Mine(rtmms.Controller):
    def __init__(self, after: int = 3, how: str = "raise"):
        self.after, self.how, self.seen = after, how, 0
    def update(self, state):
        self.seen += 1
        if self.seen > self.after:
            if self.how == "raise":
                raise RuntimeError("the user's own fault")
            return {"left.front": float("nan")} if self.how == "nan" else {"left.front": 0.5}
        return {}
NotOne = 3
"""


@pytest.fixture
def user_folder(tmp_path: Path) -> Path:
    """A user's installed package with controllers of its own, as pip would have put it on the path."""
    site = tmp_path / "site"
    (site / "mine-1.0.dist-info").mkdir(parents=True)
    (site / "mine.py").write_text(MINE)
    (site / "mine-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (site / "mine-1.0.dist-info" / "entry_points.txt").write_text(
        "[rtmms.controllers]\nmine = mine:Mine\nbroken = mine:Nowhere\nnotone = mine:NotOne\n"
    )
    return site


Control = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def control(user_folder: Path) -> Control:
    def start(*text: str, cwd: Path | None = None, **environment: str) -> subprocess.Popen[str]:
        root = str(Path(__file__).parents[2])
        paths = os.pathsep.join([str(user_folder), *([] if cwd else [root])])
        program = "from rtmms.cli.control import control; control(prog_name='rtmms control')"
        return subprocess.Popen(
            [sys.executable, "-c", program, *text],
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=cwd,
            env=os.environ | {"PYTHONPATH": paths} | environment,
        )

    return start


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    out, err = process.communicate(timeout=6 * PATIENCE_S)
    assert out == ""
    return process.returncode, err


@pytest.mark.full
@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("gate", "unknown controller 'gate'; did you mean gait"),
        ("gait:amplitude=30", "unknown parameter of controller 'gait' 'amplitude'; did you mean amplitude_deg"),
        ("gait:amplitude_deg=big", "controller 'gait': amplitude_deg: expected a number, got 'big'"),
        ("gait:amplitude_deg=nan", "expected a number, got 'nan'"),
        ("gait:amplitude_deg=120", "controller 'gait': amplitude_deg: expected a number from 0 to 90, got 120.0"),
        ("gait:left_bias_deg=-91", "left_bias_deg: expected a number from -90 to 90"),
        ("gait:ramp_s", "expected NAME:key=value"),
        ("gait:ramp_s=1,ramp_s=2", "'ramp_s' is given twice"),
        ("heading:ramp_s=-1", "controller 'heading': ramp_s: expected a number >= 0, got -1.0"),
        ("mine:after=2.5", "after: expected a whole number, got '2.5'"),
        ("broken", "controller 'broken': cannot load mine:Nowhere"),
        ("notone", "to be a class with update(state), got int"),
    ],
)
def test_wrong_words_end_with_2_and_no_traceback(control: Control, spec: str, text: str) -> None:
    code, output = finish(control(spec))
    assert code == 2
    assert text in output
    assert "Traceback" not in output
    assert output.count("\n") == 1


@pytest.mark.full
def test_nobody_there_ends_with_1(control: Control) -> None:
    code, output = finish(control("gait", "--exchange", "tcp://127.0.0.1:9", "--timeout", "0.1"))
    assert (code, output.count("\n")) == (1, 1)
    assert "no plant answered at 'tcp://127.0.0.1:9'" in output


@pytest.mark.full
def test_it_drives_until_the_plant_ends(control: Control, make_host: Callable[..., Host]) -> None:
    with Looping(make_host(token=None)) as running:
        process = control("mine:how=drive", "--exchange", running.host.exchange, "--name", "second")
        running.wait(lambda: running.host.command[0] == 0.5)
        assert running.host.server.admitted() == {"second"}
        running.end("enough")
        code, output = finish(process)
    assert code == 0
    assert "enough" in output


@pytest.mark.full
def test_a_controller_that_raises_ends_with_1_and_shows_where(control: Control, make_host: Callable[..., Host]) -> None:
    with Looping(make_host(token=None)) as running:
        code, output = finish(control("mine", "--exchange", running.host.exchange))
        assert code == 1
        assert "mine.py" in output
        assert output.endswith(
            "rtmms control: controller 'mine' failed: mine.py, line 10: RuntimeError: the user's own fault\n"
        )
        running.wait(lambda: running.host.server.dead())
        assert running.host.server.claimed.any()  # it died and sent no bye: the miss policy acts


@pytest.mark.full
def test_what_the_plant_refuses_is_reported(control: Control, make_host: Callable[..., Host]) -> None:
    with Looping(make_host(token=None)) as running:
        process = control("mine:how=nan", "--exchange", running.host.exchange)
        running.wait(lambda: running.host.rejected.get("not_finite", 0) > 60)
        running.end()
        code, output = finish(process)
    assert code == 0
    assert "the plant refused a message of this controller: command: left.front: expected a finite number" in output
    assert output.count("refused") < 30


@pytest.mark.full
def test_a_child_of_run_ignores_the_interrupt(control: Control, make_host: Callable[..., Host]) -> None:
    with Looping(make_host(token=None)) as running:
        process = control("mine:how=drive", "--exchange", running.host.exchange, RTMMS_CHILD="1")
        running.wait(lambda: running.host.command[0] == 0.5)
        process.send_signal(2)
        step = running.host.step
        running.wait(lambda: running.host.step > step + 100)
        assert running.host.server.claimed.all()
        running.end()
        assert finish(process) == (0, "")


@pytest.mark.full
def test_an_interrupt_ends_it_with_0(control: Control, make_host: Callable[..., Host]) -> None:
    with Looping(make_host(token=None)) as running:
        process = control("mine:how=drive", "--exchange", running.host.exchange)
        running.wait(lambda: running.host.command[0] == 0.5)
        process.send_signal(2)
        code, output = finish(process)
    assert code == 0
    assert "interrupted" in output


@pytest.mark.full
def test_a_folder_of_the_same_name_is_reported(
    control: Control, make_host: Callable[..., Host], tmp_path: Path
) -> None:
    folder = tmp_path / "project" / "mine"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    with Looping(make_host(token=None)) as running:
        exchange = ("--exchange", running.host.exchange)
        code, output = finish(control("mine", *exchange, cwd=folder.parent))
        assert code == 2
        assert f"loaded from {folder / '__init__.py'}" in output
        (folder / "__init__.py").write_text(MINE)
        code, output = finish(control("mine", *exchange, cwd=folder.parent))
        assert f"loaded from {folder / '__init__.py'}, which is not part of mine" in output


@pytest.mark.full
def test_a_folder_called_as_ours_does_not_matter(tmp_path: Path) -> None:
    for name in ("rtmms_controllers", "rtmms_bridges", "controllers"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise RuntimeError('taken from the working directory')")
    code = "import rtmms_controllers.gait as gait, rtmms_bridges.udp; print(gait.__file__)"
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert result.stdout.strip().endswith("gait.py")
