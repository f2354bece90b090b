"""Claims of Boyer and Porez (2015) in sections 4 to 6 about motion by connections, and our numbers for them.

The paper has hardly a number: its examples are pictures and words, and the numbers here test the words.
"""

from __future__ import annotations

import math

from rtmms.view.verdict import OTHER_MACHINE, OURS, Claim, Target, about, above, at_least, at_most

TAM_HOSOI = (
    "efficiency: the power that would drag the straight swimmer along at its mean speed over the mean power, at the "
    "best pace, 3 L c_t d^2 / cost^2. Tam and Hosoi's optimum (2007) is about a circle around the straight shape (so "
    "Raz and Avron, arXiv:0706.3906); its numbers are of a slenderness and of lengths that none of our sources has, so "
    "the optimum around the straight shape of our own swimmer, equal rods and c_n = 2 c_t, stands for it"
)

CLAIMS = (
    Claim("cat_turned", "cat: turned by one cycle of its waist", "half a turn", "deg", Target(179.9, 180.0 + 1e-6),
          ".2f", where="4, case 1", note="gait `righting`, a circle of 1.26 rad; 'four legs upward' becomes 'four legs "
          "on the ground' in the shape it began with"),
    Claim("cat_shape", "cat: shape at the end less shape at the start", "the initial shape", "rad", at_most(1e-12),
          ".0e", where="4, case 1", must=True),
    Claim("momentum", "(7) cat: angular momentum along that gait, by full dynamics", 0.0, "N m s", at_most(1e-9), ".0e",
          where="4, (7)", must=True),
    Claim("dynamics", "(8) cat, satellite, fluid swimmer: eta' of the equations of motion less that of the connection",
          "the same", "of the largest", at_most(1e-11), ".0e", where="4, (8)", must=True),
    Claim("centre", "cat: way of the centre of mass, by the connection", "A = 0 for translations", "m", at_most(1e-11),
          ".0e", where="4, case 1", must=True),
    Claim("satellite", "satellite: turned about z, which has no wheel left, rectangle of 10 rad", "it turns", "rad",
          above(0.0), ".6f", where="4, case 1", note="the paper's satellite has three wheels; two are enough"),
    Claim("area", "(5) small gait: net motion less the area's share, of that share, loop of 0.01 rad", "equal", "",
          at_most(1e-3), ".0e", where="4, (5)", note="with -[A1, A2] added to dA: the group does not commute; worst of "
          "the four robots"),
    Claim("area_order", "(5) power of the loop's size with which that distance falls", "-", "", at_least(3.5), ".2f",
          where="4, (5)", unjudged=OURS, must=True),
    Claim("area_plain", "(5) the same with dA alone, as printed, fluid swimmer", "equal where the group commutes", "",
          None, ".2f", where="4, (5)", unjudged=OURS, note="SE(2) does not commute: what is left does not fall with "
          "the loop's size"),
    Claim("pace", "net motion of a gait at another pace, largest difference", "geometry alone", "m, rad",
          at_most(1e-10), ".0e", where="4", must=True),
    Claim("backwards", "a gait and then the same backwards", "-", "m, rad", at_most(1e-10), ".0e", where="4",
          unjudged=OURS, must=True),
    Claim("scallop", "scallop: net motion of a shape that opens and shuts", "zero", "m, rad", at_most(1e-10), ".0e",
          where="5, remark 3", must=True, note="largest of the four robots"),
    Claim("fluid_way", "fluid swimmer: way in a cycle of a circle of 0.5 rad", "it can change position", "m",
          above(0.0), ".6f", where="5, (23)"),
    Claim("fluid_turn", "fluid swimmer: turned by that circle about (0.5, 0)", "and orientation", "rad", above(0.0),
          ".4f", where="5, (23)"),
    Claim("fluid_known", "fluid swimmer: x of that cycle", 0.7259539483, "m", about(0.7259539483, 1e-8), ".10f",
          where="-", note="not the paper's: from full dynamics by another library", must=True),
    Claim("purcell_known", "Purcell's swimmer: x of a circle of 1 rad", 0.1484970643, "m", about(0.1484970643, 1e-8),
          ".10f", where="-", note="not the paper's: from an independent computation", must=True),
    Claim("stokes", "Stokes: resultant of viscous forces and moments along it", "zero", "N, N m", at_most(1e-12), ".0e",
          where="5, remark 3", must=True),
    Claim("power", "(26) joints' power less dissipation (Purcell), less the rate of energy (fluid swimmer)", "-",
          "of the largest", at_most(1e-9), ".0e", where="6, (26)", unjudged=OURS, must=True),
    Claim("stroke_efficiency", "Purcell's own stroke, 30 deg: efficiency", "-", "%", None, ".3f", where="-",
          unjudged=OURS),
    Claim("centred_efficiency", "best stroke about the straight shape: efficiency", "-", "%", None, ".3f", where="-",
          unjudged=OURS, note=TAM_HOSOI),
    Claim("best_efficiency", "best stroke found, limits of pi: efficiency", "-", "%", None, ".3f", where="-",
          unjudged=OURS),
    Claim("best_ratio", "best stroke found over the best about the straight shape", "-", "", at_least(1.0 - 1e-6),
          ".3f", where="-", unjudged=OURS, must=True, note="Raz and Avron find 1.53 for an off-centre stroke at the "
          "limits of Tam and Hosoi's swimmer"),
    Claim("time", "connection of a swimmer of 20 links", "fast", "us", None, ".1f", where="7", unjudged=OTHER_MACHINE),
    Claim("growth", "power of the number of links with which that grows, 20 to 160", "o(n_b)", "", None, ".2f",
          where="7", unjudged=OTHER_MACHINE),
)  # fmt: skip

_OWN_NOTE = "not the paper's: from an independent computation"


def _known(key: str, name: str, value: float, unit: str, where: str) -> Claim:
    return Claim(
        key, name, value, unit, Target(value - 1e-8, value + 1e-8), ".10f", where=where, note=_OWN_NOTE, must=True
    )


WHEELS = (
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
"""Claims about robots on wheels. The paper gives them no numbers: those here were computed twice, from connections and
from full dynamics with multipliers.
"""

DEGREES = 180.0 / math.pi
