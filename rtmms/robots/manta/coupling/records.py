"""Addresses as pointers: to numbers, and to the records of a manta."""

from __future__ import annotations

from numba import from_dtype

from rtmms.addresses import numbers_at, pointer_to
from rtmms.robots.manta.coupling.layout import FINNED_DTYPE
from rtmms.robots.manta.kernels.body import BODY_DTYPE

__all__ = ["BODY_RECORD", "FINNED_RECORD", "body_at", "finned_at", "numbers_at"]

FINNED_RECORD, BODY_RECORD = from_dtype(FINNED_DTYPE), from_dtype(BODY_DTYPE)

finned_at, body_at = pointer_to(FINNED_RECORD), pointer_to(BODY_RECORD)
