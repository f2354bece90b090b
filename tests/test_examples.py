"""Every example runs, and every command and the controller of the README do what the README states."""

from __future__ import annotations

import inspect
import math
import os
import re
import runpy
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import rtmms
from rtmms_benchmarks import plant
from tests.cli.shell import environment
from tests.cli.shell import rtmms as shell
from tests.robots.test_bench_plant import TINY

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))
README = (ROOT / "README.md").read_text()
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL) for line in block.splitlines() if line]

# what a test adds so as not to take long, or not to run itself
SHORTER = {
    "rtmms run examples/": [],
    "rtmms run": ["--duration", "1.5"],
    "rtmms reproduce": ["--help"],
    "rtmms bench plant": ["--options"],
}


@contextmanager
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *text: str) -> Iterator[str]:
    """`rtmms serve manta` on a free port, ended when the block is left; gives its exchange endpoint."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    anywhere = [word for end in ("exchange", "step", "telemetry") for word in (f"--{end}", "tcp://127.0.0.1:*")]
    output = tmp_path / "serve.txt"
    with output.open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "rtmms.cli.main", "serve", "manta", *anywhere, *text], cwd=tmp_path,
            env=environment(tmp_path), stdout=subprocess.DEVNULL, stderr=stream,
        )  # fmt: skip
    try:
        while not (match := re.search(r"exchange (tcp://[\d.]+:\d+)", output.read_text())):
            if process.poll() is not None:
                pytest.fail(f"the plant did not start: {output.read_text()}")
            time.sleep(0.02)
        rtmms.connect(match[1], name="probe", timeout_s=200.0).close()  # it may have to compile; a user would wait
        yield match[1]
    finally:
        process.terminate()
        process.wait(30)


@pytest.mark.full
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(
    example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(example.parent))  # what it starts must find it, too
    main = import_module(example.stem).main
    rtmms._announce()  # as in a process of its own, which imports gymnasium before rtmms
    takes = inspect.signature(main).parameters
    values = {"seconds": 0.5} if "seconds" in takes else {}
    if "exchange" in takes:
        with served(tmp_path, monkeypatch) as exchange:
            main(exchange=exchange, **values)
    else:
        main(**values)
    assert capsys.readouterr().out.strip(), "an example without output shows nothing"


def test_the_plant_in_a_script_swims() -> None:
    done = runpy.run_path(str(ROOT / "examples" / "10_plant.py"))["main"](seconds=3.0)
    assert 0.05 < done["speed"] < 1.0
    assert done["again"]


def test_the_page_of_plants_quotes_the_examples() -> None:
    """docs/plants.md, whose blocks of Python are parts of the examples that run above."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "plants.md").read_text(), re.DOTALL)
    texts = [(ROOT / "examples" / name).read_text() for name in ("30_own_plant.py", "32_compiled_plant.py")]
    assert [block in text for block, text in zip(blocks, texts, strict=True)] == [True, True]


@pytest.mark.full
def test_the_commands_of_the_page_of_plants_run(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "plants.md").read_text(), re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("rtmms ")]
    assert len(lines) == 3
    for line in lines:
        ran = shell(tmp_path, *shlex.split(line)[1:])
        assert ran.status == 0, ran.err
    assert (tmp_path / "cart" / "pyproject.toml").stat().st_size > 100


def test_a_plant_of_ones_own_is_exact() -> None:
    """Against the closed form: from rest, a held thrust."""
    buoy = runpy.run_path(str(ROOT / "examples" / "30_own_plant.py"))["Buoy"](mass_kg=50.0, damping_n_s_m=0.0)
    for _ in range(100):
        buoy.step(np.array([8.0]))
    assert float(buoy.observe()["heave"]) == pytest.approx(8.0 / 200.0 * (1.0 - math.cos(2.0)), rel=1e-12)


@pytest.mark.full
def test_the_octopus_swims_and_the_glider_glides_by_its_tables() -> None:
    """Way over height is lift over drag of wing, tail and fin, by the tables alone, at the incidence of the glide."""
    examples = ROOT / "examples"
    for name in ("18_octopus.py", "19_glider.py"):
        assert len((examples / name).read_text().splitlines()) < 40, "fewer than 40 lines were promised"
    assert 0.6 < runpy.run_path(str(examples / "18_octopus.py"))["main"]() < 0.7
    ran = runpy.run_path(str(examples / "19_glider.py"))
    ratio = ran["main"]()
    wing, tail = ran["table"](-4.0, 8.0), ran["table"](0.0, 4.0)
    areas = ((0.18 * math.cos(0.1), wing, 0.0), (0.36 * 0.08, tail, -0.05), (0.14 * 0.09, tail, None))

    def drag_over_lift(a: float) -> tuple[float, float]:
        lift = drag = 0.0
        for area, polar, incidence in areas:
            angle = 0.0 if incidence is None else math.degrees(a + incidence)
            lift += area * float(np.interp(angle, polar.angles_deg, polar.lift)) * (incidence is not None)
            drag += area * float(np.interp(angle, polar.angles_deg, polar.drag))
        return drag, lift

    plant = ran["robot"](5e-3)
    plant.place(velocity=[8.1, 0.0, -0.4])
    angles = []
    for k in range(6000):
        plant.step(np.zeros(0))
        if k >= 3000:
            vx, _, vz = plant.observe()["velocity"]
            angles.append(math.atan2(-vz, vx))
    drag, lift = drag_over_lift(float(np.mean(angles)))
    assert ratio == pytest.approx(lift / drag, rel=0.03)


@pytest.mark.processes
def test_the_controller_of_the_readme_swims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(code.strip().splitlines()) <= 11, "ten lines were promised"
    with served(tmp_path, monkeypatch, "--mode", "lockstep", "--duration", "2.5") as exchange:
        (tmp_path / "mine.py").write_text(code.replace("rtmms.connect(", f'rtmms.connect("{exchange}", '))
        ran = subprocess.run(
            [sys.executable, "mine.py"], cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True,
            timeout=240, check=False,
        )  # fmt: skip
    plants = (tmp_path / "serve.txt").read_text()
    assert ran.returncode == 0, f"{ran.stderr}\n{plants}"
    speeds = [float(line.split()[2]) for line in ran.stdout.splitlines()]
    assert len(speeds) >= 2, f"{ran.stderr}\n{plants}"
    assert speeds[-1] > 0.01


@pytest.mark.full
@pytest.mark.parametrize("line", COMMANDS)
def test_command_of_the_readme(line: str, tmp_path: Path) -> None:
    if "pytest" in line:  # .ci/run does this, on a machine that has only Python
        return
    for command in line.split("&&"):
        arguments = shlex.split(command)
        text = " ".join(arguments).replace(".venv/bin/", "")
        if text.startswith(("python3 -m venv", "pip install")):
            continue  # .ci/run does these, on a machine that has only Python
        arguments += next((more for begin, more in SHORTER.items() if text.startswith(begin)), [])
        arguments = [str(ROOT / word) if word.startswith("examples/") else word for word in arguments]
        program = [sys.executable, "-m", "rtmms.cli.main"] if arguments[0].endswith("rtmms") else [sys.executable]
        ran = subprocess.run(
            [*program, *arguments[1:]], cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True,
            timeout=240, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout.strip()
        if "--figure" in arguments:
            assert (tmp_path / "manta.png").stat().st_size > 10_000


@pytest.mark.full  # plain Python steps the manta beside the compiled one
def test_the_benchmark_of_the_readme(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert ".venv/bin/rtmms bench plant" in README
    monkeypatch.setattr(plant, "Effort", lambda: TINY)
    result = shell(tmp_path, "bench", "plant")
    assert result.status == 0, result.err
    assert "--mode free against real time" in result.out


def test_the_first_two_commands_need_python_alone() -> None:
    run, test = COMMANDS[:2]
    for line in (run, test):
        assert line.startswith("python3 -m venv .venv && .venv/bin/pip install -q -e ")
    assert "rtmms run manta" in run
    script = (ROOT / ".ci" / "run").read_text()
    pattern = re.search(r"sed -n '/(.*)/p' README.md", script)
    assert pattern is not None, ".ci/run takes the README's test command from the README"
    assert [line for line in README.splitlines() if re.search(pattern[1], line)] == [test]
    assert script.index('$test_command"\n') < script.index("install -e"), "before it installs anything else"
    for suite in ('-m "full and not alone" -W error', "-m alone -W error"):
        assert suite in script


def test_links_of_the_pages_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)}: {target}"


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    missing = [page.name for page in (ROOT / "docs").glob("*.md") if f"({page.name})" not in index]
    assert missing == ["README.md"]


def test_ci_is_a_program() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
