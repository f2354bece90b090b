"""One helper starts every Python child: it ignores the working directory, and ends with its parent."""

from __future__ import annotations

import ast
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rtmms.base.errors import ModelError
from rtmms.base.processes import PARENT, SAFE_PATH, end_with_parent, process_pool, run_python, start_python
from tests.sources import dotted, modules

STARTS = {
    "subprocess": {"Popen", "run", "call", "check_call", "check_output", "getoutput", "getstatusoutput"},
    "os": {
        "fork", "forkpty", "posix_spawn", "posix_spawnp", "popen", "startfile", "system",
        *(f"spawn{end}" for end in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")),
        *(f"exec{end}" for end in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")),
    },
    "multiprocessing": {"Process", "Pool", "get_context", "Manager", "set_start_method"},
    "futures": {"ProcessPoolExecutor"},
    "asyncio": {"create_subprocess_exec", "create_subprocess_shell"},
    "pty": {"spawn", "fork"},
}  # fmt: skip
"""Functions that start processes, by the last part of the module's name."""
ALLOWED = {
    "rtmms/base/processes.py": {"subprocess.Popen", "multiprocessing.get_context", "futures.ProcessPoolExecutor"},
    "rtmms/loop/stall_detector.py": {"os.fork"},  # a copy of itself: no new interpreter
    "rtmms/view/film.py": {"subprocess.Popen"},  # FFmpeg, which ends with its input
}


def starts(tree: ast.AST) -> set[str]:
    """Names of the functions in a module that start processes, as MODULE.FUNCTION."""
    result = set()
    for node in without_types(tree):
        if isinstance(node, ast.Attribute):
            owner = dotted(node.value).rpartition(".")[2]
            if node.attr in STARTS.get(owner, ()):
                result.add(f"{owner}.{node.attr}")
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            owner = node.module.rpartition(".")[2]
            result |= {f"{owner}.{name.name}" for name in node.names if name.name in STARTS.get(owner, ())}
    return result


def without_types(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a tree, without the imports that only a type checker sees, and without annotations."""
    left = [tree]
    while left:
        node = left.pop()
        yield node
        for field, value in ast.iter_fields(node):
            if field in ("returns", "annotation"):
                continue
            if field == "body" and isinstance(node, ast.If) and dotted(node.test) == "TYPE_CHECKING":
                continue
            left += [item for item in (value if isinstance(value, list) else (value,)) if isinstance(item, ast.AST)]


def test_the_helper_starts_every_process() -> None:
    result = {module: starts(tree) for module, tree in modules()}
    assert {file: names for file, names in result.items() if names} == ALLOWED


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import subprocess\nsubprocess.run(['ls'])", {"subprocess.run"}),
        ("from subprocess import Popen as P\nP([])", {"subprocess.Popen"}),
        (
            "import subprocess as sub\nfrom concurrent.futures import ProcessPoolExecutor",
            {"futures.ProcessPoolExecutor"},
        ),
        ("import concurrent.futures\nconcurrent.futures.ProcessPoolExecutor()", {"futures.ProcessPoolExecutor"}),
        ("import os\nos.execv('a', [])", {"os.execv"}),
        ("import subprocess\nsubprocess.DEVNULL", set()),
        ("from __future__ import annotations\ndef f(a: subprocess.Popen) -> subprocess.Popen: ...", set()),
    ],
)
def test_the_search_finds_what_starts_a_process(text: str, names: set[str]) -> None:
    assert starts(ast.parse(text)) == names


def test_a_process_that_nobody_started_so_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PARENT, raising=False)
    end_with_parent()
    monkeypatch.setenv(PARENT, "one")
    with pytest.raises(ModelError, match=r"RTMMS_PARENT: expected the process number .* got 'one'; unset it"):
        end_with_parent()
    assert PARENT not in os.environ  # else the children of this process would take it for theirs


@pytest.mark.skipif(sys.platform != "linux", reason="the system has no signal at the end of a parent")
def test_a_process_whose_parent_has_ended_already_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PARENT, str(2**22 + 1))
    monkeypatch.setattr("ctypes.CDLL", lambda name: pytest.MonkeyPatch())  # this very process is to live
    monkeypatch.setattr(pytest.MonkeyPatch, "prctl", lambda *_: 0, raising=False)
    with pytest.raises(SystemExit):
        end_with_parent()


EVIL = "raise SystemExit('code of the working directory ran')\n"


@pytest.mark.full
def test_children_do_not_import_from_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("threading", "rtmms", "numpy"):
        (tmp_path / f"{name}.py").write_text(EVIL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(SAFE_PATH, raising=False)
    for arguments in (["-m", "rtmms.cli.main", "--version"], ["-c", "import threading, rtmms; print(rtmms.__file__)"]):
        done = run_python(arguments)
        assert (done.returncode, "working directory" in done.stderr) == (0, False), done.stderr
    with process_pool(2) as pool:
        assert list(pool.map(abs, [-1, -2, -3])) == [1, 2, 3]
    assert SAFE_PATH not in os.environ


@pytest.mark.full
def test_a_pool_ends_at_once_after_an_error_or_ctrl_c() -> None:
    """A worker that slept to its end would keep the process for ten minutes."""
    waiting = []

    def interrupted() -> None:
        with process_pool(2) as pool:
            pool.submit(os.getpid).result()  # one of them has begun
            waiting.extend(pool.submit(time.sleep, 600) for _ in range(4))
            while not waiting[0].running():
                time.sleep(0.01)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert multiprocessing.active_children() == []
    assert all(item.cancelled() or item.exception() is not None for item in waiting)


PARENTS = {
    "a child": """
import sys, time
from rtmms.base.processes import start_python
child = start_python(["-c", "from rtmms.base.processes import end_with_parent; end_with_parent(); "
                      "print(1, flush=True); import time; time.sleep(600)"], stdout=-1)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(600)
""",
    "a pool": """
import os, time
from rtmms.base.processes import process_pool
if __name__ == "__main__":
    with process_pool(2) as pool:
        pids = {one.result() for one in [pool.submit(os.getpid) for _ in range(64)]}
        print(*pids, flush=True)
        time.sleep(600)
""",
}


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="the system has no signal at the end of a parent")
@pytest.mark.parametrize("program", PARENTS)
def test_children_end_when_their_parent_is_killed(tmp_path: Path, program: str) -> None:
    file = tmp_path / "parent.py"
    file.write_text(PARENTS[program])
    with subprocess.Popen([sys.executable, str(file)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        parent.send_signal(signal.SIGKILL)
    assert pids
    until = time.monotonic() + 30.0
    while (left := [pid for pid in pids if alive(pid)]) and time.monotonic() < until:
        time.sleep(0.02)
    assert left == []


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and is not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.full
def test_a_child_has_the_environment_of_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RTMMS_CODE", "a policy")
    done = run_python(["-c", "import os; print(os.environ['RTMMS_CODE'], os.environ['RTMMS_PARENT'])"])
    assert done.stdout.split() == ["a", "policy", str(os.getpid())]
    with start_python(["-c", "import os; print('RTMMS_CODE' in os.environ)"], {}, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.read().split() == [b"False"]
