"""The endpoints of a run, and the set-up of the machine that must come before them: children must know where to go."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from rtmms.cli.running.neighbour import who_is_at
from rtmms.loop.names import TIMED

if TYPE_CHECKING:
    from rtmms.cli.running.plan import Plan
    from rtmms.loop.machine.realtime import Readiness
    from rtmms.wire.plant.sockets import Sockets


def open_sockets(plan: Plan, stack: ExitStack) -> tuple[Readiness, Sockets, str]:
    """Timer and power states, the endpoints, and the token of whoever may claim. All are given back with the stack."""
    from rtmms.loop.machine.descriptors import raise_limit
    from rtmms.loop.machine.realtime import may_raise, parse_priority, prepare
    from rtmms.wire.places.endpoints import DEFAULTS
    from rtmms.wire.places.keys import read_client, read_server
    from rtmms.wire.places.tokens import new_token, remove_token, write_token
    from rtmms.wire.plant.sockets import Sockets, Threads
    from rtmms.wire.protocol.errors import BusyError

    raise_limit()
    keys = read_server(plan.keys) if plan.keys is not None else None
    if plan.keys is not None and (plan.controllers or plan.bridges):
        read_client(plan.keys)  # what is wrong with them is better said here than by each child
    priority, _ = parse_priority(plan.priority)
    ready = prepare(priority if plan.mode in TIMED else None, plan.affinity)
    stack.callback(ready.close)
    granted = priority if ready.asked is not None and may_raise(priority) else None
    threads = Threads(granted, ready.cores.loop, next(iter(ready.cores.others), None))
    exchange = plan.exchange if plan.may_move else plan.exchange or DEFAULTS["exchange"]
    try:
        sockets = Sockets(exchange, plan.step, plan.telemetry, free_ports=True, threads=threads, keys=keys)
    except BusyError as fault:
        raise BusyError(f"{fault}{who_is_at(fault.endpoint)}", fault.endpoint) from None
    stack.callback(sockets.close)
    if granted is not None:
        ready.done.append(f"I/O thread SCHED_FIFO {granted}" if sockets.io_thread else "exchange without I/O thread")
    # before the children look for it: the first hello is then granted, and not only the second
    token = new_token()
    write_token(sockets.endpoints["exchange"], token)
    stack.callback(remove_token, sockets.endpoints["exchange"], token)
    return ready, sockets, token


def moved(plan: Plan, endpoints: dict[str, str]) -> dict[str, str]:
    """The endpoints that are not the default ones nor those asked for."""
    from rtmms.wire.places.endpoints import DEFAULTS

    asked = {"exchange": plan.exchange, "step": plan.step, "telemetry": plan.telemetry}
    return {role: endpoint for role, endpoint in endpoints.items() if endpoint != (asked[role] or DEFAULTS[role])}
