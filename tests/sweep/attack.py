"""Kills, flipped bits, foreign parts and changed files against sweeps that are resumed: does a table get a wrong row?

    python -m tests.sweep.attack [TRIALS] [SEED]

A trial starts a sweep of a user's own controller, which reads a table, imports a module, and imports another one late.
The sweep is killed at a random instant, its parts are damaged or replaced, its files change, then it is resumed until
it ends. Each table is compared with one that was made in one piece of the same files. POSIX alone: trials are forks.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PLANT = """
import struct
import numpy as np
import rtmms

class Cart:
    def __init__(self, dt: float | None = None, mass_kg: float = 1.0) -> None:
        self.dt, self.mass_kg = 0.02 if dt is None else dt, mass_kg
        self.actuators = (rtmms.Channel("force", "N", lower=-1e3, upper=1e3),)
        self.outputs = (rtmms.Channel("place", "m"), rtmms.Channel("speed", "m/s"))
        self.state = np.zeros(2)
    def reset(self, seed: int = 0) -> None:
        self.state[:] = 0.0
    def step(self, command: np.ndarray) -> None:
        self.state[1] += self.dt * command[0] / self.mass_kg
        self.state[0] += self.dt * self.state[1]
    def observe(self) -> dict[str, np.ndarray]:
        return {"place": np.array(self.state[0]), "speed": np.array(self.state[1])}
    def snapshot(self) -> bytes:
        return struct.pack("<2d", *self.state)
    def restore(self, blob: bytes) -> None:
        self.state[:] = struct.unpack("<2d", blob)
"""
CONTROLLER = """
import rtmms
from gains import GAIN

class Law(rtmms.Controller):
    claim = ("force",)
    def __init__(self, file: str = "g.csv") -> None:
        self.table = float(open(file).read())
    def update(self, state: rtmms.State) -> dict[str, float]:
        late = 0.0
        if state.time >= 4.0:
            import late_gains
            late = late_gains.GAIN
        return {"force": GAIN + self.table + late}
"""
STUDY = """
robot = "plant.py:Cart"
duration = 8.0
[[controller]]
file = "law.py"
[sweep.over]
mass_kg = "0.5:0.8:12"
"""
VARIANTS = {"gains.py": ("GAIN = 1.0\n", "GAIN = 2.0\n"), "late_gains.py": ("GAIN = 10.0\n", "GAIN = 30.0\n"),
            "g.csv": ("100.0\n", "150.0\n")}  # fmt: skip
"""Files of a study, and what stands in them before and after a change."""
OUTPUT = "t.parquet"
MAX_RESUMES = 12


@dataclass
class Findings:
    """What the trials came to.

    wrong      trials whose table has a row that is not of the files as they are
    rows       such rows
    open       trials that did not end by a table
    """

    trials: int = 0
    wrong: int = 0
    rows: int = 0
    open: int = 0
    did: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)


class Trials:
    """Sweeps in forks of this process, which has imported all that they need, but for the user's files."""

    def __init__(self, seed: int) -> None:
        self.random, self.results = random.Random(seed), Findings()
        self.home = Path(tempfile.mkdtemp(prefix="rtmms-tables-"))
        self._oracles: dict[str, list[dict[str, Any]]] = {}
        self._seconds = 0.0

    def close(self) -> None:
        """Remove all files."""
        shutil.rmtree(self.home, ignore_errors=True)

    # --- one sweep

    def warm(self) -> None:
        """Import here what a sweep imports; of the user's files the plant alone."""
        from rtmms.cli.main import rtmms

        folder = self.new_folder("warm", {})
        word = f"{folder / 'plant.py'}:Cart"
        arguments = [
            word,
            "--vary",
            "mass_kg=0.5,0.8",
            "--vary",
            "seed=1,2",
            "--threads",
            "1",
            "--quiet",
            "--duration",
            "1",
        ]
        with contextlib.redirect_stdout(None):
            rtmms.main(["sweep", *arguments, "-o", str(folder / OUTPUT)], standalone_mode=False)

    def start(self, folder: Path) -> int:
        """A sweep in a process of its own; its number."""
        sys.stdout.flush()
        pid = os.fork()
        if pid:
            return pid
        status = 70
        try:
            os.chdir(folder)
            sys.dont_write_bytecode = True  # a file of the same second and length would be taken for the old one
            with (folder / "output.txt").open("a") as output:
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
            from rtmms.cli.main import main

            main(["sweep", "s.toml", "-o", OUTPUT, "--threads", "1", "--quiet"])
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
        finally:
            os._exit(status)

    def finish(self, pid: int) -> int:
        """The exit status; that of a process that a signal ended is negative."""
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def new_folder(self, name: str, files: Mapping[str, str]) -> Path:
        """A folder with a study."""
        folder = self.home / name
        folder.mkdir()
        for file, text in {"s.toml": STUDY, "plant.py": PLANT, "law.py": CONTROLLER, **files}.items():
            (folder / file).write_text(text)
        return folder

    def oracle(self, files: Mapping[str, str]) -> list[dict[str, Any]]:
        """The rows of a table that is made in one piece."""
        import pyarrow.parquet as pq

        key = json.dumps(files, sort_keys=True)
        if key not in self._oracles:
            folder = self.new_folder(f"oracle-{len(self._oracles)}", files)
            begun = time.monotonic()
            status = self.finish(self.start(folder))
            if status != 0:
                output = (folder / "output.txt").read_text()
                raise RuntimeError(f"a sweep that nobody disturbs ends with {status}: {output}")
            self._seconds = time.monotonic() - begun
            self._oracles[key] = pq.read_table(folder / OUTPUT).to_pylist()
        return self._oracles[key]

    # --- one trial

    def trial(self) -> None:
        """Kill, flip, change, resume; then compare."""
        import pyarrow.parquet as pq

        number = self.results.trials
        self.results.trials += 1
        files = {name: texts[0] for name, texts in VARIANTS.items()}
        self.oracle(files)
        folder = self.new_folder(f"trial-{number}", files)
        story: list[str] = []
        self.killed(folder, story)
        for _ in range(self.random.randint(0, 2)):
            self.damaged(folder, story)
        if self.random.random() < 0.6:
            name = self.random.choice(list(VARIANTS))
            files[name] = VARIANTS[name][1]
            (folder / name).write_text(files[name])
            story.append(f"change {name}")
        if self.random.random() < 0.3:
            self.killed(folder, story)
            self.damaged(folder, story)
        expected = [self.oracle(files)]
        if self.random.random() < 0.3:  # while it runs
            files = dict(files)
            name = self.random.choice(list(VARIANTS))
            files[name] = VARIANTS[name][files[name] == VARIANTS[name][0]]
            expected.append(self.oracle(files))  # the table of before the change, or that of after
            pid = self.start(folder)
            time.sleep(self.random.random() * self._seconds)
            (folder / name).write_text(files[name])
            story.append(f"change {name} while it runs")
            if self.finish(pid) == 0:
                self.compare(number, pq.read_table(folder / OUTPUT).to_pylist(), expected, story)
                shutil.rmtree(folder)
                return
            expected = expected[1:]
        for _ in range(MAX_RESUMES):
            if self.finish(self.start(folder)) == 0:
                break
        else:
            self.results.open += 1
            output = (folder / "output.txt").read_text()[-300:]
            self.results.examples.append(f"{number}: no table: {', '.join(story)}: {output}")
            return
        self.compare(number, pq.read_table(folder / OUTPUT).to_pylist(), expected, story)
        shutil.rmtree(folder)

    def killed(self, folder: Path, story: list[str]) -> None:
        """A sweep, killed at a random instant."""
        pid = self.start(folder)
        time.sleep(self.random.random() * self._seconds)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        self.finish(pid)
        story.append("kill")

    def damaged(self, folder: Path, story: list[str]) -> None:
        """Something happens to the parts."""
        parts = sorted((folder / f"{OUTPUT}.parts").glob("part-*"))
        (folder / OUTPUT).unlink(missing_ok=True)
        if not parts:
            return
        part, other = self.random.choice(parts), self.random.choice(parts)
        data = bytearray(part.read_bytes())
        kind = self.random.choice(("flip", "flip", "flip", "cut", "zero", "swap", "another study", "another name"))
        story.append(kind)
        if kind == "flip":
            place = self.random.randrange(8 * len(data))
            data[place // 8] ^= 1 << place % 8
            part.write_bytes(data)
        elif kind == "cut":
            part.write_bytes(data[: self.random.randrange(len(data))])
        elif kind == "zero":
            first = self.random.randrange(len(data))
            data[first : first + 512] = bytes(len(data[first : first + 512]))
            part.write_bytes(data)
        elif kind == "swap":
            both = part.read_bytes(), other.read_bytes()
            part.write_bytes(both[1])
            other.write_bytes(both[0])
        elif kind == "another study":  # the rows of other files under the names of this study
            self.foreign_parts(folder, keep_names=True)
        else:
            self.foreign_parts(folder, keep_names=False)

    def foreign_parts(self, folder: Path, *, keep_names: bool) -> None:
        """Parts of a sweep of other files into the folder, under the names of its parts, or under their own."""
        files = {name: texts[1] for name, texts in VARIANTS.items()}
        source = self.home / "foreign"
        if not source.exists():
            self.new_folder("foreign", files)
            while not list((source / f"{OUTPUT}.parts").glob("part-*")):
                self.killed(source, [])
        theirs = sorted((source / f"{OUTPUT}.parts").glob("part-*"))
        ours = sorted((folder / f"{OUTPUT}.parts").glob("part-*"))
        for item in theirs:
            name = item.name
            if not keep_names and ours:
                name = self.random.choice(ours).name
            shutil.copy(item, folder / f"{OUTPUT}.parts" / name)

    def compare(
        self, number: int, rows: list[dict[str, Any]], expected: list[list[dict[str, Any]]], story: list[str]
    ) -> None:
        """The table is one of those that are expected, as a whole."""
        self.results.did.update(story)
        if rows in expected:
            return
        self.results.wrong += 1
        wrong = min(sum(a != b for a, b in zip(rows, item, strict=False)) for item in expected)
        self.results.rows += wrong
        self.results.examples.append(f"{number}: {wrong} of {len(rows)} rows: {', '.join(story)}")


def attack(trials: int, seed: int = 0, every: int = 0) -> Findings:
    """So many trials; a line after each so many. What they came to."""
    built = Trials(seed)
    try:
        built.warm()
        for k in range(trials):
            built.trial()
            if every and (k + 1) % every == 0:
                print(f"{k + 1} trials: {built.results.wrong} wrong, {built.results.open} without a table", flush=True)
    finally:
        built.close()
    return built.results


if __name__ == "__main__":
    count, first = (int(word) for word in (*sys.argv[1:], *("500", "0")[len(sys.argv) - 1 :]))
    tally = attack(count, first, 25)
    print(f"{tally.trials} trials: {tally.wrong} with wrong rows ({tally.rows} rows), {tally.open} without a table")
    print(", ".join(f"{what} {often}" for what, often in sorted(tally.did.items())))
    for line in tally.examples[:20]:
        print("  " + line)
    sys.exit(1 if tally.wrong or tally.open else 0)
