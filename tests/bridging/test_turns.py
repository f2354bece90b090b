"""Turns: no answer is ever taken for another message's, however slow the peer is and whatever gets lost."""

from __future__ import annotations

import heapq
import random

import pytest

from rtmms.bridging.sending import MAX_RESEND_S, Turns


class Peer:
    """Answers every message that reaches it, one after the other, each in its time; some never arrive."""

    def __init__(self, seed: int, takes_s: float, loss: float, pause: tuple[float, float] = (0.0, 0.0)) -> None:
        self.random = random.Random(seed)
        self.takes_s, self.loss, self.pause = takes_s, loss, pause
        self.free_at = 0.0
        self.answers: list[tuple[float, int]] = []

    def get(self, message: bytes, now: float) -> None:
        if self.random.random() < self.loss:
            return
        begun = max(now, self.free_at)
        if self.pause[0] <= begun < self.pause[0] + self.pause[1]:
            begun = self.pause[0] + self.pause[1]
        self.free_at = begun + self.takes_s * self.random.uniform(0.5, 1.5)
        if self.random.random() >= self.loss:
            heapq.heappush(self.answers, (self.free_at, int(message)))


def ages(peer: Peer, count: int, dt: float = 1e-3) -> tuple[list[int], float]:
    """How old the answer is that each of `count` messages got, in messages; and the time all took."""
    turns, now, result, stored = Turns(0.1), 0.0, [], -1
    for k in range(1, count + 1):
        message = str(k).encode()
        turns.ask(message, now)
        peer.get(message, now)
        while True:
            now += dt
            assert now < 1e4, "it stands still"
            over = False
            while peer.answers and peer.answers[0][0] <= now:
                stored = heapq.heappop(peer.answers)[1]
                over |= turns.answered(now)
            again = turns.due(now)
            if again:
                peer.get(again, now)
            if over or turns.settled(now):
                break
        result.append(k - stored)
    return result, now


@pytest.mark.parametrize("takes_s", [1e-3, 0.012, 0.15, 0.5])
def test_a_peer_that_loses_nothing_gets_no_copies_for_long(takes_s: float) -> None:
    result, took = ages(Peer(1, takes_s, 0.0), 60)
    assert set(result) == {0}
    assert took < 60 * (1.5 * takes_s + 2e-3) + 12 * takes_s + 1.0


def test_a_peer_that_pauses_is_in_step_again_at_once() -> None:
    result, took = ages(Peer(2, 3e-3, 0.0, pause=(0.05, 0.45)), 200)
    assert set(result) == {0}
    assert took < 200 * 6e-3 + 1.5


@pytest.mark.parametrize("seed", range(5))
def test_what_is_lost_costs_time_and_nothing_else(seed: int) -> None:
    result, _ = ages(Peer(seed, 3e-3, 0.2), 200)
    assert set(result) == {0}


def test_again_at_growing_distances() -> None:
    turns = Turns(0.1)
    turns.ask(b"x", 0.0)
    observed, now = [], 0.0
    while now < 10.0:
        now += 0.01
        if turns.due(now):
            observed.append(round(now, 2))
    gaps = [b - a for a, b in zip([0.0, *observed], observed, strict=False)]
    assert gaps[:3] == pytest.approx([0.1, 0.2, 0.4], abs=0.011)
    assert max(gaps) <= MAX_RESEND_S + 0.011
    assert len(observed) > 15, "one that comes late is asked soon"
    turns.forget()
    assert not turns.due(now + 100)
    assert not turns.settled(now + 100)
    assert turns.answered(now + 100), "nothing is asked: whatever comes is for now"


def test_what_was_never_answered_may_still_be() -> None:
    turns = Turns(0.1)
    turns.ask(b"1", 0.0)
    turns.ask(b"2", 0.05)  # the state came again, or another one
    assert not turns.answered(0.06), "this may be to the first"
    assert turns.answered(0.07)


def test_one_that_reports_what_it_answers_is_believed() -> None:
    turns = Turns(0.1)
    turns.ask(b"1", 0.0)
    for now in (0.11, 0.32, 0.73):
        assert turns.due(now)
    assert turns.answered(3.0, surely=True)
    turns.ask(b"2", 3.0)
    assert turns.answered(3.01)


def test_one_that_is_back_is_not_kept_waiting() -> None:
    turns = Turns(0.1)
    turns.ask(b"1", 0.0)
    assert turns.answered(0.002)
    turns.ask(b"2", 0.01)
    now = 0.01
    while now < 3.0:
        now += 0.01
        sent = now if turns.due(now) else 0.0
    while not sent:
        now += 0.01
        sent = now if turns.due(now) else 0.0
    assert not turns.answered(now + 0.002), "it may have got the others, too"
    assert not turns.settled(now + 0.05)
    assert turns.settled(now + 0.15)
