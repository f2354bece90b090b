"""rtmms bench fuzz: finds what is to be found, the same again from the same seed; and our own parsers stand."""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rtmms.errors import ModelError, UnknownNameError
from rtmms_benchmarks import fuzz
from rtmms_benchmarks.mutation import Mutations
from rtmms_benchmarks.work import Lines, excess

TEST_PARSERS = {"fragile", "sluggish", "fatal", "endless", "nothing", "unequipped"}
OURS = ["codec", "door", "pattern", "peer", "step", "welcome", "zap", "zmtp"]


@pytest.fixture(autouse=True)
def test_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "plugins"))


@pytest.mark.full
@pytest.mark.parametrize("frames", [12_000])
def test_frames_into_each_parser_of_the_wire(frames: int, capsys: pytest.CaptureFixture[str]) -> None:
    status = fuzz.main(as_json=True, frames=frames, what=",".join(OURS), seed=1, processes=2)
    result = json.loads(capsys.readouterr().out)
    assert [one["findings"] for one in result["parsers"].values()] == [[]] * len(OURS)
    assert (status, result["findings"]) == (0, 0)
    assert {one["frames"] for one in result["parsers"].values()} == {frames}
    kinds = {name: one["outcomes"] for name, one in result["parsers"].items()}
    # what is almost right must also be right at times, or nothing behind the first check is ever reached
    assert {"taken", "seq", "not_claimed", "not_finite", "unknown_actuator", "too_early", "too_late"} <= set(
        kinds["step"]
    )
    assert {"taken", "protocol", "token", "unknown_actuator", "unknown_output", "wrong_type"} <= set(kinds["door"])
    assert {"message", "garbled", "unknown_type"} == set(kinds["codec"])
    assert {"state, clamped False", "state, clamped True", "bye", "error", "wrong_type"} <= set(kinds["peer"])
    assert {"all that was granted", "welcome", "wrong_type"} <= set(kinds["welcome"])
    assert set(kinds["zmtp"]) == {"message", "garbled", "oversize", "ready", "closed", "more to come"}
    assert set(kinds["zap"]) == {"asked", "no question"}
    # counted, and within the bound: 1000 lines and 20 a byte
    assert all(one["weighed"] >= frames // 16 for one in result["parsers"].values())
    assert all(one["most_lines"] < 1000 + 20 * one["most_lines_bytes"] for one in result["parsers"].values())
    assert all(one["grown_kib"] < 16 * 1024 for one in result["parsers"].values())


def test_a_fault_is_found_with_the_frame_that_shows_it() -> None:
    result = fuzz.fuzz(fuzz.Task("fragile", 500, "0"))
    assert result.outcomes["raised ValueError"] > 0
    assert result.outcomes["read"] > 0
    assert result.findings[0]["what"] == "ValueError: no bracket"
    assert b"]" not in bytes.fromhex(result.findings[0]["frame"])
    assert len(result.findings) <= 20


def test_one_that_takes_long_is_found_by_its_lines() -> None:
    """The samples are within the bound: the slow ones are gone on from until one is not."""
    read, samples = fuzz.load("sluggish")
    lines = Lines()
    counts = []
    for sample in (*samples, samples[0] * 2):
        assert lines.call(read, sample) == "read"
        counts.append(lines.count)
    assert counts[0] == pytest.approx(2 * 4 * 64, abs=30)
    assert counts[1] == pytest.approx(4 * counts[0], rel=0.05)
    assert max(excess(count, 64) for count in counts[:1]) < 0
    result = fuzz.fuzz(fuzz.Task("sluggish", 4000, "0"))
    assert result.weighed == 250
    assert excess(result.most_lines, result.most_lines_bytes) > 0
    assert all("lines for" in finding["what"] for finding in result.findings)
    assert 0 < len(result.findings) <= 20


def test_lines_are_counted_where_a_parser_raises_and_the_tracer_before_is_back() -> None:
    def read(frame: bytes) -> str:
        raise ValueError(frame)

    before, lines = sys.gettrace(), Lines()
    with pytest.raises(ValueError, match="x"):
        lines.call(read, b"x")
    assert (lines.count, sys.gettrace()) == (1, before)


@pytest.mark.full
@pytest.mark.parametrize(("what", "told"), [("fatal", "ended with 7"), ("endless", "no end within")])
def test_a_process_that_dies_or_hangs_is_told_with_its_frame(
    what: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz, "_HANG_S", 3.0)
    result = fuzz.measure([what], 1000, 0, 1)
    (finding,) = result["parsers"][what]["findings"]
    assert told in finding["what"]
    frame = bytes.fromhex(finding["frame"])
    assert len(frame) == 0 if what == "fatal" else len(frame) > 30


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="PDEATHSIG")
def test_workers_end_with_the_fuzzer_that_is_killed() -> None:
    def children(pid: int) -> set[str]:
        with contextlib.suppress(FileNotFoundError):
            return set(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        return set()

    def alive(pid: str) -> bool:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
        return False

    program = "from rtmms_benchmarks import fuzz; fuzz.measure(['zap'], 10**9, 0, 1)"
    guarded = f"if __name__ == '__main__': {program}"
    process = subprocess.Popen([sys.executable, "-c", guarded])
    try:
        while not (workers := children(process.pid)):
            time.sleep(0.01)
        time.sleep(1.5)  # its worker has begun
        workers |= children(process.pid)
    finally:
        process.kill()
        process.wait()
    for _ in range(500):
        if not any(map(alive, workers)):
            break
        time.sleep(0.01)
    assert not any(map(alive, workers))


def test_long_frames_are_weighed_but_not_gone_on_from() -> None:
    result, source = fuzz.Result("one"), Mutations([b"sample"], "0")
    assert fuzz._weigh(result, 4000, bytes(600), source, 1.0) == 1.0
    assert result.most_lines == 4000
    assert fuzz._weigh(result, 900, bytes(60), source, 1.0) > 1.0
    assert source._samples == [b"sample", bytes(60)]


def test_the_same_seed_gives_the_same_frames() -> None:
    one, two, other = (Mutations([b"\x81\xa1a\x01", b"plain"], seed) for seed in ("a", "a", "b"))
    frames = [one.frame() for _ in range(300)]
    assert frames == [two.frame() for _ in range(300)]
    assert frames != [other.frame() for _ in range(300)]
    assert len(set(frames)) > 150


def test_frames_are_near_the_samples_and_of_every_kind() -> None:
    import msgpack

    sample = {"type": "x", "list": [1, 2.0, 3], "map": {"a": None}}
    source = Mutations([msgpack.packb(sample)], "0")
    read, lengths = 0, set()
    for _ in range(3000):
        frame = source.frame()
        lengths.add(len(frame))
        try:
            tree = msgpack.unpackb(frame, strict_map_key=False)
        except Exception:
            continue
        read += isinstance(tree, dict)
    assert 0.3 * 3000 < read < 0.9 * 3000
    assert min(lengths) == 0
    assert max(lengths) > 300


def test_changes_do_not_touch_the_samples() -> None:
    source = Mutations([b'{"a": [1, 2, {"b": 3}]}'], "0")
    before = json.dumps(source._trees[0][0])
    for _ in range(2000):
        source._changed(source._trees[0][0])
    assert json.dumps(source._trees[0][0]) == before
    assert random.Random("0").random() == random.Random("0").random()


@pytest.mark.parametrize("arguments", [{"what": "codex"}, {"what": "codec", "frames": 0}, {"what": ""}])
def test_wrong_words_are_refused(arguments: dict[str, str]) -> None:
    with pytest.raises(ModelError):
        fuzz.main(**arguments)  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="did you mean codec"):
        fuzz.main(what="codex")


@pytest.mark.full
def test_parsers_of_extras_that_are_not_installed_are_skipped_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    status = fuzz.main(as_json=True, frames=200, what="codec,unequipped", processes=1)
    said = capsys.readouterr()
    result = json.loads(said.out)
    assert (status, list(result["parsers"])) == (0, ["codec"])
    assert result["skipped"] == {"unequipped": "a_module_that_nobody_has"}
    assert "unequipped: skipped, it needs the module a_module_that_nobody_has" in said.err
    with pytest.raises(ModelError, match="none of these parsers"):
        fuzz.main(what="unequipped")


def test_what_is_no_parser_is_named() -> None:
    with pytest.raises(ModelError, match=r"parser 'nothing': expected \(read, samples\)"):
        fuzz.load("nothing")


def test_the_kept_result_is_of_a_million_frames_into_each_parser_and_found_nothing() -> None:
    kept = json.loads((Path(fuzz.__file__).parent / "results" / "fuzz.json").read_text())
    assert all(one["frames"] >= 1_000_000 for one in kept["parsers"].values())
    assert kept["findings"] == 0
    assert set(fuzz.parsers()) - TEST_PARSERS <= set(kept["parsers"])
    assert len(kept["parsers"]["step"]["outcomes"]) > 5
