"""Which tests take turns on one worker (tests/conftest.py)."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.conftest import group, pytest_xdist_make_scheduler


def test_a_file_stays_together_and_so_do_those_who_receive_from_each_other() -> None:
    assert group("tests/sensing/test_errors.py::test_a[x/y::z]") == group("tests/sensing/test_errors.py::test_b")
    assert group("tests/cli/test_new.py::test_a") == group("tests/cli/test_new.py::test_b") == "cli/test_new.py"
    assert group("tests/bridges/test_lcm.py::test_a") == group("tests/bridges/test_dds.py::test_b") == "network"
    assert group("tests/cli/test_gaits.py::test_a") == group("tests/locomotion/test_ends.py::test_b") == "ground"
    assert group("tests/scenario/test_examples.py::test_a[b]") != group("tests/scenario/test_examples.py::test_a[c]")


def test_the_workers_are_given_groups() -> None:
    remote = pytest.importorskip("xdist.remote")
    options = {"dist": "loadgroup", "tx": ["2*popen"]}
    config = SimpleNamespace(getvalue=options.get, option=SimpleNamespace(**options))
    scheduler = pytest_xdist_make_scheduler(config, remote.Producer("test"))  # type: ignore[arg-type]
    assert scheduler._split_scope("tests/cli/test_new.py::test_a") == "cli/test_new.py"
    options["dist"] = "load"
    assert pytest_xdist_make_scheduler(config, remote.Producer("test")) is None  # type: ignore[arg-type]
