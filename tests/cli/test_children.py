"""What processes of a run are given: a bridge's secrets are its own."""

from __future__ import annotations

import os

import pytest

from rtmms.cli.running import children


def test_a_secret_goes_to_the_bridge_that_it_names_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "_taken", {})
    monkeypatch.setenv("RTMMS_MQTT_PASSWORD", "hush")
    monkeypatch.setenv("RTMMS_CHILD", "0")
    assert "RTMMS_MQTT_PASSWORD" not in children.environment_for()
    assert "RTMMS_MQTT_PASSWORD" not in children.environment_for("udp")
    assert children.environment_for("mqtt")["RTMMS_MQTT_PASSWORD"] == "hush"
    assert children.environment_for()["RTMMS_CHILD"] == "0"
    assert "RTMMS_MQTT_PASSWORD" not in os.environ  # the plant's process, where a user's file may run
