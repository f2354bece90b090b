"""Looking after the claimants in the loop's slack: warm-up states, probes, pending errors. Sends only, never waits."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic_ns
from typing import Any

from rtmms.wire.plant.peer import LIVE, READY, WARMING, Peer
from rtmms.wire.plant.peers import Peers
from rtmms.wire.plant.step_port import StepPort, with_hint
from rtmms.wire.protocol.codec import packer

_ERROR_GAP_NS = 200_000_000
_PROBE_GAP_NS, _PROBE_SLOW_GAP_NS = 100_000_000, 2_000_000_000
_PROBES = 2
_WARM_LIMIT_NS = 5_000_000_000
_PROMPT_NS = 5_000_000
SILENT_NS = 1_500_000_000
"""One that has used up its credits and says nothing for so long counts as dead, though its connection stands."""


class Tending:
    """What peers on the step socket are sent outside the steps."""

    def __init__(self, port: StepPort, peers: Peers) -> None:
        self._port, self._peers = port, peers
        self._probe = packer()({
            "type": "state", "step": -1, "timestamp": 0.0, "deadline_ns": 0, "budget_ns": 0,
            "outputs": {}, "applied": {},
        })  # fmt: skip

    def serve(self, now_ns: int, outputs: Mapping[str, Any]) -> None:
        """One round; outputs are for the warm-up states."""
        while self._peers.displaced:
            peer, heir = self._peers.displaced.pop()
            self._port.say(peer, {"type": "bye", "reason": f"your claim passed to '{heir}' while you were gone"})
        for peer in list(self._peers.all):
            if peer.observer:
                continue
            if peer.error is not None and now_ns - peer.error_ns >= _ERROR_GAP_NS:
                code, text, unknown = peer.error
                text = with_hint(text, unknown, self._peers.names)
                self._port.say(peer, {"type": "error", "code": code, "text": text})
                peer.error, peer.error_ns = None, now_ns
            if peer.state in (WARMING, READY):
                self._warm_up(peer, now_ns, outputs)
            elif peer.state is LIVE and peer.owed <= self._port.credits:
                peer.since_ns = now_ns
                if peer.ticks and now_ns - peer.probe_ns > _PROBE_GAP_NS:
                    # no state goes out while its tick is waited for: this tells whether it is still there
                    peer.owed += self._send_probe(peer, now_ns)
            else:
                if peer.state is LIVE and now_ns - peer.since_ns > SILENT_NS:
                    peer.dies(starved=self._port.connected(peer) is True)
                self._look_for(peer, now_ns)

    def ask(self, peer: Peer) -> None:
        """Find out whether its connection stands."""
        self._port.transmit(peer, self._probe)

    def hasten(self, until_ns: int, outputs: Mapping[str, Any]) -> None:
        """Further rounds of warm-up while there is time: one who comes back is admitted within a few steps."""
        while (now_ns := monotonic_ns()) < until_ns and any(self._answers(peer, now_ns) for peer in self._peers.all):
            self._port.await_answer(min(until_ns, now_ns + _PROMPT_NS))
            self._port.read_in_slack(until_ns)
            self._port.admit_ready()
            self.serve(monotonic_ns(), outputs)

    @staticmethod
    def _answers(peer: Peer, now_ns: int) -> bool:
        """It was just sent a warm-up state: its answer may be waited for."""
        return peer.state is WARMING and peer.owed > 0 and now_ns - peer.since_ns < _PROMPT_NS

    def _warm_up(self, peer: Peer, now_ns: int, outputs: Mapping[str, Any]) -> None:
        """States as in earnest but for their steps, which make both sides' first exchanges before they count.

        A newcomer that is not (or no longer) connected after a while loses its place; one that is takes its time.
        """
        if peer.state is READY:
            return
        if peer.owed == 0:
            payload = peer.selection.packed(peer.warm_step, 0.0, 0, 0, outputs, self._port.applied)
            peer.selection.round = 0
            if self._port.transmit(peer, payload):
                peer.owed, peer.since_ns = 1, now_ns
        elif self._look_for(peer, now_ns):
            peer.since_ns = now_ns
        if now_ns - peer.since_ns > _WARM_LIMIT_NS:
            self._peers.release(peer)

    def _look_for(self, peer: Peer, now_ns: int) -> bool:
        """Is it still, or again, there? An empty state of step -1 tells: a peer answers it like a warm-up state.

        Few of them lie unanswered on a connection: one that sleeps must not wake to a heap of them. Where only sending
        tells whether the connection stands, more follow, slowly.
        """
        gap_ns = _PROBE_GAP_NS
        if peer.probes >= _PROBES:
            connected = self._port.connected(peer)
            if connected:
                return True
            if connected is None:
                gap_ns = _PROBE_SLOW_GAP_NS
        return now_ns - peer.probe_ns > gap_ns and self._send_probe(peer, now_ns)

    def _send_probe(self, peer: Peer, now_ns: int) -> bool:
        peer.probe_ns = now_ns
        there = self._port.transmit(peer, self._probe)
        peer.probes = peer.probes + 1 if there else 0
        return there
