"""No bridge lacks its entry point, example, page, test, extra or parser; and third parties' are found as ours are."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
import tomllib
from pathlib import Path

import pytest

import rtmms
from rtmms.base.toml_file import read_toml
from rtmms.bridging.bridge import refuse_without
from rtmms.bridging.config import bridges, build_bridge, construct, hints, load_bridge, parameters
from tests.bridges.harness import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
ENTRIES = PROJECT["entry-points"]["rtmms.bridges"]
PARSERS = PROJECT["entry-points"]["rtmms.parsers"]
MODULES = sorted(path for path in (ROOT / "bridges").rglob("*.py") if path.stem != "__init__")
SHARED = set(hints(rtmms.Bridge))


def module_name(path: Path) -> str:
    return ".".join(("rtmms_bridges", *path.relative_to(ROOT / "bridges").with_suffix("").parts))


def bridges_of(path: Path) -> list[type[rtmms.Bridge]]:
    module = importlib.import_module(f"rtmms_bridges.{path.stem}")
    return [
        item for _, item in inspect.getmembers(module, inspect.isclass)
        if issubclass(item, rtmms.Bridge) and item.__module__ == module.__name__
    ]  # fmt: skip


NAMES = [path.stem for path in MODULES if path.parent.name == "bridges"]


def test_there_are_bridges() -> None:
    assert "template" in NAMES
    ours = {name for name, place in ENTRIES.items() if place.startswith("rtmms_bridges.")}
    assert {*ENTRIES} - ours == {"view"}  # no bridge to other software: it has a room of its own
    assert set(NAMES) == ours, "each file with a bridge is an entry point of its name, and the other way round"


@pytest.mark.parametrize("name", NAMES)
def test_a_file_has_one_bridge(name: str) -> None:
    (item,) = bridges_of(ROOT / "bridges" / f"{name}.py")
    assert ENTRIES[name] == f"rtmms_bridges.{name}:{item.__name__}"
    assert load_bridge(name) is item
    assert item.__doc__
    assert dataclasses.is_dataclass(item)


@pytest.mark.full  # some examples are read by the bridge's own library
@pytest.mark.parametrize("name", NAMES)
def test_its_example_loads_and_reports_how_to_use_it(name: str) -> None:
    file = ROOT / "bridges" / "examples" / f"{name}.toml"
    built = construct(load_bridge(name), "bridge", name, {"config": str(file)})
    assert isinstance(built, rtmms.Bridge)
    assert read_toml(str(file)), "an example that sets nothing shows nothing"
    assert f"{name}:config=bridges/examples/{name}.toml" in file.read_text().splitlines()[0]


@pytest.mark.parametrize("name", NAMES)
def test_its_page_reports_every_parameter(name: str) -> None:
    page = (ROOT / "docs" / "bridges" / f"{name}.md").read_text()
    untold = [key for key in set(hints(load_bridge(name))) - SHARED if not re.search(rf"\b{key}\b", page)]
    assert untold == []
    assert f"(bridges/{name}.md)" in (ROOT / "docs" / "bridges.md").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_it_has_a_test(name: str) -> None:
    assert "def test_" in (ROOT / "tests" / "bridges" / f"test_{name}.py").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_its_libraries_are_an_extra(name: str) -> None:
    bridge = load_bridge(name)
    assert bool(bridge.requires) == bool(bridge.extra)
    if bridge.extra:
        listed = " ".join(PROJECT["optional-dependencies"][bridge.extra])
        assert all(package in listed for package in bridge.requires.values())
        assert bridge.extra in " ".join(PROJECT["optional-dependencies"]["all"])


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_its_parser_is_fuzzed(path: Path) -> None:
    parses = re.findall(r"^def (fuzzed\w*)", path.read_text(), re.MULTILINE)
    registered = [value for value in PARSERS.values() if value.startswith(f"{module_name(path)}:")]
    assert sorted(registered) == sorted(f"{module_name(path)}:{name}" for name in parses)


def test_all_extras_together() -> None:
    extras = {load_bridge(name).extra for name in NAMES} - {""}
    assert extras <= set(re.findall(r"[\w-]+", " ".join(PROJECT["optional-dependencies"].get("all", []))))


@dataclasses.dataclass(kw_only=True)
class Lacking(rtmms.Bridge):
    extra = "lacking"
    requires = {"json": "json", "no_such.module": "no-such-package"}  # noqa: RUF012


def test_a_missing_library_reports_what_to_install() -> None:
    with pytest.raises(rtmms.ModelError, match=r"bridge 'x' needs no-such-package: pip install .*\[lacking\]"):
        refuse_without(Lacking, "x")
    Lacking.extra = ""
    with pytest.raises(rtmms.ModelError, match="needs no-such-package: pip install no-such-package"):
        refuse_without(Lacking, "x")


def test_a_third_partys_missing_library_is_of_its_own_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "plugins"))
    with pytest.raises(rtmms.ModelError, match=r"needs no-such-package: pip install 'rtmms-test-plugins\[more\]'"):
        build_bridge("needing")


def test_a_third_partys_is_found_as_ours_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "plugins"))
    assert "tap" in bridges()
    assert next(iter(parameters(load_bridge("tap")))) == "file"
    for name, text in (
        ("nobridge", "to be a dataclass derived from rtmms.Bridge"), ("broken", "cannot load"),
        ("boom", r"bridge 'boom': cannot load boom:Boom: RuntimeError: at import"),
    ):  # fmt: skip
        with pytest.raises(rtmms.ModelError, match=text):
            load_bridge(name)
    with pytest.raises(rtmms.UnknownNameError, match="did you mean tap"):
        load_bridge("tab")


def test_one_in_a_file_is_found_by_the_files_name(tmp_path: Path) -> None:
    lines = "import dataclasses, rtmms\n@dataclasses.dataclass(kw_only=True)\nclass {}(rtmms.Bridge):\n    {}\n"
    (tmp_path / "lamp.py").write_text(lines.format("Lamp", "red: float = 0.5\n    def on_state(self, state): ..."))
    (tmp_path / "two.py").write_text(
        "".join(lines.format(name, "def on_state(self, state): ...") for name in ("Lamp", "Bell"))
    )
    (tmp_path / "deaf.py").write_text(lines.format("Deaf", "pass"))
    assert vars(build_bridge(f"{tmp_path}/lamp.py:red=0.25"))["red"] == 0.25
    assert load_bridge(f"{tmp_path}/two.py:Bell").__name__ == "Bell"
    for parts, text in (
        ("none.py", "there is no file"), ("two.py", "has Bell, Lamp; name one"),
        ("lamp.py:rtmms", r"expected a dataclass derived from rtmms.Bridge, with on_state\(state\), got module"),
        ("deaf.py", r"expected a dataclass .*, with on_state\(state\) in .*, which has Deaf, but none that fits"),
        ("lamp.py:blue=1", "blue"),
    ):  # fmt: skip
        with pytest.raises(rtmms.ModelError, match=text):
            build_bridge(f"{tmp_path}/{parts}")
