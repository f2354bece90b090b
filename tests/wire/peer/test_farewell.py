"""Leaving a plant: a controller that is done lets go of its actuators, one that fails does not."""

from __future__ import annotations

import pytest

from rtmms.wire.peer.client import Link


class Messages:
    """A link's sockets, taken out: what `close` got."""

    def __init__(self) -> None:
        self.messages = output = list[bool]()

        class Quiet(Link):
            def close(self, reason: str = "done", *, bye: bool = True) -> None:
                output.append(bye)

        self.link = Quiet.__new__(Quiet)


@pytest.mark.parametrize(
    ("fault", "bye"),
    [
        (None, True),
        (KeyboardInterrupt(), True),
        (SystemExit(0), True),
        (SystemExit(None), True),
        (SystemExit(3), False),
        (SystemExit("no"), False),
        (ValueError("in the law"), False),
    ],
)
def test_only_a_controller_that_means_to_go_sends_bye(fault: BaseException | None, bye: bool) -> None:
    parts = Messages()
    parts.link.__exit__(type(fault) if fault else None, fault, None)
    assert parts.messages == [bye]
