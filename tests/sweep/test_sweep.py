"""rtmms sweep as a user runs it: the bits of single runs, whatever the workers, broken off, resumed, on a cluster."""

from __future__ import annotations

import csv
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from rtmms.base.errors import ModelError, RtmmsWarning
from rtmms.cli.main import rtmms as program
from rtmms.studies.sweep_running import read_cluster
from tests.bridges.harness import wait
from tests.cli.shell import ROOT, environment, finish, rtmms, start
from tests.cli.shell import process as process_of

pytest.importorskip("pyarrow")
import pyarrow.parquet as pq

pytestmark = pytest.mark.full

OVER = ("--vary", "damping=0.0:0.4:3", "--vary", "swing.amplitude=0.5,1.5")
SHORT = ("--controller", "swing", "--duration", "0.5")
LONG = ("--controller", "swing", "--duration", "20", "--vary", "damping=0.0:0.4:12")
"""12 runs of 2,000 steps, each a part."""


@pytest.fixture
def sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """The command in this process, with the test plug-ins installed; status and standard output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "plugins"))

    def run(*text: str) -> tuple[int, str]:
        status = program.main(["sweep", *text, "--threads", "1", "--quiet"], standalone_mode=False)
        return status, capsys.readouterr().out

    return run


def rows(path: Path) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return result


@pytest.mark.parametrize(
    "more", ["", ":every=3", ":every=4,delay=2,interpolation=linear", ":delay=9", ":every=2,delay=100"]
)
def test_a_row_is_what_a_single_run_in_lockstep_comes_to(tmp_path: Path, sweep: Any, more: str) -> None:
    arguments = ("pendulum", "--controller", f"swing{more}", "--duration", "0.5", *OVER, "-o", "t.parquet", "--json")
    status, out = sweep(*arguments)
    content = json.loads(out)
    assert (status, content["runs"], content["ended"]) == (0, 6, {"duration": 6})
    row = rows(tmp_path / "t.parquet")[3]
    assert (row["run"], row["damping"], row["swing.amplitude"], row["steps"]) == (3, 0.2, 1.5, 50)
    word = f"swing:amplitude=1.5{more.replace(':', ',')}"
    item = rtmms(tmp_path, "run", "pendulum", "--controller", word, "--duration", "0.5", "--mode", "lockstep", "--json",
                "--set", "damping=0.2")  # fmt: skip
    final = item.report["final"]
    assert row["final.angle"] == final["angle"]
    assert [row[f"final.velocity[{k}]"] for k in range(3)] == final["velocity"]
    assert row["mean_angle_rad"] == pytest.approx(item.report["summary"]["mean_angle_rad"], rel=1e-9)


def test_a_table_as_csv_has_the_rows_of_parquet(tmp_path: Path, sweep: Any) -> None:
    arguments = ("pendulum", "--controller", "swing", "--duration", "0.5", *OVER)
    assert sweep(*arguments, "-o", "t.parquet")[0] == 0
    assert sweep(*arguments, "-o", "t.csv")[0] == 0
    assert sweep(*arguments, "-o", "t.csv")[0] == 0  # its own table may be made again
    with (tmp_path / "t.csv").open(newline="") as opened:
        result = list(csv.DictReader(opened))
    expected = [{name: "" if value is None else str(value) for name, value in row.items()} for row in
                rows(tmp_path / "t.parquet")]  # fmt: skip
    assert result == expected


def test_controllers_of_a_sweep_get_the_description_of_the_plant_as_those_of_a_run_are(
    tmp_path: Path, sweep: Any
) -> None:
    """`hover` takes the quadrotor's mass from what the plant sends."""
    status, _ = sweep("quadrotor", "--vary", "mass_kg=0.5,0.8", "--duration", "0.5", "-o", "t.parquet",
                      "--columns", "final.position[2]", "--json")  # fmt: skip
    item = rtmms(
        tmp_path, "run", "quadrotor", "--duration", "0.5", "--mode", "lockstep", "--json", "--set", "mass_kg=0.8"
    )
    assert (status, item.status) == (0, 0)
    assert rows(tmp_path / "t.parquet")[1]["final.position[2]"] == item.report["final"]["position"][2]


def test_the_bits_do_not_depend_on_the_workers(tmp_path: Path) -> None:
    for name, workers in (("one", "1"), ("two", "2")):
        result = rtmms(tmp_path, "sweep", "pendulum", *LONG, "-o", f"{name}.parquet", "--threads", workers, "--quiet")
        assert result.status == 0, result.err
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()
    assert len(rows(tmp_path / "one.parquet")) == 12


def test_broken_off_and_resumed_it_is_the_same_table(tmp_path: Path) -> None:
    arguments = ("sweep", "pendulum", *LONG, "--threads", "1", "--quiet", "-o")
    assert rtmms(tmp_path, *arguments, "whole.parquet").status == 0
    process = start(tmp_path, *arguments, "cut.parquet")
    folder = tmp_path / "cut.parquet.parts"
    wait(lambda: list(folder.glob("part-*.part")) or process.poll() is not None)
    process.send_signal(signal.SIGINT)
    result = finish(process)
    assert (result.status, "run the same command again to continue" in result.err) == (130, True), result.err
    assert not (tmp_path / "cut.parquet").exists()
    again = process_of(tmp_path, *arguments, "cut.parquet")
    assert again.status == 0
    assert "runs exist from an earlier start" in again.err
    assert rows(tmp_path / "cut.parquet") == rows(tmp_path / "whole.parquet")
    assert not folder.exists()


def test_a_budget_ends_a_sweep_that_goes_on_later(tmp_path: Path, sweep: Any) -> None:
    arguments = ("pendulum", *SHORT, "--vary", "damping=0.1:0.5:200", "-o", "t.parquet")
    status, _ = sweep(*arguments, "--budget", "1e-9")
    parts = list((tmp_path / "t.parquet.parts").glob("part-*.part"))
    assert (status, len(parts)) == (1, 1)
    assert sweep(*arguments)[0] == 0
    assert len(rows(tmp_path / "t.parquet")) == 200


def test_a_run_that_fails_is_a_row_with_its_reason(tmp_path: Path, sweep: Any) -> None:
    status, out = sweep("pendulum", *SHORT, "--vary", "damping=0.1,-1.0", "-o", "t.parquet")
    assert (status, "refused 1" in out) == (0, True)
    bad = rows(tmp_path / "t.parquet")[1]
    assert (bad["ended"], bad["steps"], bad["final.angle"]) == ("refused", 0, None)
    assert bad["reason"] == "pendulum: damping must be >= 0 1/s, got -1.0"
    sweep("pendulum", *SHORT, "--vary", "diverge_at=9.0,0.2", "-o", "u.parquet")
    good, bad = rows(tmp_path / "u.parquet")
    assert (good["ended"], bad["ended"], bad["steps"]) == ("duration", "diverged", 20)
    assert "diverged at t = 0.21 s" in bad["reason"]
    sweep("pendulum", *SHORT, "--vary", "fault_at=9.0,0.2", "-o", "v.parquet")
    assert rows(tmp_path / "v.parquet")[1]["reason"] == "ZeroDivisionError: a bug in the plant"


def test_a_sweep_without_one_good_run_fails(tmp_path: Path, sweep: Any) -> None:
    assert sweep("pendulum", *SHORT, "--vary", "diverge_at=0.1,0.2", "-o", "t.parquet")[0] == 1
    assert [row["ended"] for row in rows(tmp_path / "t.parquet")] == ["diverged", "diverged"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--vary", "dampng=1,2"), "unknown parameter of pendulum 'dampng'; did you mean damping"),
        (("--vary", "swing.amplitud=1,2"), "unknown parameter of controller 'swing' 'amplitud'"),
        (("--set", "damping=9", "--vary", "damping=1,2"), "--set damping=9: the sweep varies damping"),
        (("--seed", "9", "--vary", "seed=1,2"), "--seed 9: the sweep varies seed; leave one of them out"),
        (("--vary", "damping=1,2", "--vary", "damping=3,4"), "--vary damping=3,4: damping is given twice"),
        (("--vary", "damping=1,2", "--columns", "mean_angle"), "unknown column 'mean_angle'; did you mean mean_angle_"),
        (("--vary", "damping=1,2", "-o", "t.txt"), "expected a name that ends in .parquet or .csv"),
        (("--vary", "damping=1,2", "--figure", "t.txt"), "expected a name that ends in .png"),
        (("--vary", "damping=1,2", "--dask", "tcp://127.0.0.1:1"), "expected one of them"),
        (("--vary", "damping=1,2", "-o", "own.parquet"), "expected a new name, or an existing Parquet file"),
        ((), "expected at least one parameter to vary"),
    ],
)
def test_wrong_words_are_refused_before_anything_runs(
    tmp_path: Path, sweep: Any, arguments: tuple[str, ...], message: str
) -> None:
    (tmp_path / "own.parquet").write_text("precious")
    with pytest.raises((ModelError, click.UsageError), match=re.escape(message)):
        sweep("pendulum", *SHORT, *(() if "-o" in arguments else ("-o", "t.parquet")), *arguments)
    assert (tmp_path / "own.parquet").read_text() == "precious"
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".parts"] == []


def test_a_count_that_samples_ignore_is_warned_of(tmp_path: Path, sweep: Any) -> None:
    with pytest.warns(RtmmsWarning, match="--vary: damping=1:2:5: sobol draws its samples .*; expected damping=1:2"):
        sweep("pendulum", *SHORT, "--vary", "damping=1:2:5", "--samples", "4", "-o", "t.parquet")
    assert len(rows(tmp_path / "t.parquet")) == 4


STUDY = """
robot = "pendulum"
duration = 0.5
[parameters]
damping = 0.3
[[controller]]
name = "swing"
[sweep]
method = "lhs"
samples = 5
columns = ["mean_angle_rad"]
[sweep.over]
"swing.amplitude" = "0.1:2"
seed = "0:3"
"""


def test_a_study_is_a_scenario_with_a_table_and_can_be_run_alone(tmp_path: Path, sweep: Any) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    status, out = sweep("study.toml", "-o", "t.parquet", "--figure", "t.png", "--json")
    assert status == 0
    columns = ["run", "swing.amplitude", "seed", "mean_angle_rad", "misses", "ended", "reason", "steps"]
    assert [name for name in json.loads(out)["columns"] if not name.startswith(("accuracy", "settled"))] == columns
    assert (tmp_path / "t.png").stat().st_size > 5000
    assert rtmms(tmp_path, "run", "study.toml", "--mode", "lockstep", "--json").status == 0
    (tmp_path / "wrong.toml").write_text(STUDY.replace("samples", "sampels"))
    with pytest.raises(ModelError, match="unknown key of sweep 'sampels'; did you mean samples"):
        sweep("wrong.toml", "-o", "t.parquet")


def test_events_act_in_the_runs_of_a_study(tmp_path: Path, sweep: Any) -> None:
    """One comes later than the first steps, which only show that a run begins; one with the last step."""
    event = "\n[[event]]\nat_s = {}\nset = {{ damping = 5.0 }}\n[sweep]"
    tuned = STUDY.replace('"pendulum"', '"tuned"')
    for name, at in (("soon", "0.02"), ("late", "0.4"), ("last", "0.49")):
        (tmp_path / f"{name}.toml").write_text(tuned.replace("\n[sweep]", event.format(at), 1))
        assert sweep(f"{name}.toml", "-o", f"{name}.parquet")[0] == 0
    soon, late, last = (rows(tmp_path / f"{name}.parquet") for name in ("soon", "late", "last"))
    angles = [[row["mean_angle_rad"] for row in table] for table in (soon, late, last)]
    assert all(len(set(item)) == 3 for item in zip(*angles, strict=True))
    assert {row["ended"] for row in (*soon, *late, *last)} == {"duration"}
    (tmp_path / "past.toml").write_text(tuned.replace("\n[sweep]", event.format("0.6"), 1))
    with pytest.raises(ModelError, match=r"event at 0\.6 s: "):
        sweep("past.toml", "-o", "past.parquet")


def test_the_page_s_study(tmp_path: Path, sweep: Any) -> None:
    page = (ROOT / "docs" / "many_runs.md").read_text(encoding="utf-8")
    match = re.search(r"```toml\n(.*?)```", page, re.DOTALL)
    assert match is not None
    (tmp_path / "study.toml").write_text(match[1])
    assert sweep("study.toml", "-o", "t.parquet", "--duration", "0.2")[0] == 0
    table = rows(tmp_path / "t.parquet")
    assert [row["ended"] for row in table] == ["duration"] * 9
    assert len({row["mean_speed_m_s"] for row in table}) == 9


def test_expectations_of_a_scenario_are_counted_over_the_runs(tmp_path: Path, sweep: Any) -> None:
    (tmp_path / "s.toml").write_text("""
robot = "pendulum"
duration = 0.5
[[controller]]
name = "swing"
[expect]
"final.angle" = ">= -1e9"
"final.rate" = "< -1e9"
"schedule.overruns" = "== 0"
[sweep.over]
damping = [0.0, 0.2, 0.4]
""")
    status, out = sweep("s.toml", "-o", "t.parquet", "--json")
    result = {load["name"]: load["holds"] for load in json.loads(out)["expect"]}
    assert (status, result) == (0, {"final.angle": 3, "final.rate": 0, "schedule.overruns": None})
    printed = sweep("s.toml", "-o", "u.csv")[1]
    assert "expected schedule.overruns == 0.0: not checked, the table has no such column" in printed


def test_a_cluster_that_is_not_there_is_reported(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    result = rtmms(tmp_path, "sweep", "pendulum", *SHORT, "--vary", "damping=1,2", "-o", "t.parquet", "--dask",
                 "tcp://127.0.0.1:1")  # fmt: skip
    assert result.status == 2
    assert "rtmms: --dask tcp://127.0.0.1:1: no scheduler answered" in result.err
    assert "Traceback" not in result.err


TLS = ("--tls-ca-file", "cert.pem", "--tls-cert", "cert.pem", "--tls-key", "key.pem")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler and three workers on loopback, with TLS as docs/many_runs.md has it."""
    pytest.importorskip("distributed")
    page = (ROOT / "docs" / "many_runs.md").read_text(encoding="utf-8")
    built = next(text for text in re.findall(r"```\w*\n(.*?)```", page, re.DOTALL) if "openssl" in text)
    subprocess.run(["sh", "-ec", built], cwd=tmp_path, check=True, capture_output=True)
    result = tmp_path / "scheduler.json"
    dask = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": tmp_path,
                  "env": environment(tmp_path)}  # fmt: skip
    with subprocess.Popen([*dask, "--protocol", "tls", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
                           "--scheduler-file", str(result), *TLS], **quiet) as scheduler:  # fmt: skip
        wait(lambda: result.exists() and result.stat().st_size)
        address = json.loads(result.read_text())["address"]
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard",
                  "--no-nanny", *TLS]  # fmt: skip
        workers = [subprocess.Popen(worker, **quiet) for _ in range(3)]
        yield address, workers
        for item in (*workers, scheduler):
            item.kill()
            item.wait()


def test_on_a_cluster_one_of_whose_workers_dies_it_is_the_same_table(
    tmp_path: Path, cluster: tuple[str, list[subprocess.Popen[bytes]]]
) -> None:
    """And nobody is admitted without a certificate."""
    address, workers = cluster
    arguments = ("sweep", "pendulum", *LONG, "--quiet", "-o")
    assert rtmms(tmp_path, *arguments, "here.parquet").status == 0
    process = start(tmp_path, *arguments, "there.parquet", "--dask", address, "--dask-security", "cluster.toml")
    folder = tmp_path / "there.parquet.parts"
    wait(lambda: list(folder.glob("part-*.part")) or process.poll() is not None)
    workers[0].kill()
    result = finish(process, 120)
    assert (result.status, "without TLS" in result.err) == (0, False), result.err
    assert rows(tmp_path / "there.parquet") == rows(tmp_path / "here.parquet")
    plain = address.replace("tls://", "tcp://")
    result = rtmms(tmp_path, *arguments, "plain.parquet", "--dask", plain)
    assert (result.status, "no scheduler answered" in result.err) == (2, True), result.err
    assert f"--dask {plain}: without TLS: a program that reaches the scheduler can run code as you" in result.err


def test_the_words_of_a_cluster_are_read_before_anything_runs(tmp_path: Path) -> None:
    for name in ("ca", "cert", "key"):
        (tmp_path / f"{name}.pem").write_text("")
    files = {"ca": "ca.pem", "cert": "cert.pem", "key": "key.pem"}

    def written(**more: Any) -> Path:
        lines = [f"{key} = {json.dumps(value)}" for key, value in (files | more).items() if value is not None]
        (tmp_path / "c.toml").write_text("\n".join(lines))
        return tmp_path / "c.toml"

    assert read_cluster("tcp://h:1", None).security == {}
    assert read_cluster("tls://h:1", written()).security == {file: str(tmp_path / f"{file}.pem") for file in files}
    for address, more, text in (
        ("tcp://h:1", {}, "expected tls://HOST:PORT with --dask-security"),
        ("tls://h:1", {"key": None}, 'c.toml: key: expected the name of a PEM file, such as key = "key.pem"'),
        ("tls://h:1", {"cert": 3}, "c.toml: cert: expected the name of a PEM file"),
        ("tls://h:1", {"ca": "no.pem"}, "c.toml: ca: there is no file"),
        ("tls://h:1", {"cret": "x"}, "unknown key 'cret'; did you mean cert"),
    ):
        with pytest.raises(ModelError, match=re.escape(text)):
            read_cluster(address, written(**more))
    with pytest.raises(ModelError, match=r"expected --dask-security FILE\.toml with ca, cert, key$"):
        read_cluster("tls://h:1", None)


def test_a_second_sweep_to_the_same_table_is_refused(tmp_path: Path) -> None:
    arguments = ("sweep", "pendulum", *LONG[:-1], "damping=0.0:0.4:100", "--threads", "1", "--quiet", "-o", "t.parquet")
    first = start(tmp_path, *arguments)
    folder = tmp_path / "t.parquet.parts"
    try:
        wait(lambda: list(folder.glob("part-*.part")) or first.poll() is not None)
        first.send_signal(signal.SIGSTOP)  # it must not finish before the second one is refused
        result = process_of(tmp_path, *arguments)
        assert (result.status, result.out) == (2, "")
        assert (
            "rtmms: t.parquet: another process makes this table now; expected another file, or that it e" in result.err
        )
        assert first.poll() is None
    finally:
        first.kill()
        finish(first)
    parts = len(list(folder.glob("part-*.part")))
    again = start(tmp_path, *arguments)
    assert again.stderr is not None
    assert (
        f"{parts} of 100 runs exist from an earlier start" in again.stderr.readline()
    )  # the lock went with its process
    again.kill()
    finish(again)


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ('[sweep]\nmethd = "grid"\n', "s.toml:7: sweep: unknown key of sweep 'methd'; did you mean method?"),
        ('[sweep.over]\ndamping = "1:2"\n', "[sweep.over]: damping: expected from:to:count"),
        ('[sweep.over]\n"swin.amplitude" = [1, 2]\n', "unknown controller 'swin'; did you mean swing?"),
    ],
)
def test_a_single_run_looks_at_the_table_of_a_study_too(tmp_path: Path, table: str, text: str) -> None:
    head = 'robot = "pendulum"\nmode = "lockstep"\nduration = 0.1\n[[controller]]\nname = "swing"\n'
    (tmp_path / "s.toml").write_text(head + table)
    result = rtmms(tmp_path, "run", "s.toml")
    assert (result.status, result.out) == (2, "")
    assert text in result.err
    (tmp_path / "s.toml").write_text(head + '[sweep]\nmethod = "grid"\n')  # what differs stands on the command line
    assert rtmms(tmp_path, "run", "s.toml", "--json").status == 0
