"""Whether the tests would see a wrong kernel: mutants of the physics, one at a time, and the tests that must kill them.

A mutant differs from the source in one place: a sign, a product made a sum, a dropped term, an index, a constant, two
arguments exchanged. Each lives in a copy of the tree. The tests run without the compiler, which is quicker than to
compile each mutant; those that take minutes then are left out. What survives the first tests meets the second,
slower ones.
"""

from __future__ import annotations

import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from rtmms.errors import ModelError, UnknownNameError

ROOT = Path(__file__).resolve().parents[1]
TREES = ("rtmms/spatial.py", "rtmms/dynamics", "rtmms/fluids", "rtmms/model", "rtmms/mechanism")
MANTA = ("rtmms/robots/manta/kernels", "rtmms/robots/manta/coupling")
_EEL = "not seconds and not looping and not torque and not servo_takes and not commands and not mirror and not carries"
_FISH = "not couple_is_found and not over_the_wire and not energy_closes"
_FACE = "not it_allows and not blows_up and not no_objects"


def _of_manta(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/robots/manta/test_{name}.py" for name in names)


TESTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "trees": (
        ("tests/fluids", "tests/physics", "tests/mechanism/test_joint_laws.py", "tests/peers/test_peers.py"),
        (
            "tests/mechanism",
            "--deselect=tests/mechanism/test_door.py",
            "tests/robots/test_eel.py",
            "tests/robots/test_fish.py",
            "-k",
            f"{_EEL} and {_FISH}",
        ),
    ),
    "manta": (
        (
            *_of_manta("peer", "support", "rods", "mechanism", "numbers", "face"),
            *("tests/physics/test_rigid_body.py", "-k", _FACE),
        ),
        (*_of_manta("order", "servo", "identities"), "-k", "not symmetric_gait"),
    ),
}
"""Words for pytest, of each room and stage."""
LIMIT_S = 900.0
LEAST = 0.97
_SWAPPED: dict[type[ast.operator], str] = {ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.Div: "*", ast.MatMult: "+"}
_SYMBOLS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.MatMult: "@",
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """file, line: of the change;  what: the words before and after;  text: of the whole file with it"""

    file: str
    line: int
    what: str
    text: str


def mutants(path: Path) -> Iterator[Mutant]:
    """All of one file, in the order of the source. Texts in docstrings, hints and messages are left alone."""
    source = path.read_text(encoding="utf-8")
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode()))
    data = source.encode()
    name = str(path.relative_to(ROOT))

    def piece(node: ast.AST) -> tuple[int, int]:
        at: Any = node
        return starts[at.lineno - 1] + at.col_offset, starts[at.end_lineno - 1] + at.end_col_offset

    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef):
            continue
        for statement in function.body:
            for node in ast.walk(statement):
                if isinstance(node, (ast.FunctionDef, ast.Raise, ast.JoinedStr)):
                    continue
                for begin, end, new in _changes(node, data, piece):
                    old = data[begin:end].decode()
                    text = (data[:begin] + new.encode() + data[end:]).decode()
                    try:
                        ast.parse(text)
                    except SyntaxError:
                        continue
                    row = int(getattr(node, "lineno", 0))
                    yield Mutant(name, row, f"{old} -> {new}", text)


def _changes(node: ast.AST, data: bytes, piece: Any) -> Iterator[tuple[int, int, str]]:
    """(begin, end, new text) of each change of one node."""
    if isinstance(node, ast.BinOp):
        left, right = piece(node.left), piece(node.right)
        swapped = _SWAPPED.get(type(node.op))
        text = isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
        if swapped is not None and not text:
            between = data[left[1] : right[0]].decode()
            symbol = _SYMBOLS[type(node.op)]
            if between.count(symbol) == 1:
                yield left[1], right[0], between.replace(symbol, swapped)
        if isinstance(node.op, (ast.Add, ast.Sub)):
            yield left[1], piece(node)[1], ""  # the second term is gone
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        begin, _ = piece(node)
        yield begin, begin + 1, "+"
    elif isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.Add, ast.Sub)):
        begin, end = piece(node.target)[1], piece(node.value)[0]
        symbol = "+=" if isinstance(node.op, ast.Add) else "-="
        yield begin, end, data[begin:end].decode().replace(symbol, "-=" if symbol == "+=" else "+=")
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int):
        begin, end = piece(node.slice)
        yield begin, end, str(node.slice.value - 1 if node.slice.value else 1)
    elif isinstance(node, ast.Constant) and isinstance(node.value, float):
        begin, end = piece(node)
        yield begin, end, repr(node.value * 1.5 + 0.125)
    elif isinstance(node, ast.Call) and len(node.args) >= 2 and not any(isinstance(a, ast.Starred) for a in node.args):
        (b0, e0), (b1, e1) = piece(node.args[0]), piece(node.args[1])
        first, second = data[b0:e0].decode(), data[b1:e1].decode()
        if first != second and isinstance(node.args[0], ast.Name) and isinstance(node.args[1], ast.Name):
            yield b0, e1, second + data[e0:b1].decode() + first


def files(places: Sequence[str]) -> list[Path]:
    """The sources below these places."""
    found: list[Path] = []
    for place in places:
        path = ROOT / place
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return [path for path in found if path.name != "__init__.py"]


def tried(mutant: Mutant, tree: Path, room: str) -> tuple[str, float]:
    """('killed' | 'survived' | 'timeout', s): the tests of a room on a copy of the tree with one mutant in it."""
    target = tree / mutant.file
    before = target.read_text(encoding="utf-8")
    target.write_text(mutant.text, encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(tree), "NUMBA_DISABLE_JIT": "1"}
    words = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider"]
    words += ["-W", "ignore::RuntimeWarning"]  # numpy's, of overflows that compiled code keeps quiet about
    begun, verdict = time.monotonic(), "survived"
    try:
        for tests in TESTS[room]:
            done = subprocess.run([*words, *tests], cwd=tree, env=environment, capture_output=True, timeout=LIMIT_S)
            if done.returncode:
                verdict = "killed"
                break
    except subprocess.TimeoutExpired:
        verdict = "timeout"
    finally:
        target.write_text(before, encoding="utf-8")
    return verdict, time.monotonic() - begun


def main(as_json: bool = False, room: str = "trees", count: int = 30, seed: int = 0, again: str = "") -> int:
    """Mutants of the kernels of a room ('trees', 'manta'), drawn at random, and how many of them the tests kill.

    again is a report (--json) of before: of the same drawing, only those that survived are tried. 1 where fewer than
    LEAST of them are killed, or where the tests fail as they are."""
    if room not in TESTS:
        raise UnknownNameError("room", room, TESTS)
    pool = [one for path in files(TREES if room == "trees" else MANTA) for one in mutants(path)]
    drawn = random.Random(seed).sample(pool, min(count, len(pool)))
    survivors: list[dict[str, Any]] = []
    before = drawn
    if again:
        left = {
            (one["place"], one["change"]) for one in json.loads(Path(again).read_text(encoding="utf-8"))["survivors"]
        }
        before = [one for one in drawn if (f"{one.file}:{one.line}", one.what) in left]
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder) / "tree"
        left_out = shutil.ignore_patterns(".git", ".venv", "build", "*.egg-info", "__pycache__", ".mypy_cache")
        shutil.copytree(ROOT, tree, symlinks=True, ignore=left_out)
        first = pool[0]
        untouched = Mutant(first.file, 0, "none", (ROOT / first.file).read_text(encoding="utf-8"))
        if tried(untouched, tree, room)[0] != "survived":
            raise ModelError(f"bench mutants: the tests of {room} fail without a mutant")
        for k, mutant in enumerate(before):
            verdict, seconds = tried(mutant, tree, room)
            place = f"{mutant.file}:{mutant.line}: {' '.join(mutant.what.split())}"
            click.echo(f"{k + 1}/{len(before)} {verdict} in {seconds:.0f} s  {place}", err=True)
            if verdict == "survived":
                survivors.append({"place": f"{mutant.file}:{mutant.line}", "change": mutant.what})
    killed = len(drawn) - len(survivors)
    report = {
        "room": room,
        "of": len(pool),
        "tried": len(drawn),
        "killed": killed,
        "seed": seed,
        "survivors": survivors,
    }
    if as_json:
        click.echo(json.dumps(report))
    else:
        click.echo(f"{killed} of {len(drawn)} killed ({100 * killed / len(drawn):.1f} %), of {len(pool)} there are")
        for one in survivors:
            click.echo(f"  survived  {one['place']}: {one['change']}")
    return int(killed < LEAST * len(drawn))
