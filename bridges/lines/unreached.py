"""Reasons of failed connections, for a user."""

from __future__ import annotations

import socket
import ssl


def why_unreached(fault: BaseException | None) -> str:
    """Return the reason of a failed connection or TLS handshake.

    Parameters
    ----------
    fault : BaseException | None
        The exception.

    Returns
    -------
    str
        The reason.
    """
    if isinstance(fault, ssl.SSLCertVerificationError):
        why = fault.verify_message
        if "mismatch" in why:
            return f"its certificate is another host's: {why}"
        return f"its certificate is not trusted: {why}; ca_file names the authorities to trust"
    if isinstance(fault, ssl.SSLEOFError | ConnectionResetError):
        return "it hangs up in the middle of the handshake: does it speak TLS there?"
    if isinstance(fault, ssl.SSLError):
        reason = fault.reason or "no reason"
        if reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"):
            return "it does not speak TLS there"
        return f"TLS: {reason.replace('_', ' ').lower()}"
    if isinstance(fault, socket.gaierror):
        return f"no address for that name: {fault.strerror}"
    if isinstance(fault, TimeoutError):
        return "no answer in time"
    if isinstance(fault, OSError):
        return fault.strerror or str(fault) or type(fault).__name__
    return "no reason is known"
