"""`rtmms bench plant` in a tiny setting: every figure is there and makes sense; no time is judged."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from rtmms_benchmarks import plant

TINY = plant.Effort(
    blocks=2,
    steps=50,
    plain_steps=2,
    chains=(10, 32, 64),
    links=(1, 2, 3),
    growth_block_us=100.0,
    growth_repeats=1,
    free_s=0.2,
    free_gait_s=0.2,
)


@pytest.mark.full  # plain Python steps the manta beside the compiled one
def test_all_figures_are_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert plant.main(True, TINY) == 0
    out = json.loads(capsys.readouterr().out)
    assert {"commit", "machine", "load_before", "load_after", "effort", "wall_s"} <= set(out)
    assert out["effort"]["plain_steps"] == 2
    step = out["step"]
    for kind in ("compiled_us", "python_us", "plain_us"):
        assert step[kind]["blocks"] == 2
        assert 0.0 < step[kind]["best"] <= step[kind]["median"]
    for kind in ("python_us", "plain_us"):
        assert step[kind]["p50"] <= step[kind]["p99"] <= step[kind]["p999"] <= step[kind]["max"]
    assert step["largest_difference"]["relative"] < 1e-9, "the two do not compute the same step"
    assert step["plain_over_compiled"] > 0.0
    assert set(out["growth"]["chains"]) == {"10", "32", "64"}
    assert set(out["growth"]["links"]) == {"1", "2", "3"}
    assert math.isfinite(out["growth"]["exponent_chains"])
    assert math.isfinite(out["growth"]["exponent_links"])
    assert out["free"]["none"]["real_time_factor"] > 0.0
    assert out["free"]["gait"]["commands_applied"] > 0
    text = plant.table(out)
    assert "plain Python" in text
    assert "not measured" not in text


def test_the_compiled_loop_is_the_plant_s_step() -> None:
    alone, called = plant.load(), plant.load()
    commands = plant.gait(1e-3, 20)
    plant.compiled_loop(alone)(commands)
    for row in commands:
        called.step(row)
    assert alone.snapshot() == called.snapshot()
    assert alone.observe()["rod_angle"].any()


def test_a_failing_step_is_reported() -> None:
    plant_ = plant.load()
    commands = plant.gait(1e-3, 3)
    commands[1, 2] = math.nan
    with pytest.raises(RuntimeError, match="failed at step 1"):
        plant.compiled_loop(plant_)(commands)


def test_the_readme_quotes_the_result_that_is_kept() -> None:
    root = Path(__file__).resolve().parents[2]
    out = json.loads((root / "benchmarks" / "results" / "plant.json").read_text())
    readme = (root / "README.md").read_text()
    step, free = out["step"], out["free"]
    quoted = [
        f"{step['compiled_us']['median']:.1f} us; {step['python_us']['median']:.1f} us",
        f"{step['plain_us']['median'] / 1e3:.1f} ms",
        f"{round(step['plain_over_compiled'], -2):.0f} times the compiled",
        f"{round(step['plain_over_python'], -2):.0f} times `plant.step`",
        f"{out['ten_ms']['ten_steps_of_1_ms_us']:.0f} us; {out['ten_ms']['one_step_of_10_ms_us']:.1f} us",
        f"{free['none']['real_time_factor']:.0f} x; {free['gait']['real_time_factor']:.0f} x",
        f"| {out['growth']['exponent_chains']:.2f}; {out['growth']['exponent_links']:.2f} |",
    ]
    assert [text for text in quoted if text not in readme] == []
