"""States as LCM messages and commands from them: pose_t, outputs_t and command_t of bridges/messages/rtmms.lcm."""

from __future__ import annotations

import ipaddress
import re
import struct
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from math import isfinite
from typing import Annotated, Any

import rtmms
from rtmms.base.errors import ModelError
from rtmms.base.override import override
from rtmms.base.parameters import Parameter
from rtmms.bridging.untrusted import MAX_JSON_BYTES, Fuzzed, Refusal, fuzz

from .lines.from_here import from_here
from .messages.selected import select_outputs
from .motion.pose import Motion, PoseNames, PoseReader

POSE = 0x2E16EFB052B0105E
"""Fingerprint of a pose, from its members' names and types, as lcm-gen computes it."""
OUTPUTS = 0xE8A13C08306C69EA
"""Fingerprint of a message of outputs."""
COMMAND = 0xB3E508B7A78DAF3A
"""Fingerprint of a command."""

_POSE = struct.Struct(">Qq16d")
_HEAD = struct.Struct(">Qqi")
_MAX_ACTUATORS = 1024
_MAX_MESSAGES = 16
_MAX_CHANNEL_LENGTH = 63
_URL = re.compile(r"udpm://([\d.]+):(\d{1,5})(?:\?(?:ttl|recv_buf_size)=\d{1,9}(?:&(?:ttl|recv_buf_size)=\d{1,9})*)?")
"""Address of a multicast group; LCM's other addresses are refused, because file:// reads and writes files."""
_FAR = re.compile(r"[?&]ttl=0*[1-9]")


def encode_pose(motion: Motion) -> bytes:
    """Return a pose_t.

    Parameters
    ----------
    motion : Motion
        Motion of the robot.

    Returns
    -------
    bytes
        The encoded message.
    """
    acceleration = motion.acceleration or (0.0, 0.0, 0.0)
    place = (*motion.position, *motion.velocity, *motion.attitude)
    return _POSE.pack(POSE, _microseconds(motion.time), *place, *motion.rate, *acceleration)


def encode_outputs(time: float, step: int, outputs: Mapping[str, Any]) -> bytes:
    """Return an outputs_t.

    Parameters
    ----------
    time : float
        Simulated time, s.
    step : int
        Index of the step.
    outputs : Mapping[str, Any]
        Outputs by name.

    Returns
    -------
    bytes
        The encoded message.
    """
    parts = [struct.pack(">Qqqi", OUTPUTS, _microseconds(time), step, len(outputs))]
    for name, value in outputs.items():
        values = value if isinstance(value, list) else [value]
        parts += (_text(name), struct.pack(f">i{len(values)}d", len(values), *values))
    return b"".join(parts)


def encode_command(utime: int, values: Mapping[str, float]) -> bytes:
    """Return a command_t, as a peer sends it.

    Parameters
    ----------
    utime : int
        Time stamp, us.
    values : Mapping[str, float]
        Values by name of the actuator.

    Returns
    -------
    bytes
        The encoded message.
    """
    head = _HEAD.pack(COMMAND, utime, len(values))
    return b"".join((head, *map(_text, values), struct.pack(f">{len(values)}d", *values.values())))


def parse(data: bytes) -> dict[str, float]:
    """Return the values of a command_t.

    Parameters
    ----------
    data : bytes
        The encoded message.

    Returns
    -------
    dict[str, float]
        Values by name of the actuator.

    Raises
    ------
    Refusal
        If the message is something else.
    """
    if len(data) > MAX_JSON_BYTES:
        raise Refusal("oversize", f"expected a message of at most {MAX_JSON_BYTES} bytes, got {len(data)}")
    try:
        fingerprint, _, n = _HEAD.unpack_from(data)
        if fingerprint != COMMAND:
            raise Refusal(
                "unknown_type",
                f"expected a message of type command_t (fingerprint {COMMAND:#x}), got "
                f"{fingerprint:#x}; generate the peer's types from rtmms.lcm",
            )
        if not 0 <= n <= _MAX_ACTUATORS:
            raise Refusal("wrong_length", f"expected at most {_MAX_ACTUATORS} actuators, got {n}")
        names, at = [], _HEAD.size
        for _ in range(n):
            (length,) = struct.unpack_from(">I", data, at)
            text = data[at + 4 : at + 4 + length]
            if length < 1 or len(text) != length or text[-1] != 0:
                raise Refusal("malformed", "expected names that end with a zero byte, got one without")
            names.append(text[:-1].decode())
            at += 4 + length
        values = struct.unpack_from(f">{n}d", data, at)
    except (struct.error, UnicodeDecodeError):
        raise Refusal("malformed", "expected a whole command_t, got fewer bytes") from None
    if at + 8 * n != len(data):
        raise Refusal("malformed", "expected a command_t only, got more bytes")
    if len(set(names)) != n:
        raise Refusal(
            "wrong_type",
            f"command_t: actuator {next(name for name in names if names.count(name) > 1)[:40]!r} is listed twice",
        )
    if not all(map(isfinite, values)):
        name, value = next(pair for pair in zip(names, values, strict=True) if not isfinite(pair[1]))
        raise Refusal("not_finite", f"command_t: expected finite numbers, got {value} for actuator {name[:40]!r}")
    return dict(zip(names, values, strict=True))


def fuzzed() -> Fuzzed:
    """Return the parser of a peer's bytes, for fuzz tests.

    Returns
    -------
    Fuzzed
        The code to try, and valid samples.
    """
    return fuzz(parse), [encode_command(1, {"left.front": 0.25, "left.back": -1.0}), encode_command(0, {})]


@dataclass(kw_only=True)
class Lcm(rtmms.Bridge):
    """States as LCM messages, and commands from them.

    Commands are taken only with a `claim`.

    The declaration of each field has its meaning, unit and range.

    Parameters
    ----------
    rate_hz : float, default 100.0
        States that `on_state` receives per second of simulated time; 0: all. Unit: Hz.
    """

    rate_hz: float = 100.0
    url: Annotated[str, Parameter(
        "Network of LCM, udpm://GROUP:PORT?ttl=N; N 0, or none: this machine only, both ways; 1: its network.",
    )] = "udpm://239.255.76.67:7667?ttl=0"  # fmt: skip
    prefix: Annotated[str, Parameter("Prefix of the channels PREFIX_POSE, PREFIX_OUTPUTS, PREFIX_COMMAND.")] = "RTMMS"
    pose: Annotated[PoseNames, Parameter(
        "Outputs of the plant that have its motion.",
    )] = field(default_factory=PoseNames)  # fmt: skip

    extra = "lcm"
    requires = {"lcm": "lcm"}  # noqa: RUF012

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        match = _URL.fullmatch(self.url)  # no others: tcpq waits for its relay, which a bridge must not
        if not match or not _is_group(match[1]) or not 0 < int(match[2]) < 65536:
            raise ModelError(f"url: expected udpm://GROUP:PORT?ttl=N with a multicast group, got '{self.url}'")
        longest = _MAX_CHANNEL_LENGTH - len("_OUTPUTS")
        if not 1 <= len(self.prefix) <= longest or not self.prefix.isascii() or not self.prefix.isprintable():
            raise ModelError(f"prefix: expected 1 to {longest} printable ASCII characters, got {self.prefix!r:.80}")

    @override
    def beyond(self) -> dict[str, str]:
        """Return the parameters that reach beyond this machine; messages with a ttl leave it."""
        return super().beyond() | ({"url": self.url} if _FAR.search(self.url) else {})

    @override
    def open(self, plant: rtmms.PlantInfo) -> None:
        """Open the multicast group."""
        import lcm

        plant = select_outputs(plant)
        known = {channel.name for channel in plant.outputs}
        moves = self.pose != PoseNames() or {self.pose.position, self.pose.quaternion} <= known
        self._motion = PoseReader(self.pose, plant, "lcm: pose", needs=("position", "quaternion")) if moves else None
        self._outputs = plant.selected
        try:
            self.lcm: Any = lcm.LCM(self.url)
        except RuntimeError:  # it reports no more; a reason, if any, is on standard error
            raise ModelError(
                f"url: LCM cannot be reached at '{self.url}'; multicast needs a route, also on one machine: "
                "ip link set lo multicast on; ip route add 239.255.76.67 dev lo"
            ) from None
        if self.claim:
            with nullcontext() if _FAR.search(self.url) else from_here(self.io.log):  # it joins the group now
                subscription = self.lcm.subscribe(f"{self.prefix}_COMMAND", self.on_command)
            subscription.set_queue_capacity(_MAX_MESSAGES)
            self.io.watch(self.lcm.fileno(), self.on_message)

    @override
    def on_state(self, state: rtmms.State) -> None:
        """Publish the state."""
        if self._motion is not None:
            self._publish("POSE", encode_pose(self._motion(state)))
        outputs = {name: state.outputs[name] for name in self._outputs if name in state.outputs}
        self._publish("OUTPUTS", encode_outputs(state.time, state.step, outputs))

    def _publish(self, channel: str, data: bytes) -> None:
        try:
            self.lcm.publish(f"{self.prefix}_{channel}", data)
            self.counts.add("sent")
        except OSError:
            self.counts.add("dropped")

    def on_message(self) -> None:
        """Read a few waiting messages."""
        for _ in range(_MAX_MESSAGES):
            if not self.lcm.handle_timeout(0):
                return

    def on_command(self, channel: str, data: bytes) -> None:
        """Handle a command.

        Parameters
        ----------
        channel : str
            Its channel.
        data : bytes
            The encoded message.
        """
        with self.counts.message():
            self.command(self.claimed(parse(bytes(data))))

    @override
    def close(self, reason: str) -> None:
        """Leave the group."""
        if hasattr(self, "lcm"):
            if self.claim:
                self.io.unwatch(self.lcm.fileno())
            del self.lcm


def _is_group(text: str) -> bool:
    try:
        return ipaddress.IPv4Address(text).is_multicast
    except ValueError:
        return False


def _microseconds(time: float) -> int:
    return round(time * 1e6)


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">I", len(data) + 1) + data + b"\0"
