"""Errors of the wire that a user may meet, apart from those of the models."""

from __future__ import annotations

from rtmms.base.errors import ModelError, RtmmsError


class EndpointError(RtmmsError):
    """Failure to bind or connect an endpoint.

    The text names the endpoint, the reason and a remedy.
    """


class BusyError(EndpointError):
    """Failure to bind an endpoint that another process uses.

    Parameters
    ----------
    text : str
        The error message.
    endpoint : str
        Address of the endpoint.
    """

    def __init__(self, text: str, endpoint: str) -> None:
        super().__init__(text)
        self.endpoint = endpoint


class AddressError(EndpointError, ModelError):
    """Endpoint of a wrong form, or one that may not be bound as requested."""


ARGUMENT_ERRORS = frozenset(("unknown_actuator", "unknown_output"))
"""Codes of refusals that the request itself causes: exit status 2."""


class NotConnectedError(RtmmsError, ConnectionError):
    """Failure to connect: no plant answered, or it refused the peer.

    Parameters
    ----------
    text : str
        The error message.
    code : str, default ''
        The plant's reason; empty if no plant answered.
    """

    def __init__(self, text: str, code: str = "") -> None:
        super().__init__(text)
        self.code = code


class RequestError(RtmmsError):
    """Failure of a request such as reset or stop.

    Parameters
    ----------
    text : str
        The error message.
    refused : bool, default False
        Whether the plant refused it. Otherwise no answer came in time.
    """

    def __init__(self, text: str, refused: bool = False) -> None:
        super().__init__(text)
        self.refused = refused


class RefusedError(RtmmsError):
    """Refusal of a message of this peer, as `connect(errors="raise")` raises it.

    Parameters
    ----------
    text : str
        The error message.
    code : str
        The plant's reason.
    """

    def __init__(self, text: str, code: str) -> None:
        super().__init__(text)
        self.code = code
