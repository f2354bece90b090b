"""A proportional-integral loop with limits, whose integrator does not wind up, and that can be frozen."""

from __future__ import annotations


class Loop:
    """u = p e + i int e - d rate, within +-most.

    The integrator stands still while u is at a limit and e would drive it further, and while the loop is frozen.
    """

    __slots__ = ("d", "i", "integral", "most", "output", "p")

    def __init__(self, p: float, i: float, d: float, most: float) -> None:
        self.p, self.i, self.d, self.most = p, i, d, most
        self.integral, self.output = 0.0, 0.0

    def reset(self) -> None:
        """As new."""
        self.integral = self.output = 0.0

    def __call__(self, error: float, rate: float, dt: float, ahead: float = 0.0) -> float:
        """rate  of what is held;  ahead  added to the output, within the limits"""
        step = self.i * error * dt
        wanted = ahead + self.p * error - self.d * rate + self.integral + step
        if abs(wanted) <= self.most or wanted * step < 0.0:
            self.integral = max(-self.most, min(self.most, self.integral + step))
        self.output = max(-self.most, min(self.most, wanted))
        return self.output

    def hold(self, ahead: float = 0.0) -> float:
        """The output of a loop that sees nothing: what it has learnt to need."""
        self.output = max(-self.most, min(self.most, ahead + self.integral))
        return self.output
