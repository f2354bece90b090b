"""Proportional-integral loop with limits, whose integrator does not wind up, and that can be frozen."""

from __future__ import annotations


class Loop:
    """Loop u = p e + i int e - d rate, within +-most.

    The integrator stops while u is at a limit and e would drive it further, and while the loop is frozen.

    Parameters
    ----------
    p, i, d : float
        Gains.
    most : float
        Limit of the output.

    Examples
    --------
    >>> from rtmms_controllers.loops import Loop
    >>> loop = Loop(2.0, 0.0, 0.0, 1.0)
    >>> loop(0.25, 0.0, 0.1), loop(5.0, 0.0, 0.1)
    (0.5, 1.0)
    """

    __slots__ = ("d", "i", "integral", "max_output", "output", "p")

    def __init__(self, p: float, i: float, d: float, maximum: float) -> None:
        self.p, self.i, self.d, self.max_output = p, i, d, maximum
        self.integral, self.output = 0.0, 0.0

    def reset(self) -> None:
        """Set integral and output to 0."""
        self.integral = self.output = 0.0

    def __call__(self, error: float, rate: float, dt: float, ahead: float = 0.0) -> float:
        """Return the output of the loop.

        `rate` is of the controlled quantity, and `ahead` is added to the output, within the limits.
        """
        step = self.i * error * dt
        wanted = ahead + self.p * error - self.d * rate + self.integral + step
        if abs(wanted) <= self.max_output or wanted * step < 0.0:
            self.integral = max(-self.max_output, min(self.max_output, self.integral + step))
        self.output = max(-self.max_output, min(self.max_output, wanted))
        return self.output

    def hold(self, ahead: float = 0.0) -> float:
        """Return the output of a loop without a measurement: its integral.

        Parameters
        ----------
        ahead : float, default 0.0
            Added to the output, within the limits.

        Returns
        -------
        float
            The output.
        """
        self.output = max(-self.max_output, min(self.max_output, ahead + self.integral))
        return self.output
