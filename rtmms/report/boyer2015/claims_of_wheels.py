"""What is held against robots on wheels. The paper gives them no numbers: those here were computed twice,
from connections and from full dynamics with multipliers."""

from __future__ import annotations

from rtmms.report.verdict import OURS, Claim, Target, at_most

_OWN = "not the paper's: from an independent computation"


def _known(key: str, name: str, value: float, unit: str, where: str) -> Claim:
    return Claim(key, name, value, unit, Target(value - 1e-8, value + 1e-8), ".10f", where=where, note=_OWN, must=True)


CLAIMS = (
    _known("board_x", "snakeboard: x after a period of `drive` from rest", 0.1244027847, "m", "6"),
    _known("board_turn", "snakeboard: turned by it", -0.0604740265, "rad", "6"),
    _known("board_speed", "snakeboard: Vx at its end", 0.0399697886, "m/s", "6"),
    Claim("board_work", "snakeboard: work of the joints less its energy", "-", "J", at_most(1e-9), ".0e", where="6",
          unjudged=OURS, must=True),
    _known("snake_x", "wheeled snake, 8 links: x after a period of 4 s", 0.6949837115, "m", "4, case 2"),
    _known("snake_y", "wheeled snake: y after it", -0.2855452070, "m", "4, case 2"),
    Claim("unicycle", "unicycle: net motion of a rectangle less x = s (1 - cos), y = -s sin", "closed form", "m, rad",
          at_most(1e-12), ".0e", where="4, case 2", must=True),
    Claim("slip", "largest A eta + B rd along both runs", "zero", "m/s", at_most(1e-12), ".0e", where="4 and 6",
          must=True),
)  # fmt: skip
