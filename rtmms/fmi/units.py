"""Units as FMI wants them: each that a variable names is defined by exponents of the SI base units."""

from __future__ import annotations

import re

_BASE = {name: {name: 1} for name in ("kg", "m", "s", "A", "K", "mol", "cd", "rad")}
_DERIVED: dict[str, dict[str, int]] = {
    "N": {"kg": 1, "m": 1, "s": -2}, "J": {"kg": 1, "m": 2, "s": -2}, "W": {"kg": 1, "m": 2, "s": -3},
    "Pa": {"kg": 1, "m": -1, "s": -2}, "Hz": {"s": -1}, "V": {"kg": 1, "m": 2, "s": -3, "A": -1},
}  # fmt: skip
_FACTOR = re.compile(r"([A-Za-z]+)(-?\d+)?$")


def base_units(unit: str) -> dict[str, int] | None:
    """Exponents of kg, m, s, A, K, mol, cd, rad of a unit such as 'm/s2', 'N m' or 'rad'.

    None where it is empty or not made of units known here, as 'N, N m' for a wrench is not: such a variable goes
    without a unit, and tells it in its description.
    """
    over, *under = unit.split("/")
    if not unit or len(under) > 1:
        return None
    exponents: dict[str, int] = {}
    for sign, side in ((1, over), (-1, "".join(under))):
        for factor in side.split():
            found = _FACTOR.match(factor)
            known = (_BASE | _DERIVED).get(found[1]) if found else None
            if found is None or known is None:
                return None
            power = sign * int(found[2] or 1)
            for name, exponent in known.items():
                exponents[name] = exponents.get(name, 0) + power * exponent
    return {name: exponent for name, exponent in exponents.items() if exponent}
