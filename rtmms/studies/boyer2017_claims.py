"""Claims of Boyer et al. (2017) about the dead fish and modal wings, and our numbers for them.

Only the abstract, the notes and the appendices of the paper are available: equations (40) to (73). The text between,
its figures, its parameters and its numbers are not.
"""

from __future__ import annotations

from rtmms.view.verdict import OTHER_MACHINE, OURS, PICTURE, Claim, Target, about, above, at_least, at_most

_PARAMETERS = "the published parameters are not to be had: those of docs/fish.md, of an independent computation"

FISH = (
    Claim("stiff", "dead fish, EI = 1.5e-3 N m2: drift along the stream after 3 s, upstream < 0", "swims upstream",
          "m/s", Target(max_value=0.0), ".4f", where="abstract; 2015: 9", must=True, note=_PARAMETERS),
    Claim("stiffer", "the same, EI = 3e-3 N m2", "-", "m/s", Target(max_value=0.0), ".4f", unjudged=OURS, must=True),
    Claim("soft", "the same, EI = 5e-4 N m2", "is carried off", "m/s", above(0.0), ".4f", where="-", must=True),
    Claim("softer", "the same, EI = 2e-4 N m2", "-", "m/s", above(0.0), ".4f", unjudged=OURS, must=True),
    Claim("holds", "EI at which it holds its station", "-", "N m2", Target(9e-4, 1.5e-3), ".2e", unjudged=OURS,
          note="an independent computation has it between 1e-3 and 1.5e-3; without drag across it is 8e-4 here"),
    Claim("work", "work of actuators in these runs", "passive", "J", at_most(0.0), ".0e", where="abstract", must=True),
    Claim("audit", "energy less work of flow, wake, drag and damping, 10 s, of the flow's work", "-", "",
          at_most(2e-3), ".0e", unjudged=OURS, must=True, note="at a step of 1 ms, second order; at an instant it "
          "closes to rounding (tests/robots/test_fish.py)"),
    Claim("audit_order", "power of the step with which that falls", "-", "", at_least(1.5), ".2f", unjudged=OURS,
          must=True),
    Claim("accelerating", "neutrally buoyant fish in an accelerating stream less the stream's way, 1 s", "-", "m",
          at_most(1e-11), ".0e", where="(47)", unjudged=OURS, must=True, note="m_b of (47) is the displaced mass"),
    Claim("printed", "energy that (47) as printed, gradient not transposed, makes up, of the flow's work", "-", "",
          None, ".2f", where="(47)", unjudged=OURS, note="power p . (G - G^T) V_r along the same run; the transposed "
          "gradient leaves the row before"),
    Claim("fish_speed", "seconds simulated in a second, 1 kHz, free", "fast", "", None, ".0f",
          where="abstract", unjudged=OTHER_MACHINE),
)  # fmt: skip

WINGS = (
    Claim("twist", "one mode over 400 links: twist of a wing under its own inertia", "-", "", about(1.032, 1e-3), ".4f",
          where="(49)", unjudged=OURS, must=True, note="32 / pi^3 for sin(pi X / 2 l)"),
    Claim("modes", "peak twist of a wing's tip, one mode over three", "-", "", Target(0.95, 1.05), ".3f",
          where="(49)", unjudged=OURS),
    Claim("peak", "modal moth, thorax held: peak twist of a wing's tip", PICTURE, "deg", None, ".1f", where="-",
          note="hangs on G I, which is ours"),
    Claim("lift", "mean lift over weight, thorax held", "hovers", "", about(1.0, 0.15), ".3f", where="abstract",
          note="26 Hz, flap 55 deg, feather 35 deg, steady forces alone"),
    Claim("hover", "free thorax: factor on flap and feather with which a stroke closes, hovering (trim)", "hovers", "",
          about(1.0), ".3f", where="abstract", note="the orbit is not stable: largest multiplier 1.15 a stroke"),
    Claim("power", "mean power of both wings over the mass", PICTURE, "W/kg", None, ".1f", where="-"),
    Claim("wing_energy", "no air: energy less work of the joints, 0.1 s, of the largest kinetic energy", "-", "",
          at_most(1e-6), ".0e", where="(51) to (73)", unjudged=OURS, must=True),
    Claim("rigid", "wings held straight: base's acceleration less the rigid tree's", "-", "of it", at_most(1e-10),
          ".0e", where="(51) to (73)", unjudged=OURS, must=True),
    Claim("wing_time", "one evaluation of the modal moth, 8 sections a wing", "fast", "us", None, ".1f",
          where="abstract", unjudged=OTHER_MACHINE),
)  # fmt: skip

MISSING = (
    "Figures 1 to 7 of the paper are not in the text that is to be had, nor are their captions: figure 1a is the "
    "vehicle with two wings, figure 3b the elliptic section (appendices). Their parameters are missing too: EI and "
    "drag of the fish, the street's size, G I and the sections of the wing, the thorax"
)
