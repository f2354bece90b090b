"""Machine's set-up of a run: endpoints, timer and cores, and the stall detector."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from rtmms.base.contract import TIMED
from rtmms.base.errors import RtmmsError

if TYPE_CHECKING:
    from rtmms.cli.running.plan import Plan
    from rtmms.loop.fault_attribution import FaultAttribution
    from rtmms.loop.machine import Readiness
    from rtmms.loop.statistics import Statistics
    from rtmms.wire.plant.sockets import Sockets


def open_sockets(plan: Plan, stack: ExitStack) -> tuple[Readiness, Sockets, str]:
    """Prepare timer and power states, the endpoints, and the token of claimants; the stack releases them.

    Parameters
    ----------
    plan : Plan
        The plan.
    stack : ExitStack
        Stack of the run.

    Returns
    -------
    tuple[Readiness, Sockets, str]
        Set-up of the machine, sockets, token.

    Raises
    ------
    BusyError
        Another process has an endpoint.
    """
    from rtmms.loop.machine import may_raise, parse_priority, prepare, raise_limit
    from rtmms.wire.addresses import DEFAULTS
    from rtmms.wire.keys import read_client, read_server
    from rtmms.wire.libzmq.threads import Threads
    from rtmms.wire.plant.sockets import Sockets
    from rtmms.wire.protocol.errors import BusyError
    from rtmms.wire.session_files import new_token, remove_token, write_token

    raise_limit()
    keys = read_server(plan.keys) if plan.keys is not None else None
    if plan.keys is not None and (plan.controllers or plan.bridges):
        read_client(plan.keys)  # what is wrong with them is better reported here than by each child
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


def changed_endpoints(plan: Plan, endpoints: dict[str, str]) -> dict[str, str]:
    """Return the endpoints that are neither the default ones nor the requested ones.

    Parameters
    ----------
    plan : Plan
        The plan.
    endpoints : dict[str, str]
        Endpoints by role.

    Returns
    -------
    dict[str, str]
        Endpoints by role.
    """
    from rtmms.wire.addresses import DEFAULTS

    asked = {"exchange": plan.exchange, "step": plan.step, "telemetry": plan.telemetry}
    return {role: endpoint for role, endpoint in endpoints.items() if endpoint != (asked[role] or DEFAULTS[role])}


# --- Who is at an endpoint that a plant wanted for itself: for the sentence that reports it as busy.

_WAIT_S = 1.0


def who_is_at(exchange: str) -> str:
    """Return a text about the plant of this user at an endpoint, as ' (manta runs there, for 12 s, driven by gait)'.

    Parameters
    ----------
    exchange : str
        The endpoint.

    Returns
    -------
    str
        '' where it cannot be found out.
    """
    from rtmms.wire.peer.client import connect

    try:
        link = connect(exchange, name="rtmms", timeout_s=_WAIT_S, errors="collect")
    except RtmmsError:
        return ""
    try:
        robot = link.plant.robot
        status = link.request("status", timeout_s=_WAIT_S)
        drivers = [peer["name"] for peer in status["peers"] if peer["claim"] and peer["state"] == "live"]
        driven = f"driven by {', '.join(drivers)}" if drivers else "no peer drives it"
        return f": {robot} runs there, for {status['wall_s']:.0f} s, {driven} (rtmms stop ends it)"
    except (RtmmsError, KeyError, TypeError, ValueError):
        return f": a plant runs there, {link.plant.robot}"
    finally:
        link.close()


# --- The stall detector of a run, and the attribution of its faults.


def await_stall_detector(attribution: FaultAttribution | None, ready: Readiness) -> None:
    """Wait until the stall detector runs; without it the run continues, and reports that.

    Parameters
    ----------
    attribution : FaultAttribution | None
        Fault attribution of the run, or None.
    ready : Readiness
        Set-up of the machine; results are noted in it.
    """
    from rtmms.loop.stall_detector import Stalls

    if attribution is not None and isinstance(attribution.saw, Stalls):
        if attribution.saw.await_first():
            attribution.saw.take()  # what was before the run is nobody's fault
            ready.done.append(f"stall detector on cores {list(attribution.saw.cores)}")
        else:
            attribution.saw = None
            ready.failed.append("stall detector: it did not begin in time; stalls of the machine are not attributed")


def begin_attribution(
    ready: Readiness, statistics: Statistics, stack: ExitStack, *, alone: bool
) -> FaultAttribution | None:
    """Start fault attribution for a run on a schedule.

    It has a stall detector where real time is requested and permitted. The stall detector starts while the peers do,
    and ends with the stack. It watches the cores that a step depends on.

    Parameters
    ----------
    ready : Readiness
        Set-up of the machine.
    statistics : Statistics
        Statistics of the run.
    stack : ExitStack
        Stack of the run.
    alone : bool
        All controllers are the run's own; others may be on any core.

    Returns
    -------
    FaultAttribution | None
        None without a schedule.
    """
    from rtmms.loop.fault_attribution import FaultAttribution
    from rtmms.loop.stall_detector import StallDetector

    if statistics.deadline_us is None:
        return None
    period_ns, deadline_ns = (statistics.period_us or 0.0) * 1e3, round(statistics.deadline_us * 1e3)
    attribution = FaultAttribution(period_ns, deadline_ns)
    if ready.asked is not None:
        try:
            pinned = alone and ready.cores.loop is not None
            cores = {ready.cores.loop or 0, *ready.cores.controllers} if pinned else ready.allowed
            detector = StallDetector(ready.asked, deadline_ns, sorted(cores), round(period_ns))
        except RtmmsError as error:
            ready.failed.append(str(error))
        else:
            stack.callback(detector.close)
            attribution.saw, attribution.look_after_ns = detector.stalls, detector.from_step_ns
    return attribution
