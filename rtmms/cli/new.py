"""rtmms new: a small package of one's own, with its entry point, a test and a README.

The folder new_templates has a folder for each kind; its files have $name, $title and other words to replace.
"""

from __future__ import annotations

import keyword
import shutil
import sys
import tempfile
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from string import Template

import click

from rtmms.base.entry_points import entry_points_of
from rtmms.base.errors import ModelError, RtmmsError
from rtmms.base.terminal import print_text
from rtmms.cli.option_types import KnownName

GROUPS = {"controller": "controllers", "plant": "plants", "bridge": "bridges", "robot": "plants"}
COMMANDS = {
    "controller": "rtmms run manta --controller $name",
    "plant": "rtmms run $name",
    "bridge": "rtmms run manta --bridge $name",
    "robot": "rtmms run $name",
}


@click.command("new")
@click.argument("kind", type=KnownName("kind", tuple(GROUPS)))
@click.argument("name")
@click.option("-o", "--output", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Where to write it; default: a folder of its name, here.")  # fmt: skip
def new(kind: str, name: str, output: Path | None) -> int:
    """Write a package of your own: a controller, a plant (a simulator), a bridge, or a robot (a tree)."""
    template_values = _template_values(kind, name)
    target = Path(name) if output is None else output
    if target.exists():
        raise ModelError(f"{target}: expected a new folder, got one that exists; give another with -o")
    parent = target.absolute().parent
    if not parent.is_dir():
        raise ModelError(f"{target}: there is no folder '{target.parent}'")
    try:
        with tempfile.TemporaryDirectory(prefix=".rtmms-new-", dir=parent) as built:
            _write(kind, template_values, Path(built) / "package")
            shutil.move(Path(built) / "package", target)
    except OSError as error:
        raise RtmmsError(f"{target}: could not be written: {error.strerror}") from None
    command = Template(COMMANDS[kind]).substitute(template_values)
    print_text(f"{target}: pip install -e '{target}[test]', then: {command}")
    return 0


def _template_values(kind: str, name: str) -> dict[str, str]:
    if not name.isidentifier() or keyword.iskeyword(name) or name != name.lower():
        raise ModelError(f"name: expected a lower-case Python name (letters, digits, _), got '{name}'")
    if name.startswith("rtmms") or name == "tests":
        raise ModelError(f"name: '{name}' is reserved for an existing package; choose another name")
    if _module_exists(name):
        raise ModelError(f"name: a module '{name}' exists, and the new package would hide it; choose another name")
    if name in entry_points_of(f"rtmms.{GROUPS[kind]}"):
        raise ModelError(f"name: expected a new name, got '{name}', an installed {kind}, which the package would hide; "
                         "choose another name")  # fmt: skip
    title = "".join(part.capitalize() for part in name.split("_") if part) or name
    obj = name if kind == "robot" else title
    return {
        "name": name, "title": title, "kind": kind, "group": GROUPS[kind], "object": obj,
        "command": Template(COMMANDS[kind]).substitute(name=name),
    }  # fmt: skip


def _module_exists(name: str) -> bool:
    """Return whether Python or an installed package has a module of that name; a user's folder does not count."""
    if name in sys.stdlib_module_names:
        return True
    spec = find_spec(name)
    return spec is not None and spec.origin is not None and not Path(spec.origin).is_relative_to(Path.cwd())


def _write(kind: str, options: dict[str, str], root: Path) -> None:
    templates = files("rtmms.cli") / "new_templates"
    sources = {
        "pyproject.toml": templates / "pyproject.toml.txt",
        "README.md": templates / "README.md.txt",
        f"{options['name']}/__init__.py": templates / kind / "module.txt",
        f"tests/test_{options['name']}.py": templates / kind / "test.txt",
    }
    for path, source in sources.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(Template(source.read_text(encoding="utf-8")).substitute(options), encoding="utf-8")
