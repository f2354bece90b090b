"""Who is at an endpoint that a plant wanted for itself: for the sentence that says it is busy."""

from __future__ import annotations

from rtmms.errors import RtmmsError

_WAIT_S = 1.0


def who_is_at(exchange: str) -> str:
    """' (manta runs there, for 12 s, driven by gait)' for a plant of this user's, '' where it cannot be found out."""
    from rtmms.wire.peer.connecting import connect

    try:
        link = connect(exchange, name="rtmms", timeout_s=_WAIT_S, errors="collect")
    except RtmmsError:
        return ""
    try:
        robot = link.plant.robot
        told = link.request("status", timeout_s=_WAIT_S)
        drivers = [peer["name"] for peer in told["peers"] if peer["claim"] and peer["state"] == "live"]
        driven = f"driven by {', '.join(drivers)}" if drivers else "driven by nobody"
        return f": {robot} runs there, for {told['wall_s']:.0f} s, {driven} (rtmms stop ends it)"
    except (RtmmsError, KeyError, TypeError, ValueError):
        return f": a plant runs there, {link.plant.robot}"
    finally:
        link.close()
