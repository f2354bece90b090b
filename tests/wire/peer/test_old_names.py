"""Old public names work for one minor version, with a sentence that has the new one."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import rtmms
from rtmms.base.errors import ModelError, RenamedWarning
from rtmms.cli.main import OLD_OPTIONS, current_options
from rtmms.cli.running.report import RENAMED, add_old_names
from rtmms.scenario import read
from rtmms.wire.peer.controller import RENAMED as OF_A_CONTROLLER
from rtmms.wire.peer.controller import declaration_of
from tests.wire.bench import Host
from tests.wire.looping import Looping


def test_a_controller_with_the_old_names_has_the_new_ones() -> None:
    with pytest.warns(RenamedWarning) as message:

        class Old(rtmms.Controller):
            tracks, settable, figures = ("depth_m",), ("gain",), ("plans",)

            def change(self, values: Any) -> None:
                super().change(values)
                self.changed = True

    assert {str(item.message).split()[2] for item in message} == set(OF_A_CONTROLLER.values())
    assert (Old.setpoints, Old.tunable_parameters, Old.metrics) == (("depth_m",), ("gain",), ("plans",))  # type: ignore[comparison-overlap]
    old = Old()
    old.on_parameters_changed({"gain": 2.0})
    assert (old.gain, old.changed) == (2.0, True)  # type: ignore[attr-defined]


def test_a_class_that_derives_from_nothing_may_have_either() -> None:
    class Mine:
        tracks = ("depth_m",)
        metrics = ("plans",)

    assert declaration_of(Mine(), "setpoints") == ("depth_m",)
    assert declaration_of(Mine(), "metrics") == ("plans",)
    assert declaration_of(Mine(), "tunable_parameters") == ()


def test_a_parameter_of_a_controller_may_be_called_as_one_of_them() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        class Counting(rtmms.Controller):
            figures: int = 3

    assert tuple(Counting.metrics) == ()


def test_connect_and_link_take_the_old_names(make_host: Any) -> None:
    with Looping(make_host(token="secret")) as running:
        host: Host = running.host
        more: dict[str, Any] = {"settable": {"gain": 1.0}, "tracks": {"depth_m": 2.0}}
        with pytest.warns(RenamedWarning) as result:
            link = rtmms.connect(host.exchange, name="old", token="secret", **more)
        assert len(result) == 2
        with link:
            with pytest.warns(RenamedWarning, match=r"Link\.report_metrics"):
                link.tell({"plans": 2})
            with pytest.warns(RenamedWarning, match=r"Link\.tunable_parameters"):
                assert link.settable == {"gain": 1.0}
            running.wait(lambda: host.summaries and host.summaries[0]["metrics"] == {"plans": 2})
        with pytest.raises(ModelError, match="expected setpoints, got setpoints and tracks"):
            rtmms.connect(host.exchange, name="both", token="secret", setpoints={"a": 1.0}, tracks={"a": 1.0})


def test_old_options_become_new_ones(capsys: pytest.CaptureFixture[str]) -> None:
    for old, new in OLD_OPTIONS.items():
        assert current_options(["manta", old, "x=1:2:3", f"{old}=y", "--", old]) == [
            "manta", new, "x=1:2:3", f"{new}=y", "--", old,
        ]  # fmt: skip
        assert capsys.readouterr().err.count(f"{old} is {new} now") == 2


def test_an_old_key_of_a_scenario_is_the_new_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "old.toml"
    file.write_text('robot = "manta"\ntracking-from = 3.0\n')
    assert read(file).options == {"tracking_start": 3.0}
    assert f"{file}:2: tracking-from is tracking_start now" in capsys.readouterr().err


def test_the_report_has_renamed_keys_twice() -> None:
    report: dict[str, Any] = {
        "schedule": {"causes": {"machine": 2, "loop_overhead": 1}}, "stall_detector": {"present": True},
        "accuracy": {"recommended_step": None, "message": "fine"}, "robots": {"one": {"start_position_m": [0.0]}},
        "exchange": {"rejected": {"malformed": 3}, "peers": [{"metrics": {"plans": 1}}, {"metrics": {}}]},
    }  # fmt: skip
    add_old_names(report)
    assert report["schedule"]["blame"] == {"machine": 2, "own_exchange": 1}
    assert sum(report["schedule"]["causes"].values()) == 3
    assert report["witness"] == {"present": True}
    assert (report["accuracy"]["use"], report["accuracy"]["sentence"]) == (None, "fine")
    assert report["robots"]["one"]["begins_m"] == [0.0]
    assert report["exchange"]["rejected"] == {"malformed": 3}, "sums of refusals stay what they are"
    assert [peer["figures"] for peer in report["exchange"]["peers"]] == [{"plans": 1}, {}]
    assert report["deprecated"] == dict(RENAMED)
    short: dict[str, Any] = {"accuracy": None, "schedule": {}}
    add_old_names(short)
    assert set(short) == {"accuracy", "schedule", "deprecated"}
