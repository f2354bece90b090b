"""What `applied` may say stood in: the same in the loop, in the contract and in the bytes of a state."""

from __future__ import annotations

from itertools import product

import pytest

from rtmms.base.contract import APPLIED_POLICIES, MISS_WORDS
from rtmms.wire.protocol.message_layout import UnlikelyError, numbers, with_policy
from rtmms.wire.protocol.messages import packer


def test_the_contract_names_what_may_stand_in() -> None:
    assert set(APPLIED_POLICIES) == set(MISS_WORDS) - {"abort"}


@pytest.mark.parametrize(("policy", "other"), list(product(APPLIED_POLICIES, APPLIED_POLICIES)))
def test_a_state_with_another_policy_is_what_msgpack_would_write(policy: str, other: str) -> None:
    def tail(said: str, clamped: bool) -> bytes:
        state = {"step": 1, "outputs": {"policy": "no"}, "applied": {"seq": 2, "policy": said, "clamped": clamped}}
        payload = packer()(state)
        at, size, _ = numbers(payload)[-1]
        return payload[at + size :]

    for clamped in (False, True):
        assert with_policy(tail(policy, clamped), other) == tail(other, clamped)
        assert with_policy(tail(policy, not clamped), other, clamped) == tail(other, clamped)


def test_what_has_no_policy_is_refused() -> None:
    with pytest.raises(UnlikelyError):
        with_policy(packer()("clamped") + b"\xc2", "hold")
