"""Which robots a controller is written for: known before anything is started, and without loading it."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import rtmms
from rtmms.cli.running.plan import plan
from rtmms.wire.peer import plugins as module
from rtmms.wire.peer.plugins import check_robot, controllers, declared_robots, load_controller


def test_what_is_read_is_what_the_class_has() -> None:
    ours = {name for name, point in controllers().items() if point.module.startswith("rtmms_controllers.")}
    assert {"gait", "heading", "eel_wave", "computed_torque", "moth_hover", "template"} <= ours
    for name in ours:
        assert declared_robots(name) == tuple(load_controller(name).robots)
    assert declared_robots("gait") == ("manta",)


@pytest.mark.parametrize(
    ("name", "robot", "text"),
    [
        (
            "gait",
            "eel",
            "controller 'gait' drives manta, not eel; controllers of eel: computed_torque, cpg, eel_course, eel_wave",
        ),
        (
            "eel_wave",
            "manta",
            "controller 'eel_wave' drives eel, not manta; controllers of manta: autopilot, cpg, gait, heading",
        ),
    ],
)
def test_another_robots_controller_is_refused(name: str, robot: str, text: str) -> None:
    with pytest.raises(rtmms.ModelError) as refused:
        plan(robot, {}, (name,))
    assert str(refused.value).startswith(text)


def test_a_robot_of_ones_own_may_share_actuators(tmp_path: Path) -> None:
    """Nothing that is installed is written for it."""
    check_robot("gait", "my_manta")
    check_robot("gait", "manta.fmu")
    check_robot("gait", "manta")


def test_a_file_may_report_it_too(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "raise RuntimeError('must not run')\n"
        "class Helper: robots = ('moth',)\n"
        "class Mine:\n    robots: tuple = ('manta',)\n    def update(self, state): ...\n"
    )
    for name in (str(file), f"{file}:Mine"):
        assert declared_robots(name) == ("manta",)
        with pytest.raises(rtmms.ModelError, match=r"drives manta, not eel"):
            check_robot(name, "eel")
    assert declared_robots(f"{file}:Other") == ()
    file.write_text("class Mine:\n    robots = some()\n    def update(self, state): ...\n")
    assert declared_robots(str(file)) == ()
    file.write_text("class Mine(:\n")
    assert declared_robots(str(file)) == ()


def test_a_plug_in_that_declares_nothing_drives_anything(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """And its module is not loaded to find that out."""
    (tmp_path / "rtmms_quiet_plugin.py").write_text("class Quiet:\n    def update(self, state): ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    point = EntryPoint("quiet", "rtmms_quiet_plugin:Quiet", "rtmms.controllers")
    lost = EntryPoint("lost", "rtmms_no_such_module.at_all:Lost", "rtmms.controllers")
    monkeypatch.setattr(module, "controllers", lambda: {**controllers(), "quiet": point, "lost": lost})
    for name in ("quiet", "lost"):
        assert declared_robots(name) == ()
        check_robot(name, "eel")
    assert "rtmms_quiet_plugin" not in sys.modules
