"""What `applied` may name as the stand-in: the same in the loop, in the contract and in the bytes of a state."""

from __future__ import annotations

from itertools import product

import pytest

from rtmms.base.contract import APPLIED_POLICIES, MISS_WORDS
from rtmms.wire.protocol.messages import packer
from rtmms.wire.protocol.step_message_layout import ending, state_layout


def test_the_contract_names_what_may_stand_in() -> None:
    assert set(APPLIED_POLICIES) == set(MISS_WORDS) - {"abort"}


@pytest.mark.parametrize(("policy", "clamped"), list(product(APPLIED_POLICIES, [False, True])))
def test_a_state_ends_as_msgpack_would_write_it(policy: str, clamped: bool) -> None:
    end = ending(policy, clamped)
    assert packer()({"policy": policy, "clamped": clamped})[1:] == packer()("policy") + end
    layout = state_layout(())
    assert end in layout.endings
    assert layout.matches(layout.body + end)


def test_a_state_ends_in_no_other_way() -> None:
    layout = state_layout(())
    assert len(layout.endings) == 2 * len(APPLIED_POLICIES)
    for end in (ending("abort", False), ending("", False)[:-1], ending("", False) + b"\xc0", b""):
        assert not layout.matches(layout.body + end)
