"""docs/protocol.md says what the code does: every field, reason and limit stands there."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from rtmms.wire.plant import handshake, peers, step_port
from rtmms.wire.plant import handshake as ticks
from rtmms.wire.plant import peers as peer
from rtmms.wire.plant import server as tending
from rtmms.wire.protocol import messages
from rtmms.wire.protocol import messages as limits
from rtmms.wire.protocol.messages import Reason
from tests.wire.bench import Host, Raw

PAGE = (Path(__file__).parents[3] / "docs" / "protocol.md").read_text()


def section(title: str) -> str:
    found = re.search(rf"^(#+) {re.escape(title)}.*?(?=^#)", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None, title
    return found[0]


def fields(title: str) -> set[str]:
    """The first column of a section's table."""
    rows = re.findall(r"^\| ([a-z_, ]+) \|", section(title), re.MULTILINE)
    return {name for row in rows for name in row.split(", ")} - {"field"}


REASONS = {value for name, value in vars(Reason).items() if not name.startswith("_")}


@pytest.mark.parametrize("reason", sorted(REASONS))
def test_every_reason_is_explained(reason: str) -> None:
    assert reason == "stranger" or re.search(rf"^\| [a-z_, ]*\b{reason}\b[a-z_, ]* \|", section("error"), re.MULTILINE)
    assert reason in PAGE


def test_no_reason_is_explained_that_there_is_not() -> None:
    rows = re.findall(r"^\| ([a-z_, ]+) \|", section("error"), re.MULTILINE)
    assert {name for row in rows for name in row.split(", ")} - {"code"} == REASONS - {"stranger"}


def test_a_welcome_has_the_fields_of_the_page(raw: Raw) -> None:
    welcome = raw.hello(["*"])
    assert set(welcome) - {"type"} == fields("welcome")
    for channel in (*welcome["actuators"], *welcome["outputs"]):
        for name in channel:
            assert name in section("welcome")


def test_a_state_has_the_fields_of_the_page(host: Host, raw: Raw) -> None:
    raw.join(["*"])
    host.publish()
    state = raw.read_message()
    assert set(state) - {"type"} == fields("state")
    assert all(f"`{name}`" in section("state") for name in state["applied"])


def test_hello_and_command_are_read_by_the_fields_of_the_page() -> None:
    read = {one.metadata["wire"] or one.name for one in dataclasses.fields(messages.Hello)}
    assert fields("hello") - {"type", "protocol"} == read
    assert fields("command") == {"seq", "step", "values"}
    operations = {
        name for row in re.findall(r"^\| ([a-z, ]+) \|", section("request"), re.MULTILINE) for name in row.split(", ")
    }
    assert operations - {"op"} == set(messages.OPERATIONS)


@pytest.mark.parametrize(
    ("title", "text", "value"),
    [
        ("Framing", "{} KiB a message on the step socket", limits.COMMAND_BYTES >> 10),
        ("Framing", "{} KiB and twice the size of a snapshot", limits.EXCHANGE_BYTES >> 10),
        ("hello", "1 to {} printable", limits.NAME_LENGTH),
        ("hello", "at most {} patterns", limits.PATTERNS),
        ("hello", "of 1 to {} characters", limits.PATTERN_LENGTH),
        ("hello", "integer, 1 to {}", limits.MOST_EVERY),
        ("state", "more than {} states are unanswered", limits.CREDITS),
        ("command", "up to {} ahead", limits.AHEAD_STEPS),
        ("command", "at least {} steps", 16),
        ("tick", "at most {} do", ticks.MOST_WAITING),
        ("request", "At most {} wait", handshake._WAITING_REQUESTS),
        ("request", "up to {} characters", limits.NAME_LENGTH),
        ("error", "too many peers ({})", peers.MOST_PEERS),
        ("error", "At most {} a second for each claimant", 1_000_000_000 // tending._ERROR_GAP_NS),
        ("error", "exchange endpoint {} a second for each peer", peer.ALLOWED_A_SECOND),
        ("error", "{} of them at once", peer.ERROR_BURST),
        ("error", "and {} for all strangers", handshake._STRANGERS_BURST),
        ("welcome", "within {} s", tending._WARM_LIMIT_NS // 1_000_000_000),
        ("Who holds", "nothing for {} s", tending.SILENT_NS / 1e9),
    ],
)
def test_limits_are_those_of_the_page(title: str, text: str, value: Any) -> None:
    assert text.format(value) in " ".join(section(title).split())
    assert step_port.StepPort  # the module that holds most of them
