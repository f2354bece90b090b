"""Whether the tests would see a wrong kernel: mutants of the physics, one at a time, and the tests that must kill them.

Each test of a room runs once, alone and without the compiler, for the lines that it executes and the time it takes
(`--maps FOLDER` keeps that). A mutant then meets the tests that execute its line, the quickest first, in a fork of a
warm process (mutant_tests.py). A test that fails, or takes longer than `--limit` s there (recording makes it twice as
slow), takes no part.

Why our own: cosmic-ray starts pytest anew for each mutant, which here imports libraries for seconds before
a test of milliseconds; mutmut forks, but wraps each function in a dispatcher, which numba's decorators do not take, and
has no faults of arrays (indices, sizes, dropped terms).
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import IO, Any

from rtmms.errors import ModelError, UnknownNameError
from rtmms.terminal import print_json, print_text

from .mutant_kinds import Mutant, files, mutants
from .setting import commit, machine, now

ROOT = Path(__file__).resolve().parents[1]
ROOMS: dict[str, tuple[str, ...]] = {
    "trees": ("rtmms/spatial.py", "rtmms/dynamics", "rtmms/fluids", "rtmms/model", "rtmms/mechanism"),
    "manta": ("rtmms/robots/manta/kernels", "rtmms/robots/manta/coupling"),
}
_ROBOTS = ("eel", "facing", "fish", "modal_moth", "moth", "signs", "trees", "wheeled")
TESTS: dict[str, tuple[str, ...]] = {
    "trees": (
        *("tests/physics", "tests/peers", "tests/fluids", "tests/mechanism", "tests/locomotion"),
        *(f"tests/robots/test_{name}.py" for name in _ROBOTS),
    ),
    "manta": ("tests/robots/manta", "tests/physics/test_rigid_body.py", "tests/physics/test_fluids.py"),
}
PATIENCE = 5.0
"""A mutant makes a test endless where it takes this many times what it took, and 20 s at the least."""
LEAST = 0.97
Map = dict[str, dict[str, Any]]


class Room:
    """A copy of the tree, its tests, and the warm process that runs them."""

    def __init__(self, name: str, folder: Path, maps: str, limit: float) -> None:
        self.name, self.tree, self._limit = name, folder / "tree", limit
        self._environment = os.environ | {
            "PYTHONPATH": str(self.tree), "PYTHONDONTWRITEBYTECODE": "1", "NUMBA_DISABLE_JIT": "1",
            "OPENBLAS_NUM_THREADS": "1", "RTMMS_QUIET": "1", "MPLBACKEND": "agg",
        }  # fmt: skip
        self._words = [sys.executable, "-m", "pytest", "-q", "-x", "-s", "-n", "0", "-m", "", "-p", "no:cacheprovider"]
        self._words += ["--basetemp", str(folder / f"tests-{name}")]
        self._words += ["-W", "ignore::RuntimeWarning"]  # numpy's, of overflows that compiled code keeps quiet about
        self._start()
        self._map = self._mapped(Path(maps) / f"{name}.json" if maps else None)

    def _start(self) -> None:
        """The process, with all its tests collected."""
        asked, told = os.pipe(), os.pipe()
        self._process = subprocess.Popen(
            [*self._words, "-p", "rtmms_benchmarks.mutant_tests", *TESTS[self.name]],
            cwd=self.tree, env=self._environment | {"RTMMS_MUTANTS_PIPES": f"{asked[0]},{told[1]}"},
            pass_fds=(asked[0], told[1]), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(asked[0])
        os.close(told[1])
        self._requests: IO[str] = os.fdopen(asked[1], "w", buffering=1)
        self._answers: IO[str] = os.fdopen(told[0])
        first = self._heard()
        self._tests: list[str] = first["tests"]
        self._imported = {file: set(lines) for file, lines in first["imported"].items()}

    def _heard(self) -> dict[str, Any]:
        line = self._answers.readline()
        if not line:
            raise ModelError(f"bench mutants: the tests of {self.name} ended; run pytest {' '.join(TESTS[self.name])}")
        return dict(json.loads(line))

    def _ask(self, **words: Any) -> dict[str, Any]:
        print(json.dumps(words), file=self._requests)
        return self._heard()

    def _mapped(self, kept: Path | None) -> Map:
        """Verdict, seconds and lines of each test; from a file those that are as they were."""
        sources = hashlib.sha256(b"".join(path.read_bytes() for path in files(self.tree, ROOMS[self.name]))).hexdigest()
        before: Map = json.loads(kept.read_text(encoding="utf-8")) if kept and kept.exists() else {}
        found: Map = {}
        for k, test in enumerate(self._tests):
            file = self.tree / test.partition("::")[0]
            digest = hashlib.sha256(sources.encode() + file.read_bytes()).hexdigest()
            found[test] = before.get(test, {})
            if found[test].get("digest") != digest:
                found[test] = self._ask(map=test, limit_s=self._limit) | {"digest": digest}
                taking = f"{self.name} {k + 1}/{len(self._tests)} {found[test]['seconds']:.1f} s"
                print_text(f"{taking} {found[test]['verdict']} {test}", err=True)
                if kept and k % 10 == 0:
                    kept.write_text(json.dumps(before | found), encoding="utf-8")
        if kept:
            kept.write_text(json.dumps(found), encoding="utf-8")
        return found

    def left_out(self) -> dict[str, str]:
        """The tests that take no part: 'killed' fail as they are, 'late' take too long."""
        return {test: of["verdict"] for test, of in self._map.items() if of["verdict"] != "survived"}

    def _tests_of(self, mutant: Mutant) -> list[tuple[str, float]]:
        """Those that execute its line, and their limits: by classes of time, in each a file after the other."""
        taken = [
            (test, of["seconds"])
            for test, of in self._map.items()
            if of["verdict"] == "survived" and not mutant.lines().isdisjoint(of["lines"].get(mutant.file, ()))
        ]

        def order(one: tuple[str, float]) -> tuple[int, str, float]:
            return sum(one[1] > edge for edge in (0.1, 0.3, 1.0, 3.0)), one[0].partition("::")[0], one[1]

        return [(test, max(20.0, PATIENCE * seconds)) for test, seconds in sorted(taken, key=order)]

    def tried(self, mutant: Mutant) -> dict[str, Any]:
        """verdict 'killed' | 'late' | 'survived' | 'unreached', by: the test, seconds."""
        tests = self._tests_of(mutant)
        imported = not mutant.lines().isdisjoint(self._imported.get(mutant.file, ()))
        if not tests and not imported:
            return {"verdict": "unreached", "by": "", "seconds": 0.0}
        target, after = self.tree / mutant.file, mutant.text()
        before = target.read_text(encoding="utf-8")
        target.write_text(after, encoding="utf-8")  # for those who import it later, and for other processes
        try:
            if not imported:
                found = self._ask(file=mutant.file, before=before, after=after, tests=tests)
                if found["verdict"] != "fresh":
                    return found
            return self._fresh(tests)
        finally:
            target.write_text(before, encoding="utf-8")

    def _fresh(self, tests: list[tuple[str, float]]) -> dict[str, Any]:
        """In a new process: what runs on import cannot be exchanged afterwards."""
        begun, verdict = time.monotonic(), "killed"
        names = [test for test, _ in tests] or [test for test, of in self._map.items() if of["seconds"] < 0.3]
        try:
            done = subprocess.run(
                [*self._words, *names], cwd=self.tree, env=self._environment, capture_output=True,
                timeout=60.0 + sum(limit for _, limit in tests),
            )  # fmt: skip
            verdict = "killed" if done.returncode else "survived"
        except subprocess.TimeoutExpired:
            verdict = "late"
        return {"verdict": verdict, "by": "a new process", "seconds": time.monotonic() - begun}

    def close(self) -> None:
        self._requests.close()
        self._process.wait()


def _drawn(tree: Path, rooms: list[str], count: int, seed: int) -> tuple[list[tuple[str, Mutant]], int]:
    """(room, mutant) of each, and how many there are to draw from."""
    pool = [(room, one) for room in rooms for path in files(tree, ROOMS[room]) for one in mutants(tree, path)]
    found: list[tuple[str, Mutant]] = []
    for one in random.Random(seed).sample(pool, len(pool)):
        if len(found) == count:
            break
        if one[1].matters():
            found.append(one)
    return found, len(pool)


def main(
    as_json: bool = False, room: str = "", count: int = 30, seed: int = 0, maps: str = "", again: str = "",
    minutes: float = 0.0, limit: float = 10.0,
) -> int:  # fmt: skip
    """Mutants of the kernels of a room ('trees', 'manta', '' for both), drawn at random, and how many the tests kill.

    maps     a folder: which test executes what is kept there, for sources and tests that stay as they are
    again    a report (--json) of before: of the same drawing, only those that survived are tried
    minutes  no further one is begun after that many, 0: no end;  limit  s of a test, see above
    1 where fewer than LEAST of them are killed."""
    if room and room not in ROOMS:
        raise UnknownNameError("room", room, ROOMS)
    setting = {"when": now(), "commit": commit(), "machine": machine()}
    survivors: list[dict[str, Any]] = []
    verdicts, fates = Counter[str](), Counter[str]()
    rooms: dict[str, Room] = {}
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder) / "tree"
        left_out = shutil.ignore_patterns(".git", ".venv", "build", "*.egg-info", "__pycache__", ".mypy_cache")
        shutil.copytree(ROOT, tree, symlinks=True, ignore=left_out)
        drawn, there = _drawn(tree, [room] if room else list(ROOMS), count, seed)
        left: set[tuple[str, str]] | None = None
        if again:
            before = json.loads(Path(again).read_text(encoding="utf-8"))
            left, drawn = {(one["place"], one["change"]) for one in before["survivors"]}, drawn[: before["tried"]]
        for name in dict.fromkeys(of for of, _ in drawn):
            rooms[name] = Room(name, Path(folder), maps, limit)
        begun = time.monotonic()
        for k, (name, mutant) in enumerate(drawn):
            if minutes and time.monotonic() - begun > 60.0 * minutes:
                break
            place, change = f"{mutant.file}:{mutant.line}", " ".join(mutant.what.split())
            if left is not None and (place, change) not in left:
                found: dict[str, Any] = {"verdict": "killed", "by": "before", "seconds": 0.0}
            else:
                found = rooms[name].tried(mutant)
                say = f"{k + 1}/{len(drawn)} {found['verdict']} in {found['seconds']:.1f} s  {place}: {change}"
                print_text(f"{say}  {found['by']}", err=True)
            verdicts[found["verdict"]] += 1
            fates[f"{name} {found['verdict']}"] += 1
            if found["verdict"] in ("survived", "unreached"):
                survivors.append({"place": place, "change": change, "verdict": found["verdict"]})
        for each in rooms.values():
            each.close()
    tried = verdicts.total()
    killed = tried - len(survivors)
    report = setting | {"room": room or "both", "of": there, "tried": tried, "killed": killed, "seed": seed}
    report |= {"verdicts": dict(verdicts), "rooms": dict(fates), "survivors": survivors}
    report["left_out"] = {name: each.left_out() for name, each in rooms.items()}
    if as_json:
        print_json(json.dumps(report, indent=1))
    else:
        print_text(f"{killed} of {tried} killed ({100 * killed / max(tried, 1):.1f} %), of {there} there are")
        for one in survivors:
            print_text(f"  {one['verdict']}  {one['place']}: {one['change']}")
    return int(killed < LEAST * tried)
