"""`rtmms bench loop` and `bench exchange` in a tiny setting: what they report, not how fast."""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from rtmms.base.errors import ModelError
from rtmms.loop.machine import may_raise
from rtmms_benchmarks import exchange, loop, pingpong, yardsticks

linux = pytest.mark.skipif(sys.platform != "linux", reason="real time is set up on Linux only")
permitted = pytest.mark.skipif(not may_raise(80), reason="SCHED_FIFO is not permitted here")


@linux
@permitted
@pytest.mark.full
def test_bench_loop_compares_blocks(capsys, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(loop, "stepping", lambda mode, blocks: 1000.0)
    assert loop.main(True, blocks=1, seconds=1.0, rates="1000", load="idle") == 0
    result = json.loads(capsys.readouterr().out)
    (case,) = result["cases"]
    assert (case["rate_hz"], case["condition"], len(case["blocks"])) == (1000, "idle", 1)
    block = case["blocks"][0]
    assert [block[who]["steps"] for who in loop.LOOPS] == [1000] * 4
    assert all(len(row) == 1 and row[0] > 0 for row in case["phase_us"].values())
    assert sum(block["loop"]["causes"].values()) == block["loop"]["misses"] + block["loop"]["overruns"]
    assert block["datagram"]["steps"] == block["zeromq"]["steps"] == 1000
    for row in filter(None, case["medians_us"].values()):  # None: a yardstick that is not here
        assert 0 <= row["p50"] <= row["p99"] <= row["p999"] <= row["max"]
    assert {"datagram, exchange", "loop, exchange"} <= set(case["medians_us"])
    assert case["ratios"]["exchange_p50"] > 0
    assert set(case["met"]) == {*loop.TARGETS, "unexplained"}
    loop.print_result(result)
    assert "1000 Hz, idle, 1 blocks" in capsys.readouterr().out


@pytest.mark.parametrize(("rates", "load"), [("fast", "idle"), ("", "idle"), ("1000", "busy")])
def test_words_of_bench_loop_that_are_none_are_refused(rates: str, load: str) -> None:
    with pytest.raises(ModelError, match="bench loop: expected --rates"):
        loop.main(rates=rates, load=load)


def test_the_summary_takes_ratios_within_blocks_and_misses_of_all() -> None:
    def row(p50: float) -> dict[str, float]:
        return {"p50": p50, "p99": 2 * p50, "p999": 3 * p50, "max": 4 * p50}

    def block(wake: float, exchange_us: float, misses: int) -> dict[str, object]:
        run = {"wake": row(wake), "exchange": row(exchange_us), "plant": row(3.0), "steps": 1000, "misses": misses,
               "unexplained": misses // 2, "unexplained_overruns": 1, "overruns": 2, "base_rate": 0.01,
               "causes": {"machine": misses, "unknown": 1}}  # fmt: skip
        raw = {"wake": row(10.0), "exchange": row(20.0), "steps": 1000, "misses": 1, "unexplained": 1}
        still = run | {"exchange": row(exchange_us / 2)}
        return {
            "loop": run,
            "steady": run,
            "still": still,
            "four": run,
            "cyclictest": row(10.0),
            "datagram": raw,
            "zeromq": raw,
        }

    result = loop.summary(1000, [block(10.0, 40.0, 0), block(12.0, 60.0, 4), block(30.0, 50.0, 2)])  # type: ignore[list-item]
    assert result["ratios"]["wake_p50"] == pytest.approx(1.2)
    assert result["ratios"]["exchange_p50"] == pytest.approx(2.5)
    assert result["loop_misses"] == {"all": 6, "unexplained": 3, "steps": 3000, "unexplained_percent": 0.1}
    assert result["met"] == {
        "wake_p50": True, "wake_p99": True, "exchange_p50": False, "exchange_p99": False, "compiled_p50": False,
        "compiled_p99": False, "four_p50": True, "unexplained": False,
    }  # fmt: skip
    assert result["ratios"]["compiled_p50"] == pytest.approx(1.25)
    assert result["ratios"]["four_p50"] == pytest.approx(2.0)
    assert result["phase_us"]["still"] == [3.0] * 3
    assert result["causes"] == {"machine": 6, "unknown": 3}


def test_paced_exchanges_skip_what_they_cannot_keep() -> None:
    calls: list[int] = []
    wakes, exchanges, begun = pingpong.paced(lambda: calls.append(1), 1_000_000, 0.02)
    assert len(wakes) == len(exchanges) == len(begun) == 20
    assert len(calls) == 40  # twenty to warm up
    assert all(later > earlier for earlier, later in pairwise(begun))
    assert min(wakes) >= 0


def test_quantiles_are_in_microseconds() -> None:
    assert yardsticks.quantiles([1000] * 99 + [5000]) == pytest.approx(
        {"p50": 1.0, "p99": 1.04, "p999": 4.604, "max": 5.0}, rel=0.02
    )


def test_the_parts_of_an_exchange_add_up_and_belong_to_the_last_one_that_was_reported() -> None:
    stamps = np.zeros((100, 6), np.int64)
    begin = np.arange(100) * 1_000_000 + 1_000_000
    for column, after in ((1, 0), (2, 10_000), (3, 60_000), (4, 63_000), (5, 70_000)):
        stamps[:, column] = begin + after
    stamps[:, 0] = 5_000
    stamps[50, 5] = 0  # missed
    result = exchange.parts(stamps, [begin + 20_000, begin + 35_000])
    assert {part: result[part]["p50"] for part in exchange.PARTS} == pytest.approx(
        {"pack": 5, "send": 10, "to peer": 25, "to plant": 25, "receive": 3, "validate": 7}
    )
    assert result["exchange"]["p50"] == pytest.approx(70)
    assert (result["missed"], result["steps"]) == (1, 90)


@linux
@pytest.mark.full
def test_bench_exchange_names_every_part_of_every_transport(capsys, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert exchange.main(True, steps=300, blocks=1) == 0
    result = json.loads(capsys.readouterr().out)
    assert [(case["transport"], case["controllers"]) for case in result["cases"]] == [
        (transport, count) for transport in ("ipc", "tcp", "libzmq", "curve") for count in (1, 4)
    ]
    for case in result["cases"]:
        assert set(exchange.PARTS) < set(case["us"])
        assert 0 <= case["us"]["missed"] <= case["us"]["steps"] == 270
    exchange.print_result(result)
    assert "curve, 4 controllers" in capsys.readouterr().out
