"""Robot for ROS 2 tools, over DDS and without ROS: odometry, IMU, joints, clock, transforms.

Names of topics and types, and the encoding, are those of ROS 2 (docs/bridges/dds.md). Cyclone DDS receives in its own
thread; an inbox signals the bridge's loop that something came.
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import floor, isfinite
from typing import Annotated, Any, Literal
from xml.sax.saxutils import quoteattr

import rtmms
from rtmms.base.attitude import Vector
from rtmms.base.errors import ModelError
from rtmms.base.override import override
from rtmms.base.parameters import Parameter
from rtmms.bridging.untrusted import Fuzzed, Refusal, fuzz

from .lines.from_here import from_here
from .lines.inbox import Inbox
from .messages.selected import select_outputs
from .motion.frames import xyzw
from .motion.imu import Imu, gravity_of
from .motion.joints import Joints
from .motion.pose import Motion, PoseNames, PoseReader

MAX_COMMANDS = 16
"""Commands that are read together; of more, the oldest are dropped."""

HASHES = {
    "Odometry": "3cc97dc7fb7502f8714462c526d369e35b603cfc34d946e3f2eda2766dfec6e0",
    "Imu": "7d9a00ff131080897a5ec7e26e315954b8eae3353c3f995c55faf71574000b5b",
    "JointState": "a13ee3a330e346c9d87b5aa18d24e11690752bd33a0350f11c5882bc9179260e",
    "Clock": "692f7a66e93a3c83e71765d033b60349ba68023a8c689a79e48078bcb5c58564",
    "TFMessage": "e369d0f05a23ae52508854b66f6aa0437f3449d652e8cbf22d5abe85d020f087",
    "Float64MultiArray": "1025ddc6b9552d191f89ef1a8d2f60f3d373e28b283d8891ddcc974e8c55397f",
}
"""Hashes that ROS 2 sends with a type's name (REP 2011), from Iron on; older versions ignore them."""

_CONFIGURED = """<CycloneDDS><Domain><General><Interfaces><NetworkInterface {}={}/></Interfaces>{}</General>{}
<Internal><MaxSampleSize>256 KiB</MaxSampleSize></Internal></Domain></CycloneDDS>"""
"""Configuration of Cyclone DDS; longer samples are refused, because the library reads them in Python, at 0.3 s a MiB.
"""
_FATAL = 1
_ERROR = 2
_INTERFACE = re.compile(r"[A-Za-z0-9_.:%-]{1,64}")
"""Name or address of a network interface; Cyclone DDS would expand ${VARIABLE} in other texts."""
_ALONE = "<AllowMulticast>false</AllowMulticast>"
_LOCAL = """<Discovery><SPDPInterval>1s</SPDPInterval>
<ParticipantIndex>auto</ParticipantIndex><MaxAutoParticipantIndex>32</MaxAutoParticipantIndex>
<Peers><Peer address="localhost"/></Peers></Discovery>"""


def is_loopback(interface: str) -> bool:
    """Return whether an interface is loopback.

    Parameters
    ----------
    interface : str
        Its name or address.

    Returns
    -------
    bool
        True if it is.
    """
    return interface in ("lo", "lo0", "::1") or interface.startswith("127.")


def hush() -> None:
    """Limit Cyclone DDS's output to its errors.

    Otherwise it writes a line of 300 bytes for each malformed packet of a stranger, 10,000 a second. Its configuration
    has no such option.
    """
    with contextlib.suppress(ImportError, AttributeError):  # it offers this in C alone
        from cyclonedds.internal import DDS

        DDS._dll_handle.dds_set_log_mask(_FATAL | _ERROR)


def configuration(interface: str) -> str:
    """Return Cyclone DDS's configuration for one interface.

    On loopback there is no multicast, and localhost is the only peer. The bridge announces itself to it each second,
    because others may search by multicast alone. On other interfaces DDS finds others as by default.

    Parameters
    ----------
    interface : str
        Its name or address.

    Returns
    -------
    str
        The XML.
    """
    try:
        ipaddress.ip_address(interface)
        kind = "address"
    except ValueError:
        kind = "name"
    local = is_loopback(interface)
    return _CONFIGURED.format(kind, quoteattr(interface), _ALONE if local else "", _LOCAL if local else "")


MEMBERS = {"rad/s": "velocity", "m/s": "velocity", "N m": "effort", "N": "effort"}
"""Member of a JointState by the actuator's unit; all others are positions."""


def values_of(message: Any, actuators: Mapping[str, str]) -> dict[str, float]:
    """Return the actuator values of a message.

    Parameters
    ----------
    message : Any
        A JointState (by name, each from the member with its unit) or a Float64MultiArray (in the order of the claimed
        actuators).
    actuators : Mapping[str, str]
        Units of the claimed actuators by name.

    Returns
    -------
    dict[str, float]
        Values by name.

    Raises
    ------
    Refusal
        If a name is unknown or occurs twice, or if a number is missing or not finite.
    """
    if not hasattr(message, "name"):
        names = list(actuators)
        return _picked(names, names, message.data[message.layout.data_offset :])
    names = list(message.name)
    if len(set(names)) != len(names):
        raise Refusal(
            "wrong_type",
            f"JointState: joint {next(name for name in names if names.count(name) > 1)[:40]!r} is listed twice",
        )
    if not set(names) <= set(actuators):
        raise Refusal(
            "unknown_actuator",
            "JointState: expected claimed actuators only, got "
            f"{min(set(names) - set(actuators))[:40]!r}; add it to claim=",
        )
    values: dict[str, float] = {}
    for member in ("position", "velocity", "effort"):
        of_it = [name for name in names if MEMBERS.get(actuators[name], "position") == member]
        if of_it:
            values |= _picked(of_it, names, getattr(message, member))
    return values


def _picked(wanted: list[str], names: list[str], numbers: Any) -> dict[str, float]:
    if len(numbers) != len(names):
        raise Refusal("wrong_length", f"expected {len(names)} numbers, got {len(numbers)}")
    result = {name: float(number) for name, number in zip(names, numbers, strict=True) if name in wanted}
    if not all(map(isfinite, result.values())):
        raise Refusal(
            "not_finite",
            "expected finite numbers, got "
            f"{', '.join(f'{name[:40]}={value}' for name, value in result.items() if not isfinite(value))}",
        )
    return result


def fuzzed() -> Fuzzed:
    """Return the parser of a JointState's bytes, through the library's own reader, for fuzz tests.

    Returns
    -------
    Fuzzed
        The code to try, and valid samples.
    """
    from .messages.ros2 import JointState

    names = {"left.front": "rad", "left.back": "N m"}

    def parse(data: bytes) -> dict[str, float]:
        """Return the values of a JointState.

        Parameters
        ----------
        data : bytes
            The serialized message.

        Returns
        -------
        dict[str, float]
            Values by name.

        Raises
        ------
        Refusal
            If it is no JointState.
        """
        try:
            message = JointState.deserialize(data)
        except Exception:  # the library's, of many kinds
            raise Refusal("malformed", "not a JointState") from None
        return values_of(message, names)

    return fuzz(parse), [JointState(name=list(names), position=[0.25, -0.5], effort=[0.0, 1.5]).serialize()]


@dataclass(kw_only=True)
class Dds(rtmms.Bridge):
    """The robot over DDS as ROS 2 tools see one: odometry, IMU, joints, clock, transforms.

    The declaration of each field has its meaning, unit and range.

    Parameters
    ----------
    outputs : tuple[str, ...], optional
        Outputs to receive, as names or patterns; none: all but fields, such as the joints of every chain.
    rate_hz : float, default 50.0
        States that `on_state` receives per second of simulated time; 0: all. Unit: Hz.
    """

    outputs: tuple[str, ...] = ("*",)
    rate_hz: float = 50.0
    domain: Annotated[int, Parameter("Domain of DDS, as ROS_DOMAIN_ID.", ge=0, le=232)] = 0
    interface: Annotated[str, Parameter(
        "Network interface, by address or name; auto: as Cyclone DDS is configured (CYCLONEDDS_URI).",
    )] = "127.0.0.1"  # fmt: skip
    namespace: Annotated[str, Parameter(
        "Namespace of the topics: rt/NAMESPACE/odom; clock and tf have none.",
    )] = ""  # fmt: skip
    odom: Annotated[str, Parameter("Frame of the odometry.")] = "odom"
    body: Annotated[str, Parameter("Frame of the body.")] = "base_link"
    tf: Annotated[bool, Parameter("Whether to publish the transform from odom to body as rt/tf, too.")] = True
    fin_joints: Annotated[bool, Parameter(
        "Whether joint_states has the joints of each chain of a fin, too (`left_fin_LINK_CHAIN`).",
    )] = False  # fmt: skip
    reliability: Annotated[Literal["reliable", "best_effort"], Parameter(
        "Quality of service of the topics; a best-effort reader reads both.",
    )] = "reliable"  # fmt: skip
    depth: Annotated[int, Parameter("Messages that are stored for a slow reader.", ge=1, le=10_000)] = 10
    command_type: Annotated[Literal["JointState", "Float64MultiArray"], Parameter(
        "Type of rt/joint_commands, which needs a `claim`.",
    )] = "JointState"  # fmt: skip
    pose: Annotated[PoseNames, Parameter(
        "Outputs of the plant that have its motion.",
    )] = field(default_factory=PoseNames)  # fmt: skip
    gravity: Annotated[float | None, Parameter(
        "Gravity in the readings of the IMU; none: the plant's own.", "m/s2", signed=True,
    )] = None  # fmt: skip

    extra = "dds"
    requires = {"cyclonedds": "cyclonedds"}  # noqa: RUF012

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        if not _INTERFACE.fullmatch(self.interface):
            raise ModelError(f"interface: expected the name or address of an interface, got {self.interface!r:.80}")
        for key in ("odom", "body"):
            if not getattr(self, key):
                raise ModelError(f"{key}: expected the name of a frame, got ''")
        if not all(part.isidentifier() and part.isascii() for part in self.namespace.split("/") if part):
            raise ModelError(f"namespace: expected names separated by '/', got '{self.namespace}'")

    @override
    def beyond(self) -> dict[str, str]:
        return super().beyond() | ({} if is_loopback(self.interface) else {"interface": self.interface})

    @override
    def open(self, plant: rtmms.PlantInfo) -> None:
        """Join the domain, and create the topics."""
        from cyclonedds.core import DDSException
        from cyclonedds.domain import DomainParticipant

        self._failed: type[Exception] = DDSException
        self.inbox: Inbox[None] = Inbox(1)
        self.attend(self.inbox, self.on_message)
        plant = select_outputs(plant)
        self._motion = PoseReader(self.pose, plant, "dds: pose", needs=("position", "quaternion"))
        self._moving = {self.pose.velocity, self.pose.angular_velocity} <= set(self._motion.outputs)
        self._imu = Imu(gravity_of(plant) if self.gravity is None else self.gravity)
        self._joints = Joints(plant, self.fin_joints)
        hush()
        here = from_here(self.io.log) if is_loopback(self.interface) else contextlib.nullcontext()
        try:
            with here:  # its sockets are open to all, whatever the interface
                self._domain = self._configured()
                self.participant = DomainParticipant(self.domain)
        except DDSException as fault:
            raise ModelError(f"dds: domain {self.domain} on interface '{self.interface}': {fault}") from None
        self._writers = {
            name: self._writer(name, kind)
            for name, kind in _PUBLISHED
            if {"tf": self.tf, "joint_states": self._joints.names, "imu": self._moving}.get(name, True)
        }
        if self.claim:
            units = {channel.name: channel.unit for channel in plant.actuators}
            self._units = {name: units[name] for name in plant.granted}
            self._reader = self._listening()

    def _configured(self) -> Any:
        """Return the domain with our configuration; None if Cyclone has its own, or this process has it already."""
        from cyclonedds.core import DDSException
        from cyclonedds.domain import Domain

        if self.interface == "auto":
            return None
        try:
            return Domain(self.domain, configuration(self.interface))
        except DDSException as fault:
            if fault.code == DDSException.DDS_RETCODE_PRECONDITION_NOT_MET:
                return None
            raise

    def _qos(self, kind: str) -> Any:
        """Return ROS 2's default: reliable, the last 10, no history for late joiners.

        But a write never waits for a reader.
        """
        from cyclonedds.core import Policy, Qos

        reliable = self.reliability == "reliable"
        return Qos(
            Policy.Reliability.Reliable(0) if reliable else Policy.Reliability.BestEffort,
            Policy.History.KeepLast(self.depth),
            Policy.Durability.Volatile,
            Policy.DataRepresentation(use_cdrv0_representation=True),
            Policy.Userdata(f"typehash=RIHS01_{HASHES[kind]};".encode()),
        )

    def _topic(self, name: str, kind: str) -> Any:
        from cyclonedds.topic import Topic

        from .messages import ros2 as types

        parts = [part for part in self.namespace.split("/") if part]
        absolute = name in ("clock", "tf")  # these two are the same for all robots
        return Topic(self.participant, "/".join(["rt", *([] if absolute else parts), name]), getattr(types, kind))

    def _writer(self, name: str, kind: str) -> Any:
        from cyclonedds.pub import DataWriter

        return DataWriter(self.participant, self._topic(name, kind), qos=self._qos(kind))

    def _listening(self) -> Any:
        from cyclonedds.core import Listener, Policy, Qos
        from cyclonedds.sub import DataReader

        class ReaderListener(Listener):  # type: ignore[misc]
            def on_data_available(_, reader: Any) -> None:
                self.inbox.put(None)

            def on_subscription_matched(_, reader: Any, status: Any) -> None:
                self._drivers = status.current_count
                self.inbox.put(None)

        qos = Qos(
            Policy.Reliability.BestEffort,  # takes from reliable writers, too, and never holds one up
            Policy.History.KeepLast(MAX_COMMANDS),
            Policy.DataRepresentation(use_cdrv0_representation=True),
            Policy.Userdata(f"typehash=RIHS01_{HASHES[self.command_type]};".encode()),
        )
        self._drivers, self._driven = 0, False
        topic = self._topic("joint_commands", self.command_type)
        return DataReader(self.participant, topic, qos=qos, listener=ReaderListener())

    @override
    def on_state(self, state: rtmms.State) -> None:
        """Publish the state."""
        from .messages import ros2 as ros

        motion = self._motion(state)
        at = _time(state.time)
        x, y, z, w = xyzw(motion.attitude)
        turned = ros.Quaternion(x, y, z, w)
        self._write("clock", ros.Clock(at))
        self._write("odom", self._odometry(ros, at, motion, turned))
        if self._moving:
            force = ros.Vector3(*self._imu.specific_force(motion))
            imu = ros.Imu(ros.Header(at, self.body), turned)
            imu.angular_velocity, imu.linear_acceleration = ros.Vector3(*motion.rate), force
            self._write("imu", imu)
        if self.tf:
            moved = ros.Transform(ros.Vector3(*motion.position), turned)
            self._write("tf", ros.TFMessage([ros.TransformStamped(ros.Header(at, self.odom), self.body, moved)]))
        if self._joints.names:
            angles, rates, torques = self._joints(state)
            names = list(self._joints.names)
            self._write("joint_states", ros.JointState(ros.Header(at, ""), names, angles, rates, torques))

    def _odometry(self, ros: Any, at: Any, motion: Motion, turned: Any) -> Any:
        def twist(linear: Vector, angular: Vector) -> Any:
            return ros.Twist(ros.Vector3(*linear), ros.Vector3(*angular))

        return ros.Odometry(
            header=ros.Header(at, self.odom), child_frame_id=self.body,
            pose=ros.PoseWithCovariance(ros.Pose(ros.Point(*motion.position), turned)),
            twist=ros.TwistWithCovariance(
                twist(motion.velocity_body, motion.rate), ros.ZEROS_36 if self._moving else _UNKNOWN
            ),
        )  # fmt: skip

    def _write(self, name: str, message: Any) -> None:
        try:
            self._writers[name].write(message)
            self.counts.add("sent")
        except self._failed:  # a reliable reader is too slow: it loses this one
            self.counts.add("dropped")

    def on_message(self) -> None:
        """Read commands of others; the newest wins."""
        self.inbox.take_all()
        try:
            messages = self._reader.take(MAX_COMMANDS)
        except Exception:  # what is no message of this type, in whatever way the library finds out
            self.counts.refuse("malformed")
            return
        for message in messages:
            if not hasattr(message, "layout") and not hasattr(message, "name"):
                continue  # a writer has gone
            with self.counts.message():
                self.command(values_of(message, self._units))
                self._driven = True
        if self._driven and not self._drivers:
            self._driven = False
            self.on_peer_lost("nobody is left who publishes commands")

    @override
    def close(self, reason: str) -> None:
        """Leave the domain."""
        if hasattr(self, "participant"):
            self._reader = None
            self._writers = {}
            del self.participant
            self._domain = None
        super().close(reason)


_UNKNOWN = (-1.0, *(0.0,) * 35)
"""Covariance for unknown values."""

_PUBLISHED = (
    ("clock", "Clock"), ("odom", "Odometry"), ("imu", "Imu"), ("tf", "TFMessage"), ("joint_states", "JointState"),
)  # fmt: skip


def _time(time: float) -> Any:
    """Return simulated s as ROS 2's Time."""
    from .messages.ros2 import Time

    whole = floor(time)
    nanoseconds = min(999_999_999, round((time - whole) * 1e9))
    return Time(whole, nanoseconds)
