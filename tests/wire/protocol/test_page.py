"""docs/protocol.md has what the code does: every field, reason and limit stands there."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from rtmms.base.contract import OPERATIONS
from rtmms.wire.plant import handshake, keepalive, peers, step_port
from rtmms.wire.plant import handshake as ticks
from rtmms.wire.plant import peers as peer
from rtmms.wire.protocol import limits
from rtmms.wire.protocol.hello import Hello
from rtmms.wire.protocol.messages import Reason
from tests.wire.bench import Host, Raw

PAGE = (Path(__file__).parents[3] / "docs" / "protocol.md").read_text().replace("`", "")


def section(title: str) -> str:
    match = re.search(rf"^(#+) {re.escape(title)}.*?(?=^#)", PAGE, re.DOTALL | re.MULTILINE)
    assert match is not None, title
    return match[0]


def fields(title: str) -> set[str]:
    """The first column of a section's table."""
    return set(re.findall(r"^\| ([a-z_]+) \|", section(title), re.MULTILINE)) - {"field", "op", "code"}


REASONS = {value for name, value in vars(Reason).items() if not name.startswith("_")}


def test_the_page_explains_every_reason_and_no_other() -> None:
    assert fields("Error codes") == REASONS - {"stranger"}
    assert "stranger" in section("Refused messages")


def test_a_welcome_has_the_fields_of_the_page(raw: Raw) -> None:
    welcome = raw.hello(["*"])
    assert set(welcome) - {"type"} == fields("welcome")
    for channel in (*welcome["actuators"], *welcome["outputs"]):
        assert set(channel) == fields("channel")


def test_a_state_has_the_fields_of_the_page(host: Host, raw: Raw) -> None:
    raw.join(["*"])
    host.publish()
    state = raw.read_message()
    assert set(state) - {"type"} == fields("state")
    assert set(state["applied"]) == fields("applied")


def test_hello_and_command_are_read_by_the_fields_of_the_page() -> None:
    read = {field.name for field in dataclasses.fields(Hello)}
    assert fields("hello") == read
    assert fields("command") == {"seq", "step", "values", "age_ns", "fresh_ns", "fresh"}
    assert fields("Operations") == set(OPERATIONS)


@pytest.mark.parametrize(
    ("title", "text", "value"),
    [
        ("Limits", "| message to the step socket | {} KiB |", limits.MAX_COMMAND_BYTES >> 10),
        ("Limits", "{} KiB plus twice the size of a snapshot", limits.MAX_EXCHANGE_BYTES >> 10),
        ("Limits", "| patterns in claim, in outputs | {},", limits.MAX_PATTERNS),
        ("Limits", "each of 1 to {} characters |", limits.MAX_PATTERN_LENGTH),
        ("Limits", "| entries of settable | {}:", limits.MAX_SETTABLE),
        ("Limits", "| entries of tracks | {}:", limits.MAX_TRACKS),
        ("Limits", "| entries of metrics | {}:", limits.MAX_METRICS),
        ("hello", "0 to min({}, 64 x every)", limits.MAX_EVERY_STEPS),
        ("Limits", "| unanswered states ([credits](#credits)) | {}; with delay, 5 plus", limits.CREDITS + 1),
        ("Limits", "| steps that a command may be ahead | {},", limits.MAX_AHEAD_STEPS),
        ("Limits", "| commands that wait for their step | {} for each peer |", limits.MAX_AHEAD_STEPS),
        ("Limits", "at least {} steps |", 16),
        ("Limits", "| ticks that wait | {} |", ticks.MAX_WAITING_MESSAGES),
        ("Limits", "| requests that wait | {} |", handshake._MAX_WAITING_REQUESTS),
        ("Limits", "| set requests that wait for a peer | {},", handshake.MAX_WAITING_MESSAGES),
        ("Limits", "| peers | {}, and a 65th place", peers.MAX_PEERS),
        ("Limits", "| {} a second for each claimant |", 1_000_000_000 // keepalive._ERROR_GAP_NS),
        ("Limits", "| {} a second for each peer,", peer.MAX_MESSAGES_1_S),
        ("Limits", "each peer, {} at once", peer.ERROR_BURST),
        ("Limits", "{} a second for all unknown connections", handshake._STRANGERS_BURST),
        ("Limits", "| time from the welcome to the connection | {} s |", keepalive._WARM_LIMIT_NS // 1_000_000_000),
        ("Limits", "| silence until a peer is dead | {} s |", keepalive.SILENT_NS / 1e9),
        ("hello", "1 to {} printable", limits.MAX_NAME_LENGTH),
        ("hello", "integer, 1 to {}", limits.MAX_EVERY_STEPS),
        ("request", "up to {} characters", limits.MAX_NAME_LENGTH),
        ("Credits", "A peer has {} credits", limits.CREDITS + 1),
        ("Commands", "at most {} ahead", limits.MAX_AHEAD_STEPS),
        ("Commands", "more than {} steps ago", 16),
        ("Claimant", "missing {} s after the welcome", keepalive._WARM_LIMIT_NS // 1_000_000_000),
        ("Claims", "nothing for {} s", keepalive.SILENT_NS / 1e9),
        ("Ticks", "for {} s", keepalive.SILENT_NS / 1e9),
    ],
)
def test_limits_are_those_of_the_page(title: str, text: str, value: Any) -> None:
    assert text.format(value) in " ".join(section(title).split())
    assert step_port.StepPort  # the module that holds most of them
