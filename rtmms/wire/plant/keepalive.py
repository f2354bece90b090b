"""Keep-alive of claimants in the loop's slack: warm-up states, probes, pending errors.

This code only sends, and never waits longer than the slack.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic_ns
from typing import Any

from rtmms.wire.plant.peers import LIVE, READY, WARMING, Peer, Peers
from rtmms.wire.plant.step_port import StepPort, with_hint
from rtmms.wire.protocol.messages import name_in, packer

_ERROR_GAP_NS = 200_000_000
_PROBE_GAP_NS = 100_000_000
_PROBE_SLOW_GAP_NS = 2_000_000_000
_PROBES = 2
_WARM_LIMIT_NS = 5_000_000_000
_PROMPT_NS = 5_000_000
SILENT_NS = 1_500_000_000
"""Silence after which a peer without credits counts as dead, ns, even if its connection exists."""


class KeepAlive:
    """Messages to peers on the step socket outside the steps: warm-up states, probes, and pending errors.

    Parameters
    ----------
    port : StepPort
        The step socket's port.
    peers : Peers
        All peers.
    """

    def __init__(self, port: StepPort, peers: Peers) -> None:
        self._port, self._peers = port, peers
        self._probe = packer()({
            "type": "state", "step": -1, "timestamp": 0.0, "deadline_ns": 0, "budget_ns": 0,
            "outputs": {}, "applied": {},
        })  # fmt: skip

    def serve(self, now_ns: int, outputs: Mapping[str, Any]) -> None:
        """Serve each peer once.

        Parameters
        ----------
        now_ns : int
            Present instant of CLOCK_MONOTONIC, ns.
        outputs : Mapping[str, Any]
            The plant's outputs, for the warm-up states.
        """
        while self._peers.displaced:
            peer, heir = self._peers.displaced.pop()
            self._port.send(peer, {"type": "bye", "reason": f"your claim passed to '{heir}' while you were gone"})
        for peer in list(self._peers.all):
            if peer.observer:
                continue
            if peer.error is not None and now_ns - peer.error_ns >= _ERROR_GAP_NS:
                code, text, unknown = peer.error
                text = with_hint(text, unknown, self._peers.names)
                self._port.send(peer, {"type": "error", "code": name_in(peer.asked.protocol, code), "text": text})
                peer.error, peer.error_ns = None, now_ns
            if peer.state in (WARMING, READY):
                self._warm_up(peer, now_ns, outputs)
            elif peer.state is LIVE and peer.owed <= self._port.credits_of(peer):
                peer.since_ns = now_ns
                if peer.ticks and now_ns - peer.probe_ns > _PROBE_GAP_NS:
                    # no state leaves while its tick is awaited, so a probe shows whether the peer lives
                    peer.owed += self._send_probe(peer, now_ns)
            else:
                if peer.state is LIVE and now_ns - peer.since_ns > SILENT_NS:
                    peer.dies(self._port.step, starved=self._port.connected(peer) is True)
                self._look_for(peer, now_ns)

    def ask(self, peer: Peer) -> None:
        """Send a probe that shows whether a connection exists.

        Parameters
        ----------
        peer : Peer
            The peer.
        """
        self._port.transmit(peer, self._probe)

    def hasten(self, until_ns: int, outputs: Mapping[str, Any]) -> None:
        """Continue the warm-up while there is time, so that a returning peer is admitted within a few steps.

        Parameters
        ----------
        until_ns : int
            Instant of CLOCK_MONOTONIC, ns.
        outputs : Mapping[str, Any]
            The plant's outputs, for the warm-up states.
        """
        while (now_ns := monotonic_ns()) < until_ns and any(self._answers(peer, now_ns) for peer in self._peers.all):
            self._port.await_answer(min(until_ns, now_ns + _PROMPT_NS))
            self._port.read_in_slack(until_ns)
            self._port.admit_ready()
            self.serve(monotonic_ns(), outputs)

    @staticmethod
    def _answers(peer: Peer, now_ns: int) -> bool:
        """Return whether a peer was just sent a warm-up state, so that its answer may be waited for."""
        return peer.state is WARMING and peer.owed > 0 and now_ns - peer.since_ns < _PROMPT_NS

    def _warm_up(self, peer: Peer, now_ns: int, outputs: Mapping[str, Any]) -> None:
        """Send warm-up states, which perform both sides' first exchanges before they count.

        They differ from usual states by their steps. A newcomer that is not connected any more after a while loses its
        place. A connected one has as much time as it needs.
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
        """Return whether a peer is connected, if necessary by a probe.

        A probe is an empty state of step -1; a peer answers it like a warm-up state. Few probes may be unanswered on a
        connection, because a sleeping process must not wake to many of them. If only a send shows whether the
        connection is open, more follow slowly.
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
