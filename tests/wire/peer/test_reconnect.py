"""Links that outlive their plant, where they were asked to."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

import pytest

import rtmms
from rtmms.wire.peer.running import run_controller
from rtmms.wire.protocol.errors import RequestError
from tests.wire.bench import Host
from tests.wire.looping import Looping


def again(make_host: Callable[..., Host], old: Host) -> Looping:
    """Another plant in the place of the old one."""
    return Looping(make_host(exchange=old.exchange, token=None, free_ports=True))


@pytest.mark.parametrize("claim", [["*"], []])
def test_iteration_goes_on_with_the_next_plant(make_host: Callable[..., Host], claim: list[str]) -> None:
    first = make_host(token=None)
    sessions: list[str] = []
    with Looping(first) as running, rtmms.connect(first.exchange, claim=claim, reconnect=True) as link:
        before = link.plant
        sessions.append(link.plant.session)
        next(link)
        running.end("the first is over")
        with again(make_host, first) as second:
            for state in link:  # also over a state of the first that was still on its way
                if claim:
                    link.command({"left.front": 0.5})
                if link.plant is not before and state.step > 2:
                    break
            sessions.append(link.plant.session)
            assert link.lost == link.ended == ""
            if claim:
                second.wait(lambda: second.host.command[0] == 0.5)
    assert sessions == [first.server.session, second.host.server.session]
    assert link.ended == "the link is closed"


def test_while_there_is_no_plant_it_reports_it_and_nothing_is_raised_but_requests(
    make_host: Callable[..., Host],
) -> None:
    first = make_host(token=None)
    with Looping(first) as running, rtmms.connect(first.exchange, claim="*", reconnect=True) as link:
        next(link)
        running.end("enough")
        while not link.lost:
            link.poll()
            link.look_around()
        assert "the plant" in link.lost
        assert link.ended == ""
        dropped = link.dropped
        link.command({"left.front": 0.1})
        assert link.dropped == dropped + 1
        with pytest.raises(RequestError, match="the plant"):
            link.request("pause")
        assert link.poll() is None


class Counting(rtmms.Controller):
    def __init__(self) -> None:
        self.started: list[str] = []
        self.observed = threading.Event()
        self.enough = False

    def start(self, plant: rtmms.PlantInfo) -> None:
        self.started.append(plant.session)
        self.observed.clear()

    def update(self, state: rtmms.State) -> dict[str, float]:
        self.observed.set()
        if self.enough:
            raise SystemExit(0)
        return {"left.front": 0.25}


def test_a_controller_is_started_again_with_each_plant(make_host: Callable[..., Host]) -> None:
    first = make_host(token=None)
    controller = Counting()

    def drive() -> None:
        with contextlib.suppress(SystemExit):
            run_controller(controller, first.exchange, reconnect=True)

    thread = threading.Thread(target=drive)
    with Looping(first) as running:
        thread.start()
        assert controller.observed.wait(10)
        running.end("the first is over")
    with again(make_host, first) as second:
        second.wait(lambda: len(controller.started) == 2 and controller.observed.is_set())
        assert controller.started == [first.server.session, second.host.server.session]
        controller.enough = True
        thread.join(10)
        assert not thread.is_alive()
