"""What Porez, Boyer and Belkhiri (2014) say in numbers and in words, and what of ours is held against it."""

from __future__ import annotations

from rtmms.monitor.measure import UNSTABLE
from rtmms.report.verdict import OTHER_MACHINE, Claim, Target, about, at_most

DRAG = (
    "torque and power go with the added mass and the air's pressure on the wing: with no added mass, the bending "
    "springs doubled give 0.40 W, half the twist springs 0.44 W and 120 W/kg, air of 1 kg/m3 0.55 W; with table I's "
    "own springs no reading tried gives the power"
)
TWIST = (
    "table I's twist springs are too stiff for it in every reading; half of them without added mass give 77 deg, 3e-3 "
    "N m/rad all along 73; the pressure at 0.25 in place of 0.4 chords moves it by 1 deg, a fifth of the damping by 6"
)
TWIST_LAG = (
    "with the paper's own words, largest twist where the stroke is zero, this lag would be 90 deg; the pressure at "
    "0.25 chords gives 69 to 72, a fifth of the damping 72, doubled bending springs 69, halved twist springs 90: no "
    "reading tried gives 58"
)
BEND = "the added mass bends the wing beyond it: none, or the fit, is near; doubled bending springs give 57 deg at 25"
THORAX = (
    "moved by every reading of the added mass and by the pressure's place (0.25 chords: 2.5 mm and 5.0 deg without "
    "added mass); halved twist springs give 2.1 mm and 8.3 deg"
)
VERTICAL = (
    "a small remainder of lift less weight: other springs, damping, pressure's place and air tried give 0.22 to 0.36 "
    "mm, only the printed added mass more than 0.5"
)

NUMBERS = (
    Claim("twist", "tip twist, peak", 79.0, "deg", about(79.0), ".1f", why=TWIST),
    Claim("twist_lag", "its lag behind the stroke, twist", 58.0, "deg", about(58.0), ".1f", why=TWIST_LAG,
          note="of the fundamental; the paper does not say how it reads a lag"),
    Claim("bend", "stroke and bending at the tip, peak", 68.0, "deg", about(68.0), ".1f", why=BEND),
    Claim("bend_lag", "its lag behind the stroke", 36.0, "deg", about(36.0), ".1f", why=BEND,
          note="of the peak, by a parabola through three samples 0.9 deg apart, to 0.1 deg"),
    Claim("torque", "peak stroke torque", 12.1, "mN m", about(12.1), ".2f", why=DRAG),
    Claim("power", "power a wing", 0.42, "W", about(0.42), ".3f", why=DRAG),
    Claim("specific", "specific power", 120.0, "W/kg", about(120.0), ".0f", why=DRAG),
    Claim("fore_aft", "thorax, fore-aft", 2.0, "mm", about(2.0), ".2f", why=THORAX),
    Claim("vertical", "thorax, vertical", 0.5, "mm", about(0.5), ".2f", why=VERTICAL),
    Claim("pitch", "thorax, pitch", 7.0, "deg", about(7.0), ".2f", why=THORAX),
)  # fmt: skip
AFTER = Target(0.0, 90.0)
PHASE = "phases are of the stroke, from a reversal, 90 deg is its middle; to 0.1 deg, by a parabola"
WORDS = (
    Claim("twist_at", "twist is largest", "at the middle of the stroke", "deg", Target(60.0, 120.0), ".1f", note=PHASE),
    Claim("bend_at", "stroke and bending together are largest", "after the reversals", "deg", AFTER, ".1f",
          note="after a reversal is within the quarter period that follows it"),
    Claim("bend_alone_at", "bending alone is largest", "after the reversals", "deg", AFTER, ".1f"),
    Claim("torque_at", "stroke torque is largest", "after the reversals", "deg", AFTER, ".1f"),
    Claim("lift_at", "lift is largest", "at the middle of the stroke", "deg", Target(60.0, 120.0), ".1f"),
    Claim("no_lift_at", "lift is least", "when the wings turn", "deg", Target(-30.0, 30.0), ".1f",
          note="from the nearest reversal; less than 0 is before it"),
)  # fmt: skip
LIMIT = "at 41.3 deg without added mass its 0.1 ms is beyond the method's stable range; half of it holds"
METHOD = (
    Claim("abam", "the paper's integrator at its 0.1 ms: joints beside RK4's, ten strokes", "used", "rad",
          at_most(1e-3), ".1g", why=LIMIT, note="Adams-Bashforth-Moulton, from the periodic orbit"),
    Claim("abam_error", "error of its steps, as the monitor of runs has it", "not given", "of a step",
          at_most(UNSTABLE), ".1g", note="beyond 0.25 a run has left the range of its method", why=LIMIT),
    Claim("abam_half", "joints beside RK4's, the paper's integrator at 0.05 ms", "not given", "rad",
          at_most(1e-3), ".1g", must=True),
    Claim("abam_power", "power a wing by the paper's integrator, tenth stroke", 0.42, "W", about(0.42), ".3f",
          why=DRAG),
    Claim("weight", "mean lift over weight, on the orbit", "hovering", "", Target(1.0 - 1e-6, 1.0 + 1e-6), ".4f",
          must=True),
)  # fmt: skip
CLAIMS = NUMBERS + WORDS + METHOD
CLOCK = Claim("clock", "one period on this machine, 400 steps", "17 s on a laptop", "ms", None, ".0f",
              note="compiled, RK4", unjudged=OTHER_MACHINE)  # fmt: skip
