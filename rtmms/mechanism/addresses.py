"""Addresses as pointers, for the doors of this folder (rtmms.addresses)."""

from __future__ import annotations

from rtmms.addresses import flags_at, integers_at, numbers_at, pointer_to

__all__ = ["flags_at", "integers_at", "numbers_at", "pointer_to"]
