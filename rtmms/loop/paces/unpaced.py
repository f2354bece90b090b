"""What modes without a clock have in common: no step has an instant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtmms.loop.pace import SERVE_EVERY_NS
from rtmms.loop.statistics import UNDEFINED

if TYPE_CHECKING:
    from rtmms.loop.pace import Run


class Unpaced:
    """The part of a pace that is about instants, for one that has none."""

    def bind(self, run: Run) -> None:
        self.run, self.clock = run, run.clock
        self.served_ns = run.clock.now()

    def anchor(self, step: int) -> int:
        self.served_ns = self.clock.now()
        return self.served_ns

    def let_pass(self, step: int) -> None:
        """Nobody paces it: nothing to do."""

    def ready(self, step: int) -> bool:
        return True

    def window(self, step: int) -> tuple[int, int] | None:
        return None

    def stretch(self) -> tuple[int, int, bool] | None:
        return self.served_ns + SERVE_EVERY_NS, 0, True

    def stretched(self, published_ns: int, answered: bool) -> None:
        """Each state is sent."""

    def begin(self, step: int) -> int:
        return UNDEFINED
