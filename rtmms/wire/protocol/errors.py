"""Faults of the wire that a user may meet, apart from those of the models."""

from __future__ import annotations

from rtmms.errors import ModelError, RtmmsError


class EndpointError(RtmmsError):
    """An endpoint that cannot be bound or connected as asked; the text names it, the reason and a way out."""


class BusyError(EndpointError):
    """An endpoint at which another process is; `endpoint` is its address."""

    def __init__(self, text: str, endpoint: str) -> None:
        super().__init__(text)
        self.endpoint = endpoint


class AddressError(EndpointError, ModelError):
    """An endpoint whose words are wrong, or that may not be bound as asked: nothing is in its way but the asking."""


WRONG_WORDS = frozenset(("unknown_actuator", "unknown_output"))
"""Codes of a refusal that is due to what was asked for: exit status 2."""


class NotConnectedError(RtmmsError, ConnectionError):
    """No plant answered, or it turned the peer away; `code` is the plant's reason ('' where nobody answered)."""

    def __init__(self, text: str, code: str = "") -> None:
        super().__init__(text)
        self.code = code


class RequestError(RtmmsError):
    """A request (reset, stop, ...) that the plant refused (`refused`) or did not answer in time."""

    def __init__(self, text: str, refused: bool = False) -> None:
        super().__init__(text)
        self.refused = refused


class RefusedError(RtmmsError):
    """The plant refused something of this peer's, as `connect(errors="raise")` tells it; `code` says of what kind."""

    def __init__(self, text: str, code: str) -> None:
        super().__init__(text)
        self.code = code
