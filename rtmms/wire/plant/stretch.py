"""Many usual steps in one compiled call, without a clock: lockstep and free. See rtmms.wire.kernels.stretch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from rtmms.addresses import ARGUMENTS
from rtmms.loop.ports import Stretched
from rtmms.wire.kernels import desk as d
from rtmms.wire.kernels import stretch as s

if TYPE_CHECKING:
    from rtmms.contract import Applied
    from rtmms.plant import Account
    from rtmms.wire.plant.templates import Template

MOST_STEPS = 512
Words = npt.NDArray[np.int64]


class Stretch:
    """The memory of such calls, and their results; the peers' part of it is Direct's.

    dt   s;  desk, rows   of rtmms.wire.kernels.desk
    """

    def __init__(self, dt: float, account: Account, desk: Words, rows: Words) -> None:
        self._account, self._desk, self._rows = account, desk, rows
        self._words: Words = np.zeros(s.STRETCH, dtype=np.int64)
        self._times: Words = np.zeros((MOST_STEPS, s.TIME), dtype=np.int64)
        self._templates: Words = np.zeros((len(rows), s.TEMPLATE), dtype=np.int64)
        self._arguments: Words = np.zeros(ARGUMENTS, dtype=np.int64)
        self._arguments[: len(account.arguments)] = account.arguments
        self._dt = np.array([dt])
        self._fitted: dict[int, Template] = {}
        self._kept: dict[int, tuple[Words, npt.NDArray[np.float64]]] = {}
        self._at = desk.ctypes.data, self._words.ctypes.data
        words = self._words
        words[s.FUNCTION], words[s.ARGUMENTS] = account.function, self._arguments.ctypes.data
        words[s.DT], words[s.TIMES] = self._dt.ctypes.data, self._times.ctypes.data
        words[s.TEMPLATES] = self._templates.ctypes.data

    def fit(self, k: int, template: Template) -> bool:
        """The state of peer k is written by this template; False where the plant has not all of its outputs."""
        if self._fitted.get(k) is template:
            self._templates[k, s.PAYLOAD_BYTES] = template.size
            return True
        parts = [self._account.numbers.get(name) for name in template.names]
        sources: Words = np.array([part for part in parts if part is not None], dtype=np.int64).reshape(-1, 2)
        flat = np.zeros(len(template.reals))
        if len(sources) != len(parts) or len(flat) != 1 + int(sources[:, 1].sum()):
            return False
        self._kept[k], self._fitted[k] = (sources, flat), template
        self._templates[k] = (
            template.payload.ctypes.data, template.size, template.wholes.ctypes.data, template.reals.ctypes.data,
            len(flat), sources.ctypes.data, len(sources), flat.ctypes.data,
        )  # fmt: skip
        return True

    def write(self, step: int, deadline_ns: int, budget_ns: int, applied: Applied) -> bool:
        """The state of this step by each peer's template; False where one does not fit."""
        words = self._words
        words[s.A_SEQ], words[s.A_STEP], words[s.A_CLAMPED] = applied.seq, applied.step, applied.clamped
        words[s.A_DEADLINE], words[s.A_BUDGET], words[s.A_LATENESS] = deadline_ns, budget_ns, applied.lateness_ns
        self._desk[d.STEP] = step
        return bool(s.write_states(*self._at))

    def go(
        self, most: int, until_ns: int, free: bool, applied: Applied, published_ns: int, answered: bool
    ) -> Stretched:
        """Steps, at most so many, none begun after the instant."""
        words = self._words
        words[s.MOST], words[s.UNTIL], words[s.FREE] = min(most, MOST_STEPS), until_ns, free
        words[s.A_SEQ], words[s.A_STEP], words[s.A_CLAMPED] = applied.seq, applied.step, applied.clamped
        words[s.PUBLISHED_NS], words[s.ANSWERED] = published_ns, answered
        words[s.A_DEADLINE] = words[s.A_BUDGET] = words[s.A_LATENESS] = 0
        s.take_steps(*self._at)
        done, unfinished = int(words[s.DONE]), bool(words[s.UNFINISHED])
        # of an unfinished one that of the step before is kept, or it would not have begun
        kept = bool(self._desk[d.ROW_MEMORY] if unfinished else self._desk[d.KEPT])
        applied.seq, applied.step = int(words[s.A_SEQ]), int(words[s.A_STEP])
        applied.clamped = bool(words[s.A_CLAMPED])
        if done:
            applied.lateness_ns = 0
        return Stretched(
            done, self._times[:done, : s.OUTCOME + 1], int(self._desk[d.STATUS]) if done else 0, unfinished,
            int(words[s.PUBLISHED_NS]), bool(words[s.ANSWERED]), kept,
        )  # fmt: skip
