"""Calls in the sources that open or write a file by its name, in Python and in the libraries that rtmms uses."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tests.sources import dotted, modules

READING_METHODS = frozenset({
    "read_text", "read_bytes", "loadtxt", "genfromtxt", "fromfile", "memmap", "ParquetFile", "ZipFile", "mmread",
    "netcdf_file", "load_file", "from_file", "imread", "load_certificate", "read_model_description", "load_cert_chain",
    "tls_set", "FileIO", "fdopen", "iterparse", "read_csv",
})  # fmt: skip
READING_FUNCTIONS = frozenset({
    "open", "os.open", "io.open", "codecs.open", "gzip.open", "tarfile.open", "np.load", "pq.read_table",
    "ElementTree.parse", "etree.parse", "trimesh.load", "yourdfpy.URDF.load", "import_module('trimesh').load",
})  # fmt: skip
WRITING_METHODS = frozenset({
    "write_text", "write_bytes", "savefig", "savez", "savez_compressed", "savetxt", "tofile", "to_csv", "write_table",
    "ParquetWriter", "copyfile", "to_parquet",
})  # fmt: skip

OPENERS = frozenset({"open_input", "_opened"})
PARTS = frozenset({"new_file_beside"})


@dataclass(frozen=True)
class FileCall:
    """One call.

    module  relative to the project;  line  from 1;  function  as it is written;  text  the whole call
    """

    module: str
    line: int
    function: str
    text: str


def reading_calls() -> Iterator[FileCall]:
    """Calls that open a file by its name, other than those of a file that `open_input` opened."""
    for module, tree in modules():
        opened = _bound(tree, OPENERS) | _annotated(tree, "BinaryIO")
        parts = _bound(tree, PARTS)
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not _opens(node):
                continue
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Name) and first.id in opened:
                continue
            if isinstance(node.func, ast.Attribute) and _is_in(node.func.value, parts):
                continue
            yield FileCall(module, node.lineno, dotted(node.func), ast.unparse(node))


def writing_calls() -> Iterator[FileCall]:
    """Calls that write a file by its name, other than those of a file within `new_file_beside`."""
    for module, tree in modules():
        parts = _bound(tree, PARTS)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                writes = node.func.attr in WRITING_METHODS or (node.func.attr == "open" and _mode(node)[:1] in "wax+")
                places = [node.func.value, *node.args]
                if writes and _mode(node) != "" and not any(_is_in(place, parts) for place in places):
                    yield FileCall(module, node.lineno, dotted(node.func), ast.unparse(node))


def _mode(node: ast.Call) -> str:
    """The mode of a call of `open`; 'w' of another function."""
    assert isinstance(node.func, ast.Attribute)
    if node.func.attr != "open":
        return "w"
    first = node.args[0] if node.args else None
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""


def _opens(node: ast.Call) -> bool:
    text = dotted(node.func)
    if text in READING_FUNCTIONS or text.rpartition(".")[2] in READING_METHODS:
        return True
    if not isinstance(node.func, ast.Attribute) or node.func.attr != "open":
        return False
    modes = [arg for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    return bool(modes) or not node.args


def _bound(tree: ast.Module, functions: frozenset[str]) -> set[str]:
    """Names that hold what one of the functions returned."""
    result: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.withitem) and isinstance(node.optional_vars, ast.Name):
            pairs = [(node.optional_vars, node.context_expr)]
        elif isinstance(node, ast.Assign):
            pairs = [(target, node.value) for target in node.targets if isinstance(target, ast.Name)]
        else:
            continue
        for name, value in pairs:
            calls = [node for node in ast.walk(value) if isinstance(node, ast.Call)]
            if any(dotted(call.func).rpartition(".")[2] in functions for call in calls):
                result.add(name.id)
    return result


def _annotated(tree: ast.Module, kind: str) -> set[str]:
    """Names of parameters of a type."""
    return {
        node.arg
        for node in ast.walk(tree)
        if isinstance(node, ast.arg) and node.annotation is not None and dotted(node.annotation) == kind
    }


def _is_in(node: ast.AST, names: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names
