"""Where things stand in the memory that a run's stand-in works on: rows of one number an actuator, and single words."""

from __future__ import annotations

(COMMAND, SLOPE, NEUTRAL, PREVIOUS, LOWER, UPPER, HOME_STEP) = range(7)
"""Rows of float64, see rtmms.loop.miss.Miss."""
NUMBERS = 7

(VALUED, SINCE) = range(2)
"""Rows of int64, ns: when an actuator had its last news, and when it was claimed."""
INSTANTS = 2

(HELD, MISSING, ANSWERED) = range(3)
"""Rows of uint8, see rtmms.loop.claims.Claims and Miss."""
FLAGS = 3

(POLICY, REMEMBER, OLDEST_NS, COMPLETE_NS, GRACE_UNTIL_NS, EXCUSED, STOOD_IN) = range(7)
"""Words: the policy, whether `extrapolate` is to be able to, the oldest age of a value, when all was in hand last, the
end of the grace; then what became of the last miss: whether it counts for nothing, and the policy that stood in."""
WORDS = 7

(INTERRUPTED, HANDED, TAKEN) = range(3)
"""What a compiled step came to: a signal before anything was done; the state is out, and the rest is for Python; all is
done."""

(NONE, HOLD, EXTRAPOLATE, HOME, ABORT) = range(5)
"""Policies."""
