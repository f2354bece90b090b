"""`rtmms bench attacks`: hostile files, words and environments into the commands that take them, and how each ends.

Each case runs a command of rtmms in a process of its own, with a bound on time and memory. A case ends well when the
command took the input as data (exit status 0) or refused it in a sentence (1 or 2). A finding is a traceback, a process
that dies or takes longer than `--limit`, control characters on the terminal, a file that changed and that the command
had not to write, or more memory than a file of that size may take.

The cases of a family come from lists of hostile values by a seed: the same seed gives the same cases again.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from rtmms.errors import ModelError, UnknownNameError

from . import setting
from .attack_arguments import arguments
from .attack_cases import FILES, Case
from .attack_fmus import fmus
from .attack_gym import gym

FAMILIES = {**FILES, "fmus": fmus, "arguments": arguments, "gym": gym}

MOST_BYTES = 3 << 30
"""Of memory that a case may take."""
KILLED_S = 6
"""Times the limit after which a case is killed."""
_TELL = 10


@dataclass
class Family:
    """What became of the cases of a family."""

    cases: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    slowest_s: float = 0.0
    findings: list[str] = field(default_factory=list)


def run(
    as_json: bool = False, only: str = "", cases: int = 200, seed: int = 0, limit: float = 10.0, keep: bool = False
) -> int:
    """The command. Exit status 1 where there is a finding.

    only   families, parted by commas;  cases   of each family at most;  limit   s that a case may take
    keep   leave the folder of a finding where it is
    """
    wanted = [word for word in only.split(",") if word] or list(FAMILIES)
    for name in wanted:
        if name not in FAMILIES:
            raise UnknownNameError("family", name, FAMILIES)
    if not limit > 0.0 or cases < 1:
        raise ModelError(f"bench attacks: expected cases >= 1 and limit > 0, got {cases} and {limit}")
    found: dict[str, Family] = {}
    with tempfile.TemporaryDirectory(prefix="rtmms-attacks-") as place:
        for name in wanted:
            found[name] = family = Family()
            source = Path(place) / name
            source.mkdir()
            for number, case in enumerate(FAMILIES[name](source, random.Random(f"{seed} {name}"), cases)):
                folder = Path(place) / f"{name}-{number}"
                folder.mkdir()
                before = len(family.findings)
                _try(case, folder, family, limit, keep)
                for text in family.findings[before:]:
                    print(f"\r{name}: {text}", file=sys.stderr, flush=True)
                if not as_json and number % _TELL == 0:
                    print(f"\r{name}: {number + 1} cases", end="", file=sys.stderr, flush=True)
            if not as_json:
                print(f"\r{name}: {family.cases} cases, {len(family.findings)} findings", file=sys.stderr, flush=True)
    told = {
        "machine": setting.machine(), "commit": setting.commit(), "load": setting.load(), "at": setting.now(),
        "seed": seed, "limit_s": limit,
        "families": {
            name: {"cases": one.cases, "outcomes": dict(one.outcomes), "slowest_s": round(one.slowest_s, 2),
                   "findings": one.findings} for name, one in found.items()
        },
    }  # fmt: skip
    if as_json:
        print(json.dumps(told))
    else:
        for name, one in found.items():
            print(f"{name:<12} {one.cases:>6} {dict(one.outcomes)}  slowest {one.slowest_s:.1f} s")
            for text in one.findings:
                print(f"  {text}")
    return int(any(one.findings for one in found.values()))


def _try(case: Case, folder: Path, family: Family, limit: float, keep: bool) -> None:
    case.prepare(folder)
    before = _bytes_of(folder)
    family.cases += 1
    status, wall, peak, said = _taken(case, folder, limit)
    family.slowest_s = max(family.slowest_s, wall)
    why = _judged(case, status, wall, peak, said, limit) or _touched(before, folder, case.writes)
    family.outcomes["finding" if why else {0: "taken"}.get(status, "refused")] += 1
    if why:
        family.findings.append(f"{case.name}: {why}")
    if why and keep:
        kept = Path(tempfile.mkdtemp(prefix="rtmms-finding-"))
        shutil.copytree(folder, kept / "case", symlinks=True)
        (kept / "said.txt").write_bytes(said)
        family.findings[-1] += f" ({kept})"
    shutil.rmtree(folder, ignore_errors=True)


def _taken(case: Case, folder: Path, limit: float) -> tuple[int, float, int, bytes]:
    """Exit status (< 0: of a signal), wall s, peak bytes and what was said, of a fork of this process."""
    said = tempfile.TemporaryFile()  # noqa: SIM115
    begun = time.monotonic()
    child = os.fork()
    if child == 0:
        _within(case, folder, said.fileno(), limit)
    _, word, used = os.wait4(child, 0)
    said.seek(0)
    with said:
        return os.waitstatus_to_exitcode(word), time.monotonic() - begun, used.ru_maxrss << 10, said.read()


def _within(case: Case, folder: Path, out: int, limit: float) -> None:
    """The child: it ends here."""
    import signal

    status = 70
    try:
        os.setsid()
        os.chdir(folder)
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.environ.update({"RTMMS_QUIET": "1", "XDG_RUNTIME_DIR": str(folder)} | dict(case.environment))
        signal.setitimer(signal.ITIMER_REAL, KILLED_S * limit)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_AS, (2 * MOST_BYTES + (8 << 30),) * 2)
        try:
            status = case.act()
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else 1
        except BaseException:
            import traceback

            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


def _judged(case: Case, status: int, wall: float, peak: int, said: bytes, limit: float) -> str:
    text = said.decode(errors="replace")
    if status == -14:
        return f"still running after {KILLED_S * limit:g} s"
    if status not in (0, 1, 2) or "Traceback" in text:
        last = next((line for line in reversed(text.splitlines()) if line.strip()), "")
        return f"exit status {status}: {last[:160]!r}"
    if any((ord(one) < 32 and one not in "\n\t\r") or one in "\x7f\x9b" for one in text):
        return f"control characters are printed: {text[:120]!r}"
    if wall > limit:
        return f"took {wall:.1f} s"
    if peak > MOST_BYTES:
        return f"took {peak >> 20} MiB"
    return ""


def _bytes_of(folder: Path) -> dict[str, bytes | str]:
    return {
        str(path.relative_to(folder)): (f"-> {os.readlink(path)}" if path.is_symlink() else path.read_bytes())
        for path in folder.rglob("*") if path.is_symlink() or path.is_file()
    }  # fmt: skip


def _touched(before: dict[str, bytes | str], folder: Path, writes: tuple[str, ...]) -> str:
    after = _bytes_of(folder)
    for name, data in before.items():
        if after.get(name) != data and not name.startswith(writes):
            return f"the file {name} is {'changed' if name in after else 'gone'}"
    return ""
