"""rtmms identify as a user runs it: on tables of one's own and on logs, what it prints, writes and refuses."""

from __future__ import annotations

import csv
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.cli.main import main
from rtmms.studies.recordings import Recording
from tests.cli.shell import rtmms as shell
from tests.identification.swimming import BASE, noisy, recorded

MODEL = ("--robot", "manta", "--dt", str(BASE["dt"]), "--set", f"chains={BASE['chains']}", "--quiet", "--threads", "1")
COLUMNS = """time = "t_ms_is_not_it"
"command.left.front" = "lf"
"command.left.back" = "lb"
"command.right.front" = {column = "rf_deg", scale = 0.017453292519943295}
"command.right.back" = "rb"
"velocity[0]" = {column = "u", noise = 0.004}
"velocity[1]" = "v"
"velocity[2]" = "w"
"angular_velocity[2]" = "r"
""".replace("t_ms_is_not_it", "t")


@pytest.fixture(scope="module")
def run() -> Recording:
    return noisy(recorded({"drag_coefficient": 1.8}, seconds=5.0), 0.02, 4)


@pytest.fixture
def table(tmp_path: Path, run: Recording, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As somebody else's logger writes it: other names, an angle in degrees, velocities at every third row only."""
    monkeypatch.chdir(tmp_path)
    result = {item.channel: item.values for item in run.series}
    path = tmp_path / "pool.csv"
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["t", "lf", "lb", "rf_deg", "rb", "u", "v", "w", "r", "note"])
        for k, command in enumerate(run.commands):
            a, b, c, d = command.tolist()
            row: list[Any] = [100.0 + k * run.dt, a, b, np.degrees(c), d, "", "", "", "", "swim"]
            if k and k % 3 == 0:
                row[5:8] = result["velocity"][k - 1].tolist()
            if k:
                row[8] = result["angular_velocity"][k - 1, 2]
            out.writerow(row)
    (tmp_path / "columns.toml").write_text(COLUMNS)
    return path


def identify(capsys: pytest.CaptureFixture[str], *text: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["identify", *text])
    result = capsys.readouterr()
    return int(ended.value.code or 0), result.out, result.err


def test_a_table_of_ones_own(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = identify(
        capsys, "pool.csv", *MODEL, "--columns", "columns.toml", "--at-rest", "--fit", "drag_coefficient", "--json",
        "--write", "fitted.toml", "-o", "fit.html", "--bounds", "drag_coefficient=1:3",
    )  # fmt: skip
    assert status == 0, err
    content = json.loads(out)
    drag_coefficient = content["parameters"]["drag_coefficient"]
    assert drag_coefficient["value"] == pytest.approx(1.8, abs=4.0 * drag_coefficient["standard_error"])
    assert (drag_coefficient["at_bound"], drag_coefficient["bounds"], content["indistinct"]) == (False, [1.0, 3.0], [])
    assert content["correlation"] == {"drag_coefficient": {"drag_coefficient": 1.0}}
    assert content["fit"]["velocity"]["samples"] == pytest.approx(0.7 * 500 / 3, abs=3)
    assert content["fit"]["velocity"].keys() >= {"rms", "noise", "held_out_rms"}
    plant: Any = rtmms.load("manta", dt=0.01, preset="fitted.toml")
    assert plant.parameters.drag_coefficient == drag_coefficient["value"]
    assert plant.parameters.chains == BASE["chains"]
    page = Path("fit.html").read_text()
    assert page.count("<svg") == page.count("</svg>") == 4
    assert not re.search(r"""(src|href)=["'](?!#|data:)|url\((?!#)|@import""", page), "a page that needs other files"
    assert "drag_coefficient" in page


def test_for_a_person(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair = "body_drag_coefficient[0],body_drag_area_m2[0]"
    status, out, err = identify(
        capsys, "pool.csv", *MODEL, "--columns", "columns.toml", "--at-rest", "--fit", pair, "--starts", "1",
        "--set", "drag_coefficient=1.8",
    )  # fmt: skip
    assert status == 0, err
    assert re.search(r"velocity +\S+ +\S+ +\S+ +m/s", out)
    assert re.search(r"body_drag_\S+, body_drag_\S+: have the same effect", out)


@pytest.mark.full
def test_the_same_as_parquet(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    columns = {
        name: [None if row[name] == "" else float(row[name]) for row in rows] for name in rows[0] if name != "note"
    }
    pq.write_table(pa.table(columns), "pool.parquet")
    arguments = (
        *MODEL,
        "--columns",
        "columns.toml",
        "--at-rest",
        "--fit",
        "drag_coefficient",
        "--json",
        "--starts",
        "1",
    )
    values = []
    for name in ("pool.csv", "pool.parquet"):
        status, out, err = identify(capsys, name, *arguments)
        assert status == 0, err
        values.append(json.loads(out)["parameters"]["drag_coefficient"])
    assert values[0] == values[1]


@pytest.mark.parametrize(("arguments", "expected"), [
    (("pool.csv",), "a table does not name its robot: name it with --robot"),
    (("none.csv", "--robot", "manta"), "none.csv: there is no such file"),
    (("pool.csv", *MODEL), "expected a column for time: name it with --columns time=COLUMN; it has t, lf, lb"),
    (("pool.csv", *MODEL, "--columns", "time=when"), "unknown column of pool.csv 'when'"),
    (("pool.csv", *MODEL, "--columns", "speed=u"), "unknown name of --columns 'speed'"),
    (("pool.csv", *MODEL, "--columns", "time"), "--columns time: expected OURS=THEIRS"),
    (("pool.csv", *MODEL, "--columns", "columns.toml,x"), "expected OURS=THEIRS"),
    (("pool.csv", *MODEL, "--columns", "columns.toml", "--columns", "time=u"), "expected a time in s, got none"),
    (("pool.csv", *MODEL, "--columns", "columns.toml", "--columns", "time=lf"), "expected a time after"),
    (("pool.csv", *MODEL, "--columns", "columns.toml", "--channels", "depth"), "unknown channel of pool.csv 'depth'"),
    (("pool.csv", *MODEL, "--columns", "columns.toml", "--bounds", "drag_coefficient=3:1"), "LOW < HIGH"),
    (("pool.csv", *MODEL, "--columns", "columns.toml", "--bounds", "drag_coefficient=x"), "KEY=A:B"),
    (("pool.csv", *MODEL, "--columns", "columns.toml", "--prior", "gravity_m_s2=9:1"), "unknown key of --prior"),
    (("pool.csv", *MODEL, "--write", "fit.json"), "--write fit.json: expected a name that ends in .toml"),
    (("pool.csv", *MODEL, "-o", "none/fit.html"), "there is no folder 'none'"),
    (("pool.csv", *MODEL, "--write", "columns.toml", "--columns", "columns.toml"), "a new name, or an existing preset"),
    (("pool.csv", *MODEL, "--write", "new.toml", "--columns", "columns.toml", "--fit", "chains"), "--fit chains"),
    ((), "expected a log or a table, got none"),
    (("pool.csv", *MODEL, "--columns", "columns.toml", "--columns", "velocity[0]=note"),
     "pool.csv: row 2: note: expected a number or nothing, got 'swim'"),
    (("pool.csv", *MODEL, "--bounds", "drag_coefficient=1:3", "--set", "drag_coefficient=5"),
     "--set drag_coefficient=5: expected a start of the search within --bounds drag_coefficient=1:3"),
    (("pool.csv", *MODEL, "--prior", "drag_coefficient=1:3", "--set", "drag_coefficient=5"), "remove one of the two"),
    (("pool.csv", *MODEL, "--columns", "columns.toml", "--prior", "drag_coefficient=5:1", "--bounds",
      "drag_coefficient=1:3"), "--prior drag_coefficient: expected a mean within --bounds 1:3, got 5"),
])  # fmt: skip
def test_refusals(table: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], expected: str) -> None:
    values = arguments if "--fit" in arguments else (*arguments, "--fit", "drag_coefficient")
    before = Path("columns.toml").read_text()
    status, out, err = identify(capsys, *values)
    assert (status, out) == (2, "")
    assert expected in err
    assert "Traceback" not in err
    assert Path("columns.toml").read_text() == before


@pytest.mark.full
def test_logs_of_a_run_and_their_tables_give_the_same(tmp_path: Path) -> None:
    """With sensors: the log itself, and the table that `rtmms log csv` makes of it."""
    done = shell(tmp_path, "run", "manta", "--controller", "gait:amplitude_deg=30", "--mode", "lockstep",
                 "--dt", "0.01",
                 "--duration", "5", "--log", "run.mcap", "--set", "chains=4", "--set", "drag_coefficient=1.8",
                 "--sensors", "typical", "--quiet")  # fmt: skip
    assert done.status == 0, done.err
    assert shell(tmp_path, "log", "csv", "run.mcap", "-o", "run.csv").status == 0
    arguments = (
        "--fit",
        "drag_coefficient,joint_damping_n_m_s",
        "--json",
        "--starts",
        "1",
        "--set",
        "drag_coefficient=1.5",
    )
    whole = shell(tmp_path, "identify", "run.mcap", *arguments).report
    cells = shell(tmp_path, "identify", "run.csv", *MODEL, "--sensors", "typical",
                  *arguments).report  # fmt: skip
    assert whole["parameters"]["drag_coefficient"]["start"] == 1.5
    for name, item in whole["parameters"].items():
        truth = {"drag_coefficient": 1.8, "joint_damping_n_m_s": 0.1}[name]
        assert item["value"] == pytest.approx(truth, abs=4.0 * item["standard_error"])
        assert cells["parameters"][name]["value"] == pytest.approx(item["value"], rel=1e-9)
    base = ("--mode", "lockstep", "--duration", "0.5", "--quiet", "--log")
    assert shell(tmp_path, "run", "manta", "--controller", "gait:amplitude_deg=0", *base, "still.mcap").status == 0
    refused = shell(tmp_path, "identify", "still.mcap", *arguments)
    assert refused.status == 2
    assert "no excitation" in refused.err
    assert shell(tmp_path, "run", "pendulum", "--controller", "swing", *base, "other.mcap").status == 0
    refused = shell(tmp_path, "identify", "run.mcap", "other.mcap", "--fit", "drag_coefficient")
    assert refused.status == 2
    assert "is of robot 'pendulum', and run.mcap of 'manta'" in refused.err


EVIL = "a\nx = 1\r\x1b[2J\u202e<b>.csv"


def test_a_name_of_others_is_text_wherever_it_goes(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table.rename(EVIL)
    arguments = (EVIL, *MODEL, "--columns", "columns.toml", "--at-rest", "--fit", "drag_coefficient", "--starts", "1")
    status, out, err = identify(capsys, *arguments, "--write", "fitted.toml", "-o", "fit.html")
    assert status == 0, err
    text, page = Path("fitted.toml").read_text(), Path("fit.html").read_text()
    assert tomllib.loads(text).keys() == {"chains", "drag_coefficient"}
    for message in (out, err, text, page):
        assert not set("\x1b\r\u202e") & set(message)
    assert "<b>" not in page
    assert text.count("\n") == 5
    status, _, err = identify(capsys, f"none{EVIL}", *MODEL, "--fit", "drag_coefficient")
    assert (status, err.count("\n")) == (2, 1)


def test_a_preset_that_was_edited_is_not_overwritten(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = (
        "pool.csv",
        *MODEL,
        "--columns",
        "columns.toml",
        "--at-rest",
        "--fit",
        "drag_coefficient",
        "--starts",
        "1",
        "--write",
        "fitted.toml",
    )
    assert identify(capsys, *arguments)[0] == 0
    first = Path("fitted.toml").read_text()
    assert identify(capsys, *arguments)[0] == 0, "its own file, unedited, is written anew"
    edited = first.replace("chains = 4", "chains = 6")
    Path("fitted.toml").write_text(edited)
    status, _, err = identify(capsys, *arguments)
    assert status == 2
    assert "--write fitted.toml: the file was edited" in err
    assert "--force overwrites" in err
    assert Path("fitted.toml").read_text() == edited
    assert identify(capsys, *arguments, "--force")[0] == 0
    assert Path("fitted.toml").read_text() == first
