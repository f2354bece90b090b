"""Which tests take turns on one worker (tests/conftest.py)."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.cli.shell import ROOT
from tests.conftest import ALONE, LONG, group, pytest_collection_modifyitems, pytest_xdist_make_scheduler


def test_a_file_stays_together_and_so_do_those_who_receive_from_each_other() -> None:
    assert group("tests/sensing/test_errors.py::test_a[x/y::z]") == group("tests/sensing/test_errors.py::test_b")
    assert group("tests/cli/test_new.py::test_a") == group("tests/cli/test_new.py::test_b") == "cli/test_new.py"
    assert group("tests/bridges/test_lcm.py::test_a") == group("tests/bridges/test_dds.py::test_b") == "network"
    assert group("tests/cli/test_gaits.py::test_a") == group("tests/locomotion/test_ends.py::test_b") == "ground"
    assert group("tests/scenario/test_examples.py::test_a[b]") != group("tests/scenario/test_examples.py::test_a[c]")


def test_the_workers_are_given_groups() -> None:
    remote = pytest.importorskip("xdist.remote")
    options = {"dist": "loadgroup", "tx": ["2*popen"], "markexpr": "full", "loadscopereorder": True}
    config = SimpleNamespace(getvalue=options.get, option=SimpleNamespace(**options))
    scheduler = pytest_xdist_make_scheduler(config, remote.Producer("test"))  # type: ignore[arg-type]
    assert scheduler._split_scope("tests/cli/test_new.py::test_a") == "cli/test_new.py"
    assert config.option.loadscopereorder is False
    options["dist"] = "load"
    assert pytest_xdist_make_scheduler(config, remote.Producer("test")) is None  # type: ignore[arg-type]


def test_long_files_of_the_full_suite_begin_first() -> None:
    assert all((ROOT / "tests" / name).is_file() for name in (*LONG, *ALONE))
    names = ["tests/cli/test_new.py::test_a", f"tests/{LONG[1]}::test_b", f"tests/{LONG[0]}::test_c"]
    for expression, order in (("full", [2, 1, 0]), ("not full", [0, 1, 2])):
        items = [SimpleNamespace(nodeid=name) for name in names]
        config = SimpleNamespace(option=SimpleNamespace(markexpr=expression))
        pytest_collection_modifyitems(config, items)  # type: ignore[arg-type]
        assert [names.index(item.nodeid) for item in items] == order
