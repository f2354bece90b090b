"""Endless rows of vortices with a soft core, and the von Karman street that two of them make.

The field is plane: x and y in the world's horizontal plane, the same at every height.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rtmms.errors import ModelError
from rtmms.jit import kernel

# columns of a row in the flow's table: Gamma k / 4 pi (m/s), k (1/m), eps, x and y of a vortex at t = 0, drift (m/s)
STRENGTH, WAVE_NUMBER, SOFT, PLACE_X, PLACE_Y, DRIFT = range(6)
FAR = 40.0
"""k y beyond which cosh and sinh are the same to the last bit: a row is a jump of velocity from there."""


@dataclass(frozen=True)
class VortexRow:
    """psi = -(Gamma / 4 pi) ln(cosh k (y - y0) - cos k (x - x0 - drift t) + eps), k = 2 pi / spacing, eps = (k core)^2 / 2.

    circulation  m2/s, Gamma of each vortex, counter-clockwise seen from above
    spacing      m, between neighbours; core: m, its radius
    place        (x0, y0) m, one of them at t = 0;  drift  m/s, along x
    """  # noqa: E501

    circulation: float
    spacing: float
    core: float
    place: tuple[float, float] = (0.0, 0.0)
    drift: float = 0.0

    def packed(self, where: str) -> list[float]:
        """Its row of the table. ModelError, beginning with `where`."""
        numbers = (self.circulation, self.spacing, self.core, *self.place, self.drift)
        if not all(math.isfinite(number) for number in numbers) or self.spacing <= 0.0 or self.core <= 0.0:
            raise ModelError(f"{where}: expected finite numbers, spacing and core > 0 m, got {self}")
        k = 2.0 * math.pi / self.spacing
        return [
            self.circulation * k / (4.0 * math.pi),
            k,
            0.5 * (k * self.core) ** 2,
            *self.place,
            self.drift,
            0.0,
            0.0,
        ]


@dataclass(frozen=True)
class Street:
    """A von Karman street behind a cylinder, in a stream along x: two rows of vortices, half a spacing apart.

    diameter  m of the cylinder;  stream  m/s, U;  strouhal  f D / U;  advection  of the street, of U
    aspect    distance of the rows over the spacing of vortices;  core  radius, of D
    phase     of a spacing, that the street is ahead at t = 0
    spacing a = advection U / f, Gamma = 2 a (U - advection U) / tanh(pi aspect): each row carries the other along
    """

    diameter: float = 0.05
    stream: float = 0.5
    strouhal: float = 0.2
    advection: float = 0.85
    aspect: float = 0.281
    core: float = 0.4
    phase: float = 0.0

    @property
    def frequency(self) -> float:
        """Hz, of shedding on each side."""
        return self.strouhal * self.stream / self.diameter

    @property
    def spacing(self) -> float:
        """m."""
        return self.advection * self.stream / self.frequency

    @property
    def circulation(self) -> float:
        """m2/s, of a vortex."""
        slip = (1.0 - self.advection) * self.stream
        return 2.0 * self.spacing * slip / math.tanh(math.pi * self.aspect)

    def rows(self) -> tuple[VortexRow, VortexRow]:
        """The upper row (y > 0), which turns clockwise, and the lower, half a spacing on."""
        a, drift, core = self.spacing, self.advection * self.stream, self.core * self.diameter
        half, x = 0.5 * self.aspect * a, self.phase * a
        return (
            VortexRow(-self.circulation, a, core, (x, half), drift),
            VortexRow(self.circulation, a, core, (x + 0.5 * a, -half), drift),
        )


@kernel
def add_vortex_row(row: Any, time: Any, x: Any, y: Any, out: Any) -> None:
    """Add u, its gradient and its rate (columns of rtmms.fluids.ambient) of one row to a sample."""
    c, k = row[STRENGTH], row[WAVE_NUMBER]
    across, along = k * (y - row[PLACE_Y]), k * (x - row[PLACE_X] - row[DRIFT] * time)
    if across.real > FAR:
        across += FAR - across.real
    elif across.real < -FAR:
        across -= FAR + across.real
    up = np.exp(across)
    ch, sh = 0.5 * (up + 1.0 / up), 0.5 * (up - 1.0 / up)
    cosine, sine = np.cos(along), np.sin(along)
    over = 1.0 / (ch - cosine + row[SOFT])
    u, v = -c * sh * over, c * sine * over  # u = psi_y, v = -psi_x
    grow = c * k * over * over
    ux, uy = grow * sh * sine, -grow * (ch * (ch - cosine + row[SOFT]) - sh * sh)
    vx = grow * (cosine * (ch - cosine + row[SOFT]) - sine * sine)
    out[0] += u
    out[1] += v
    out[3] += ux
    out[4] += uy
    out[6] += vx
    out[7] -= ux
    out[12] -= row[DRIFT] * ux
    out[13] -= row[DRIFT] * vx
