"""Mutants of a source: the same text with one thing wrong in it.

A sign, a product made a sum, a dropped term, an index, a constant, two arguments exchanged. Those that cannot matter
are left out: the same bytecode, what is done to an added 0, or arguments that a function takes in any order.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ANY_ORDER = frozenset({"max", "min", "maximum", "minimum", "hypot", "add", "multiply", "fmax", "fmin"})
"""Functions of two arguments, by their last name, that give the same with them exchanged."""
_SWAPPED: dict[type[ast.operator], str] = {ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.Div: "*", ast.MatMult: "+"}
_SYMBOLS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.MatMult: "@",
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """root: of the tree;  file, line: of the change;  what: the words before and after;  begin, end, new: bytes that
    become others"""

    root: Path
    file: str
    line: int
    what: str
    begin: int
    end: int
    new: str

    def text(self) -> str:
        """Of the whole file with it."""
        data = (self.root / self.file).read_bytes()
        return (data[: self.begin] + self.new.encode() + data[self.end :]).decode()

    def lines(self) -> set[int]:
        """Those of the statement's words that change: coverage knows some of them."""
        data = (self.root / self.file).read_bytes()
        return set(range(self.line, 2 + data[: max(self.end, self.begin + 1)].count(b"\n")))

    def matters(self) -> bool:
        """False where it is no Python, or the same bytecode as before."""
        before = compile((self.root / self.file).read_text(encoding="utf-8"), self.file, "exec", dont_inherit=True)
        try:
            return compile(self.text(), self.file, "exec", dont_inherit=True) != before
        except SyntaxError:
            return False


def mutants(root: Path, path: Path) -> Iterator[Mutant]:
    """All of one file, in the order of the source. Texts in docstrings, hints and messages are left alone."""
    source = path.read_text(encoding="utf-8")
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode()))
    data, name, seen = source.encode(), str(path.relative_to(root)), set[tuple[int, int, str]]()

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
                    if (begin, end, new) in seen:
                        continue  # of a function within a function
                    seen.add((begin, end, new))
                    row = int(getattr(node, "lineno", 0))
                    yield Mutant(root, name, row, f"{data[begin:end].decode()} -> {new}", begin, end, new)


def _changes(node: ast.AST, data: bytes, piece: Any) -> Iterator[tuple[int, int, str]]:
    """(begin, end, new text) of each change of one node."""
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, (ast.Add, ast.Sub)) and _nothing(node.right):
            return  # neither its sign nor its absence changes anything
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
        called = node.func
        if (getattr(called, "attr", "") or getattr(called, "id", "")) in ANY_ORDER and len(node.args) == 2:
            return
        (b0, e0), (b1, e1) = piece(node.args[0]), piece(node.args[1])
        first, second = data[b0:e0].decode(), data[b1:e1].decode()
        if first != second and isinstance(node.args[0], ast.Name) and isinstance(node.args[1], ast.Name):
            yield b0, e1, second + data[e0:b1].decode() + first


def _nothing(node: ast.expr) -> bool:
    """0, written as it is: `work[out + 0]` beside `work[out + 1]`."""
    return isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value == 0


def files(root: Path, places: Sequence[str]) -> list[Path]:
    """The sources below these places."""
    found: list[Path] = []
    for place in places:
        path = root / place
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return [path for path in found if path.name != "__init__.py"]
