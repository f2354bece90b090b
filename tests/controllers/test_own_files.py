"""Controllers in a file that the user names: found, built, run, and refused with a reason."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import rtmms
from rtmms.base.trust import is_file, plugin_name, split_word
from rtmms.wire.peer.plugins import build, check_controller, split_spec
from rtmms.wire.peer.running import run_controller
from tests.cli.shell import rtmms as shell
from tests.wire.bench import Host
from tests.wire.looping import Looping

MINE = """
import rtmms
from next_to_mine import VALUE

class Mine(rtmms.Controller):
    every = 4
    claim = ("left.*",)

    def __init__(self, amplitude: float = VALUE):
        self.amplitude = amplitude

    def update(self, state):
        return {"left.front": self.amplitude}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "next_to_mine.py").write_text("VALUE = 0.25\n")
    (tmp_path / "several.py").write_text(MINE + "\nclass Other(Mine):\n    pass\n")
    (tmp_path / "none.py").write_text("import rtmms\nfrom rtmms import Controller\nVALUE = 3\n")
    (tmp_path / "misnamed.py").write_text(MINE.replace("update", "control") + "\nclass Other(Mine):\n    pass\n")
    (tmp_path / "imports.py").write_text("from next_to_mine import VALUE\n")
    (tmp_path / "wrong.py").write_text("import rtmms\ndef f(:\n")
    (tmp_path / "deeper.py").write_text("def f():\n    return 1 / 0\n\nX = f()\n")
    return tmp_path


@pytest.mark.parametrize(
    ("word", "name", "remainder"),
    [("gait", "gait", ""), ("gait:a=1,b=2", "gait", "a=1,b=2"), ("mine.py", "mine.py", ""),
     ("mine.py:Mine", "mine.py:Mine", ""), ("mine.py:a=1", "mine.py", "a=1"),
     ("../x/mine.py:Mine:a=b:c", "../x/mine.py:Mine", "a=b:c"),
     ("c:/mine.py:Mine", "c:/mine.py:Mine", "")],
)  # fmt: skip
def test_words_are_split(word: str, name: str, remainder: str) -> None:
    assert split_word(word) == (name, remainder)


def test_what_it_is_called() -> None:
    assert plugin_name("../deep/mine.py:Mine") == "mine"
    assert plugin_name("gait") == "gait"
    assert split_spec("mine.py:Mine:amplitude=0.5") == ("mine.py:Mine", {"amplitude": "0.5"})


@pytest.mark.parametrize("word", ["mine.py", "mine.py:Mine", "./mine.py:Mine", "several.py:Mine"])
def test_it_is_built_with_its_words_and_its_turns(folder: Path, word: str) -> None:
    controller = build(f"{word}:amplitude=0.5,every=10,delay=3,interpolation=linear")
    assert type(controller).__name__ == "Mine"
    assert controller.amplitude == 0.5  # type: ignore[attr-defined]
    assert (controller.every, controller.delay, controller.interpolation) == (10, 3, "linear")
    assert (type(controller).every, type(controller).delay) == (4, None)


def test_a_module_beside_it_is_found(folder: Path) -> None:
    assert build("mine.py").amplitude == 0.25  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("word", "message"),
    [("absent.py", "there is no file 'absent.py'"), ("several.py", "has Mine, Other; name one"),
     ("none.py", "has no class, so it was not run; write a class with update.*rtmms.connect"),
     ("imports.py", "which has none that fits"), ("mine.py:Min", "did you mean Mine"),
     ("misnamed.py", r"which has Mine, Other, but none that fits"),
     ("misnamed.py:Mine", r"expected a class with update\(state\), got class Mine"),
     ("none.py:VALUE", "expected a class with update.*got int"), ("wrong.py", r"wrong.py, line 2: SyntaxError"),
     ("deeper.py:X", r"deeper.py, line 2: ZeroDivisionError"), ("mine.py:evry=2", "did you mean every"),
     ("mine.py:every=x", "every: expected a whole number"), ("gaif", "did you mean gait.*FILE.py")],
)  # fmt: skip
def test_what_is_wrong_is_reported_in_a_sentence(folder: Path, word: str, message: str) -> None:
    with pytest.raises(rtmms.ModelError, match=f"(?s){message}"):
        build(word)


def test_one_without_update_is_refused_before_it_connects() -> None:
    class Mine(rtmms.Controller):
        pass

    with pytest.raises(rtmms.ModelError, match=r"controller Mine: update\(state\) is missing; write this method"):
        run_controller(Mine(), "tcp://127.0.0.1:1")


def test_whether_there_is_one_is_known_without_running_it(folder: Path) -> None:
    check_controller("wrong.py:Anything")
    with pytest.raises(rtmms.ModelError, match="no file"):
        check_controller("absent.py")


@pytest.mark.parametrize(
    "line", ["", "import rtmms\n", "from math import pi\n", "from rtmms import connect, Controller\n"]
)
def test_a_script_is_refused_and_not_run(folder: Path, line: str) -> None:
    (folder / "script.py").write_text(f"{line}open('it_ran', 'w').close()\n")
    for arguments in (("run", "pendulum", "--controller", "script.py"), ("control", "script.py")):
        done = shell(folder, *arguments)
        assert done.status == 2
        assert "script.py has no class, so it was not run" in done.err
        assert "rtmms.connect" in done.err
    assert not (folder / "it_ran").exists()


def test_it_drives_with_its_own_turns(folder: Path, make_host: Callable[..., Host]) -> None:
    steps: list[int] = []
    controller = build("mine.py")
    update = controller.update

    def counted(state: rtmms.State) -> object:
        steps.append(state.step)
        return update(state)

    controller.update = counted  # type: ignore[method-assign, assignment]
    with Looping(make_host(token=None)) as running:
        from threading import Thread

        thread = Thread(target=run_controller, args=(controller, running.host.exchange), daemon=True)
        thread.start()
        running.wait(lambda: running.host.command[0] == 0.25)
        summary = running.host.summaries[0]
        assert (summary["every"], summary["delay"]) == (4, 4)
        running.end()
        thread.join(10.0)
    assert steps
    assert all(step % 4 == 0 for step in steps)


@pytest.mark.parametrize(
    ("word", "name", "remainder"),
    [
        ("mine.py:Mine:gain=2", "mine.py:Mine", "gain=2"),
        ("C:\\own\\mine.py", "C:\\own\\mine.py", ""),
        ("predictive:method=ilqr,cost=own/mine.py:deep", "predictive", "method=ilqr,cost=own/mine.py:deep"),
    ],
)
def test_a_file_among_a_controllers_words_is_not_the_controllers_own(word: str, name: str, remainder: str) -> None:
    assert split_word(word) == (name, remainder)
    assert is_file(word) == (name != "predictive")


@pytest.mark.parametrize("states", [0, 5])
def test_an_update_that_returns_no_command_is_refused_with_its_line(
    tmp_path: Path, make_host: Callable[..., Host], states: int
) -> None:
    path = tmp_path / "wordy.py"
    path.write_text(f"""class Wordy:
    claim, outputs, settable, every, delay, interpolation, robot = ("*",), (), (), 1, None, "hold", ""
    seen = 0

    def start(self, plant): ...
    def on_parameters_changed(self, values): ...

    def update(self, state):
        self.seen += 1
        return "ahead" if self.seen > {states} else {{"left.front": 0.1}}
""")
    with (
        Looping(make_host(token=None)) as running,
        pytest.raises(rtmms.ModelError, match=r"wordy.py, line 8: update: expected .*actuator: number.* got 'ahead'"),
    ):
        run_controller(build(str(path)), running.host.exchange)


REPORTS = """
import rtmms

class Reports(rtmms.Controller):
    claim, metrics = ("*",), ("seen",)
    seen = 0

    def update(self, state):
        self.seen += 1
        return {}
"""


@pytest.mark.full
def test_the_report_has_the_figures_of_the_runs_end(tmp_path: Path) -> None:
    (tmp_path / "reports.py").write_text(REPORTS)
    arguments = ("quadrotor", "--controller", "reports.py", "--mode", "lockstep", "--duration", "0.2", "--json")
    result = shell(tmp_path, "run", *arguments)
    assert result.status == 0, result.err
    (peer,) = result.report["exchange"]["peers"]
    assert peer["metrics"] == {"seen": result.report["steps"]}
