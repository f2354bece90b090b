"""Where things stand in the memory by which compiled code writes a step's row for a recorder: single words."""

from __future__ import annotations

(MADE, FREED, ROWS, ROW_BYTES, CAPACITY, HEAD, N_HEAD, SOURCES, N_SOURCES, ACCOUNT, ARGUMENTS) = range(11)
"""Given. Of the ring (rtmms.record.ring): addresses of the count of rows that were made and of those that are free
again, of the first row; bytes of a row, rows. Of a row: address of its whole numbers and how many; of its numbers, in
order, the address and count of each piece, and how many pieces. The plant's account: function, address of its words."""
WORDS = 11

(
    H_KIND, H_STEP, H_WALL_NS, H_SEED, H_ALTERED, H_OUTCOME, H_POLICY, H_SEQ, H_MEANT_FOR, H_LATENESS_NS, H_CLAMPED,
    H_OVERRUNS, H_SKIPPED, H_DROPPED, H_TIMED, H_WAKE, H_EXCHANGE, H_PLANT, H_SLACK, H_BLAMED, H_MISS, H_OVERRUN,
) = range(22)  # fmt: skip
"""The whole numbers of a row, as rtmms.record.layout.Head has them. What a step does not find out is there before."""
