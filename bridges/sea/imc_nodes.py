"""Nodes of an IMC network: announces by multicast, and the sockets of messages."""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass

import rtmms

from ..lines.addresses import bind_udp
from .imc_messages import udp_services

GROUP = "224.0.75.69"
PORTS = range(30100, 30105)
_MAX_SILENCE_S = 60.0
_MAX_NODES = 32
_MULTICAST_ALL = 49  # linux/in.h


@dataclass(slots=True)
class Node:
    """Node that has announced itself.

    Parameters
    ----------
    number : int
        Its IMC number.
    name : str
        Its name.
    place : tuple[str, int]
        Address where it receives.
    received_at : float
        Monotonic time of its last message, s.
    """

    number: int
    name: str
    place: tuple[str, int]
    received_at: float


class Nodes:
    """Present nodes by number and name; one that sends nothing for a minute is removed."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str], Node] = {}

    def __iter__(self):  # type: ignore[no-untyped-def]
        """Iterate over the nodes."""
        return iter(list(self._known.values()))

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self._known)

    def announced(self, number: int, name: str, services: str, sender: str, now: float) -> Node | None:
        """Handle an announce.

        The node receives at its announced port, at the address of the sender. So nobody can make us send to a third
        party.

        Parameters
        ----------
        number : int
            IMC number.
        name : str
            Its name.
        services : str
            Its services.
        sender : str
            Host of the sender.
        now : float
            Monotonic time, s.

        Returns
        -------
        Node | None
            The node if it is new, else None.
        """
        ports = list(udp_services(services))
        port = next((port for host, port in ports if host == sender), ports[0][1] if ports else 0)
        if not port:
            return None
        self._known.pop((number, ""), None)  # that it spoke before it sent its name
        known = self._known.get((number, name))
        if known is not None:
            known.place, known.received_at = (sender, port), now
            return None
        if len(self._known) >= _MAX_NODES:
            return None
        self._known[number, name] = node = Node(number, name, (sender, port), now)
        return node

    def receive(self, number: int, now: float) -> bool:
        """Record a message of a node.

        Parameters
        ----------
        number : int
            IMC number.
        now : float
            Monotonic time, s.

        Returns
        -------
        bool
            Whether the node is known.
        """
        mine = [node for node in self._known.values() if node.number == number]
        for node in mine:
            node.received_at = now
        return bool(mine)

    def spoke(self, number: int, sender: tuple[str, int], now: float) -> None:
        """Add a node whose heartbeat reaches us, but not its announces; it is answered at its sending address.

        Parameters
        ----------
        number : int
            IMC number.
        sender : tuple[str, int]
            Its sending address.
        now : float
            Monotonic time, s.
        """
        if len(self._known) < _MAX_NODES:
            self._known[number, ""] = Node(number, f"{number:#06x}", sender, now)

    def forget(self, now: float) -> list[Node]:
        """Remove silent nodes.

        Parameters
        ----------
        now : float
            Monotonic time, s.

        Returns
        -------
        list[Node]
            The removed nodes.
        """
        gone = [key for key, node in self._known.items() if now - node.received_at > _MAX_SILENCE_S]
        return [self._known.pop(key) for key in gone]

    def find(self, number: int) -> Node | None:
        """Return a node.

        Parameters
        ----------
        number : int
            IMC number.

        Returns
        -------
        Node | None
            The node; None for none.
        """
        return next((node for node in self._known.values() if node.number == number), None)


def message_socket(network: str, port: int) -> socket.socket:
    """Return the socket of messages in both directions.

    Parameters
    ----------
    network : str
        Address of the network.
    port : int
        The port.

    Returns
    -------
    socket.socket
        The socket.

    Raises
    ------
    RtmmsError
        If the address cannot be bound.
    """
    return bind_udp(socket.AF_INET, (network, port), f"UDP {network}:{port}")


def announce_socket(network: str) -> tuple[socket.socket, int]:
    """Return the socket for announces to the group, on one network alone.

    Parameters
    ----------
    network : str
        Address of the network.

    Returns
    -------
    tuple[socket.socket, int]
        The socket and its port.

    Raises
    ------
    RtmmsError
        If no port is free.
    """
    fault: OSError | None = None
    for port in PORTS:
        built = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        built.setblocking(False)
        try:
            built.bind((GROUP, port))  # what is sent to the group alone
            membership = socket.inet_aton(GROUP) + socket.inet_aton(network)
            built.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
            with contextlib.suppress(OSError):
                built.setsockopt(socket.IPPROTO_IP, _MULTICAST_ALL, 0)  # not what others of this machine joined for
            return built, port
        except OSError as problem:
            built.close()
            fault = problem
    raise rtmms.RtmmsError(
        f"cannot receive announces at {GROUP}, ports 30100 to 30104: {fault.strerror if fault else ''}"
    )


def let_announce(built: socket.socket, network: str, far: bool) -> None:
    """Set up the socket that sends announces over a network.

    Parameters
    ----------
    built : socket.socket
        The socket.
    network : str
        Address of the network.
    far : bool
        Whether announces may leave this machine.
    """
    with contextlib.suppress(OSError):
        built.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(network))
        built.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 5 if far else 0)
