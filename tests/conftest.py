"""Workers (pyproject.toml): which tests must not meet one another take turns on one of them.

A file stays on one worker, with what its fixtures made. So do all that speak where another worker could receive it:
multicast groups, brokers. Each worker has default ports of its own.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import platformdirs
import pytest
from hypothesis import settings
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.ports import reserve_ports


def isolate() -> None:
    """Give this test process an environment of its own: what a shell, a terminal, or a user sets must not matter."""
    home = Path(tempfile.mkdtemp(prefix="rtmms-test-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    (home / "run").mkdir(mode=0o700)
    cache = platformdirs.user_cache_path()  # compiled kernels, fonts of matplotlib: they stay where they are
    for name in list(os.environ):
        if name.startswith(("RTMMS_", "LC_", "XDG_")) or name in FOREIGN:
            del os.environ[name]
    os.environ |= {
        "HOME": str(home), "LANG": "C.UTF-8", "TERM": "xterm", "MPLBACKEND": "agg", "XDG_CACHE_HOME": str(cache),
        "XDG_RUNTIME_DIR": str(home / "run"), "RTMMS_PORT": str(reserve_ports(3)),
    }  # fmt: skip
    os.umask(0o022)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a script's `&` has it
        signal.signal(signal.SIGINT, signal.default_int_handler)


FOREIGN = (
    "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "LANGUAGE", "PYTHONPATH", "PYTHONSAFEPATH",
    "PYTHONWARNINGS", "MPLCONFIGDIR", "ZENOH_CONFIG", "LCM_DEFAULT_URL", "CYCLONEDDS_URI", "DISPLAY",
)  # fmt: skip
"""Variables that change what a command prints, imports, or reaches."""

isolate()  # before rtmms is imported, which reads the port

settings.register_profile("untimed", deadline=None)  # no test judges real time
settings.load_profile("untimed")

NETWORKED = (
    "test_bench_bridges.py", "test_bench_views.py", "test_can.py", "test_dds.py", "test_foxglove.py",
    "test_from_here.py", "test_imc.py", "test_lcm.py", "test_mqtt.py", "test_plotjuggler.py", "test_zenoh.py",
)  # fmt: skip

GROUND = ("locomotion", "robots/test_wheeled.py", "shapes", "cli/test_gaits.py")
"""All that compile the kernels of contacts, a minute of them: on one worker, so that not both compile the same."""

SOURCES = ("test_child_process.py", "test_input_file.py", "test_whole_file.py", "test_code_files.py")
"""All that read the syntax trees of every module, which one worker parses once."""

LONG = (
    "test_tutorials.py", "scenario/test_examples.py", "test_hold_a_depth_page.py", "sweep/test_inputs.py",
    "bridges/test_silent_peers.py", "faults/test_faults.py", "sensing/test_nees.py", "test_reader_memory.py",
    "sweep/test_one_case.py", "view/test_view.py", "test_examples.py", "test_compile.py", "robots/test_reports.py",
    "test_own_robot_page.py", "controllers/test_predictive.py", "cli/test_same_bits.py", "robots/manta/test_order.py",
    "sweep/test_sweep.py", "sensing/test_estimator.py", "bridges/autopilot/test_betaflight_firmware.py",
    "bridges/test_bridge_command.py", "robots/manta/test_jacobian.py", "robots/test_fish.py", "test_parsers.py",
    "robots/test_bench_guards.py", "robots/test_bench_loop.py", "identification/test_intervals.py",
)  # fmt: skip
"""Files of the full suite that take minutes: they begin first, so that no worker has one of them alone at the end."""
ALONE = (
    "scenario/test_examples.py", "bridges/test_silent_peers.py", "faults/test_faults.py", "sensing/test_nees.py",
    "test_reader_memory.py", "test_compile.py",
)  # fmt: skip
"""Files whose tests share nothing: each test where there is room."""


def group(nodeid: str) -> str:
    """What a test takes turns with."""
    path = nodeid.partition("::")[0].removeprefix("tests/")
    name = path.rpartition("/")[2]
    if path in ALONE:
        return nodeid
    if path.startswith(GROUND):
        return "ground"
    return "network" if name in NETWORKED else "sources" if path in SOURCES else path


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files of the full suite unread in the default suite: importing them takes seconds, in each worker."""
    if not is_default_suite(config) or collection_path.suffix != ".py":
        return None
    return True if WHOLLY_FULL.search(collection_path.read_text(encoding="utf-8")) else None


WHOLLY_FULL = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.full\b", re.MULTILINE)
"""A file all of whose tests belong to the full suite."""


def pytest_configure(config: pytest.Config) -> None:
    """Let the default suite find what a fresh clone has: the packages of the extra `test`, and no program but Python's.

    A developer's environment and machine have more. A test that needs more would fail for everybody else.
    """
    if config.option.markexpr == "not full":
        os.environ["PATH"] = os.path.dirname(sys.executable)
        hide_modules(modules_beyond("rtmms", "test"))


def modules_beyond(name: str, extra: str) -> set[str]:
    """Return the modules that are installed here and that neither a package with an extra nor its needs bring."""
    wanted: set[str] = set()
    waiting = [(canonicalize_name(name), extra)]
    while waiting:
        name, extra = waiting.pop()
        try:
            lines = metadata.requires(name) or []
        except metadata.PackageNotFoundError:  # for another system
            continue
        wanted.add(name)
        for need in map(Requirement, lines):
            if need.marker is None or need.marker.evaluate({"extra": extra}):
                result = [(canonicalize_name(need.name), item) for item in ("", *need.extras)]
                waiting += [item for item in result if item[0] not in wanted or item[1]]
    owners = metadata.packages_distributions()
    return {module for module, names in owners.items() if not wanted & {canonicalize_name(name) for name in names}}


def hide_modules(hidden: set[str]) -> None:
    """Let Python find these modules no more."""

    (base,) = [item for item in sys.meta_path if isinstance(item, type) and issubclass(item, PathFinder)]

    class Finder(base):  # type: ignore[misc, valid-type]
        @classmethod
        def find_spec(cls, fullname: str, path: Any = None, target: Any = None) -> Any:
            return None if fullname in hidden else super().find_spec(fullname, path, target)

    sys.meta_path[:] = [Finder if item is base else item for item in sys.meta_path]


@pytest.fixture(autouse=True)
def patient_lockstep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a loop in lockstep wait a minute for a peer, and `embed` for its plant: a busy machine takes seconds."""
    monkeypatch.setattr("rtmms.loop.modes.SILENT_NS", 60_000_000_000)
    embedding = sys.modules.get("rtmms.wire.plant.embed")
    if embedding is not None:
        monkeypatch.setattr(embedding, "_JOIN_S", 240.0)


@pytest.fixture(autouse=True)
def forgotten_modules(request: pytest.FixtureRequest) -> Iterator[None]:
    """Forget what a test imports from its own folder, and the folder: the next test may write files of that name."""
    if "tmp_path" not in request.fixturenames:
        yield
        return
    folder = str(request.getfixturevalue("tmp_path").resolve())
    yield
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(folder + os.sep):
            del sys.modules[name]
    sys.path[:] = [place for place in sys.path if place != folder and not place.startswith(folder + os.sep)]


started_processes: list[str] = []
"""What this process has started since the present test began."""


def _note_process(event: str, values: tuple[Any, ...]) -> None:
    if event == "subprocess.Popen" and COMPILER not in str(values[1]):
        started_processes.append(str(values[1]))


COMPILER = "from rtmms.base.processes import end_with_parent"
"""Begin of the program of a second process that compiles (`rtmms.base.jit.compile_in_parallel`), if there is one."""


sys.addaudithook(_note_process)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail a test of the default suite that starts a process: processes depend on the machine, and take seconds."""
    started_processes.clear()
    yield
    if started_processes and not any(item.get_closest_marker(name) for name in ("full", "processes")):
        pytest.fail(f"starts a process, so it belongs to the full suite (@pytest.mark.full): {started_processes[0]}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Fail a test of the default suite that lacks a package: the full suite, which has the package, leaves it out."""
    report: Any = yield
    if report.skipped and not item.get_closest_marker("full"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if "could not import" in reason or "pip install" in reason:
            report.outcome = "failed"
            report.longrepr = f"belongs to the full suite (@pytest.mark.full): {reason}"
    return report  # type: ignore[return-value]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long files first in the full suite."""
    if not is_default_suite(config):
        places = {f"tests/{name}": k for k, name in enumerate(LONG)}
        items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(LONG)))


def is_default_suite(config: pytest.Config) -> bool:
    """Whether the marks that are asked for are those of the default suite."""
    return bool(config.option.markexpr == "not full")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One worker more than cores, because a sixth of the time passes in waiting.

    At most 8, each of which reads all tests, and one for 3 GiB of memory: each holds up to 2 GiB of compiled kernels.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    known = hasattr(os, "sysconf") and {"SC_PHYS_PAGES", "SC_PAGE_SIZE"} <= set(os.sysconf_names)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if known else 6 << 30
    return max(1, min(cores + 1, 8, memory // (3 << 30)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Groups by the names of tests: marks (xdist_group) reach xdist 3.8 through what pytest 9 does not read."""
    from xdist.scheduler import LoadScopeScheduling

    class InGroups(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group(nodeid)

    if not is_default_suite(config):
        config.option.loadscopereorder = False  # groups of many tests are not those that take long
    return InGroups(config, log) if config.getvalue("dist") == "loadgroup" else None
