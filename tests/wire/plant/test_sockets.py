"""A default endpoint that is busy moves; the same endpoint, asked for by name, does not."""

from __future__ import annotations

import pytest

from rtmms.base.errors import RtmmsError
from rtmms.wire.plant import sockets
from rtmms.wire.plant.sockets import Sockets

ANY = "tcp://127.0.0.1:*"


def test_a_busy_endpoint_that_was_asked_for_is_not_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    first = Sockets(ANY, ANY, ANY)
    try:
        busy = first.endpoints["exchange"]
        monkeypatch.setitem(sockets.DEFAULTS, "exchange", busy)
        moved = Sockets(None, ANY, ANY, free_ports=True)
        assert moved.endpoints["exchange"] != busy
        moved.close()
        with pytest.raises(RtmmsError, match=busy.rsplit(":", 1)[1]):
            Sockets(busy, ANY, ANY, free_ports=True)
    finally:
        first.close()
