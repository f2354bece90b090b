"""MJCF models for rtmms's own engine: those that both engines move alike, and one for each feature that it refuses."""

from __future__ import annotations

from tests.mujoco_models.models import mjcf

_OPTION = '<compiler angle="radian"/><option timestep="0.001" integrator="RK4"><flag contact="disable"/></option>'
_MESH = (
    '<asset><mesh name="wedge" vertex="0 0 0  .3 0 0  0 .2 0  0 0 .1  .1 .1 .1" inertia="exact"/></asset>'
    '<default><joint damping=".02" armature=".003"/><default class="stiff"><joint stiffness="4" springref=".3"/>'
    "</default></default>"
)
_INERTIAL = (
    '<inertial pos=".1 .02 -.03" mass="1.3" fullinertia=".02 .03 .025 .001 -.002 .003"/><geom size=".02" mass="9"/>'
)


def custom(bodies: str, after: str = "", before: str = "") -> str:
    """Return a model without contacts, in radian, that MuJoCo steps by RK4 in steps of 1 ms."""
    return mjcf(bodies, _OPTION + before, after)


def link(name: str, joints: str, inside: str = "", at: str = "0 0 -.3") -> str:
    """Return a body with a bent capsule."""
    geom = '<geom type="capsule" size=".03" fromto="0 0 0 .1 .02 -.3"/>'
    return f'<body name="{name}" pos="{at}">{joints}{geom}{inside}</body>'


ALIKE = {
    "pendulum": custom(link("rod", '<joint name="h" axis="0 1 0" damping=".05" armature=".01"/>', at="0 0 2"),
                    '<actuator><motor name="m" joint="h" gear="3"/></actuator>'),
    "anchors": custom(link(
        "upper", '<joint name="a" axis=".2 1 0" pos=".05 0 .1"/>',
        link("lower", '<joint name="b" axis="0 1 .3" pos="0 .02 .04" stiffness="2" springref=".4"/>'), at="0 0 2",
    )),
    "cart": custom(
        '<body name="cart" pos="0 0 1"><joint name="x" type="slide" axis="1 0 0" stiffness="30" ref=".1" '
        'springref=".3" damping="1"/><geom type="box" size=".1 .1 .05"/>'
        + link("pole", '<joint name="p" axis="0 1 0" ref=".2"/>') + "</body>",
        '<actuator><motor name="m" joint="x" gear="20" ctrlrange="-1 1"/></actuator>',
    ),
    "servos": custom(
        link("upper", '<joint name="a" axis="0 1 0" damping=".1"/>',
             link("lower", '<joint name="b" axis="1 0 0" damping=".1"/>')),
        '<actuator><position name="pa" joint="a" kp="8" kv=".6" gear="1.5"/><velocity name="vb" joint="b" kv=".7"/>'
        '<motor name="mb" joint="b" gear="-.5"/><position name="pb" joint="b" kp="2" ctrllimited="true" '
        'ctrlrange="-.2 .2"/></actuator>',
    ),
    "saturated": custom(
        link("rod", '<joint name="a" axis="0 1 0"/>'),
        '<actuator><position name="pa" joint="a" kp="80" kv="4" gear="2" forcerange="-3 3"/></actuator>',
    ),
    "three hinges": custom(
        '<body name="ring" pos="0 0 1"><joint name="a" axis="1 0 0" pos=".1 0 0"/><joint name="b" axis="0 1 0"/>'
        f'<joint name="c" axis="0 0 1" pos="0 .1 .2"/>{_INERTIAL}'
        '<body pos=".2 0 0" euler=".3 .2 .1"><geom type="box" size=".05 .1 .02"/></body></body>'
    ),
    "mesh": custom(
        '<body name="body" pos="0 0 1" euler=".5 .1 0"><joint name="a" class="stiff" axis="0 1 0"/>'
        '<geom type="mesh" mesh="wedge" density="700" pos=".1 0 0" euler="0 .4 .2"/></body>', before=_MESH,
    ),
    "ball": custom(
        '<body name="bob" pos="0 0 1"><joint name="neck" type="ball" pos="0 0 .1"/>'
        '<geom type="ellipsoid" size=".1 .06 .04" pos=".1 .05 -.2"/>'
        + link("tail", '<joint name="b" axis="1 0 0" damping=".01"/>') + "</body>",
    ),
    "free": custom(
        '<body name="trunk" pos="0 0 1" euler=".2 -.1 .4"><freejoint name="root"/><geom type="box" size=".2 .1 .05"/>'
        '<site name="rotor" pos=".1 .05 .02" euler=".1 .2 0"/><site name="tip" pos=".2 0 0"/>'
        + link("left", '<joint name="l" axis="0 1 0"/>', at=".1 .1 0")
        + link("right", '<joint name="r" axis="1 0 0" damping=".1"/>', link("foot", '<joint name="f" axis="0 1 0"/>'),
               at="-.1 -.1 0") + "</body>",
        '<actuator><motor name="thrust" site="rotor" gear="0 0 1 0 0 .02" ctrlrange="0 30"/>'
        '<position name="pl" joint="l" kp="3"/></actuator>',
    ),
    "tendons": custom(
        '<site name="roof" pos=".2 .1 2"/>' + link(
            "upper", '<joint name="a" axis="0 1 0"/><site name="u" pos=".05 .02 -.1"/>',
            link("lower", '<joint name="b" axis="1 .2 0" damping=".05"/><site name="l" pos="0 .05 -.2"/>'), at="0 0 2",
        ),
        '<tendon><spatial name="spring" stiffness="40" damping=".3"><site site="roof"/><site site="u"/><site site="l"/>'
        '</spatial><spatial name="cable"><site site="roof"/><site site="l"/></spatial>'
        '<spatial name="rope" stiffness="300" springlength="0 .35"><site site="roof"/><site site="u"/></spatial>'
        '</tendon><actuator><motor name="pull" tendon="cable" gear="-2"/>'
        '<position name="reel" tendon="spring" kp="15"/></actuator>',
    ),
    "flags": mjcf(
        link("rod", '<joint name="a" axis="0 1 0" damping="5" stiffness="80" range="-.1 .1" limited="true" '
             'frictionloss="1"/>'),
        '<compiler angle="radian"/><option timestep="0.001" integrator="RK4"><flag contact="disable" spring="disable" '
        'damper="disable" limit="disable" frictionloss="disable"/></option>',
    ),
}  # fmt: skip
"""Models that rtmms and MuJoCo move alike, by what is special in them."""

_HINGED = '<body name="a"><joint name="j"/><geom name="g" size=".1" pos=".3 0 0"/>{}</body>'
_PLAIN = _HINGED.format("")
_SITES = '<site name="w" pos="0 0 1"/>' + _HINGED.format('<site name="s" pos=".3 0 0"/>')
_SPATIAL = '<tendon><spatial name="t" {}>{}</spatial></tendon>'
_TWO = '<site site="w"/><site site="s"/>'


def _acts(law: str) -> str:
    return f"<actuator>{law}</actuator>"


REFUSED = {
    "contact of two bodies": ("contact", mjcf(_PLAIN + '<body pos="1 0 0"><joint/><geom name="h" size=".1"/></body>')),
    "contact with a floor": ("contact", mjcf('<geom name="f" type="plane" size="1 1 1"/>' + _PLAIN)),
    "contact by a pair": ("contact", custom(
        _PLAIN + '<body pos="1 0 0"><joint/><geom name="h" size=".1" contype="0"/></body>',
        '<contact><pair geom1="g" geom2="h"/></contact>').replace('contact="disable"', 'contact="enable"')),
    "equality": ("equality", mjcf(_PLAIN, "", '<equality><joint joint1="j" polycoef="1 0 0 0 0"/></equality>')),
    "plugin": ("plugin", mjcf(
        _PLAIN, '<extension><plugin plugin="mujoco.pid"/></extension>',
        _acts('<plugin joint="j" plugin="mujoco.pid"><config key="kp" value="4"/></plugin>'))),
    "flex": ("flex", mjcf(
        '<flexcomp name="cloth" type="grid" count="3 3 1" spacing=".1 .1 .1" pos="0 0 1" radius=".01" rigid="true"/>'
        + _PLAIN, '<option><flag contact="disable"/></option>')),
    "two free bodies": ("tree", custom(
        '<body name="a"><freejoint/><geom size=".1"/></body><body name="b"><freejoint/><geom size=".1"/></body>')),
    "a free body and an arm": ("tree", custom('<body name="x"><freejoint/><geom size=".1"/></body>' + _PLAIN)),
    "damping of a free joint": ("joint", custom('<body><joint type="free" damping="1"/><geom size=".1"/></body>')),
    "nonlinear stiffness": ("joint", custom(_PLAIN.replace("<joint ", '<joint stiffness="1 2" '))),
    "damping of a ball": ("ball", custom('<body><joint type="ball" damping="1"/><geom size=".1"/></body>')),
    "limits of a ball": ("ball", custom(
        '<body><joint type="ball" limited="true" range="0 1"/><geom size=".1"/></body>')),
    "gravity compensation": ("gravcomp", custom(_PLAIN.replace("<body ", '<body gravcomp="1" '))),
    "muscle": ("muscle", mjcf(_PLAIN, "", _acts('<muscle joint="j" lengthrange="-1 1"/>'))),
    "filter": ("activation", mjcf(_PLAIN, "", _acts('<general joint="j" dyntype="filter" dynprm=".1"/>'))),
    "integrated velocity": ("activation", mjcf(_PLAIN, "", _acts('<intvelocity joint="j" kp="1" actrange="-1 1"/>'))),
    "affine gain": ("actuator", mjcf(_PLAIN, "", _acts('<damper joint="j" kv="1" ctrlrange="0 1"/>'))),
    "constant bias": ("actuator", mjcf(_PLAIN, "", _acts('<general joint="j" biastype="affine" biasprm="1 0 0"/>'))),
    "adhesion": ("actuator", mjcf(_PLAIN, "", _acts('<adhesion body="a" ctrlrange="0 1"/>'))),
    "motor at a ball": ("actuator", custom(
        '<body><joint name="n" type="ball"/><geom size=".1"/></body>', _acts('<motor joint="n" gear="1 0 0"/>'))),
    "servo at a site": ("actuator", mjcf(
        _SITES, "", _acts('<position site="s" refsite="w" gear="0 0 1 0 0 0" kp="1"/>'))),
    "one of two with a forcerange": ("actuator", mjcf(_PLAIN, "", _acts(
        '<position joint="j" kp="1" forcerange="-1 1"/><motor joint="j"/>'))),
    "a coupling of joints": ("tendon", mjcf(_PLAIN, "", (
        '<tendon><fixed name="t" stiffness="1"><joint joint="j" coef="2"/></fixed></tendon>'))),
    "a wrapping geom": ("tendon", custom(
        _SITES + '<geom name="c" size=".05" pos="0 0 .5"/>',
        _SPATIAL.format('stiffness="1"', '<site site="w"/><geom geom="c"/><site site="s"/>'))),
    "a pulley": ("tendon", mjcf(_SITES, "", _SPATIAL.format('stiffness="1"', _TWO + '<pulley divisor="2"/>' + _TWO))),
    "limits of a tendon": ("tendon", mjcf(_SITES, "", _SPATIAL.format('limited="true" range="0 1"', _TWO))),
    "friction of a tendon": ("tendon", mjcf(_SITES, "", _SPATIAL.format('frictionloss="1"', _TWO))),
    "armature of a tendon": ("tendon", mjcf(_SITES, "", _SPATIAL.format('armature="1"', _TWO))),
    "damping alone of a tendon": ("tendon", mjcf(_SITES, "", _SPATIAL.format('damping="1"', _TWO))),
    "a damped tendon with a slack range": ("tendon", mjcf(
        _SITES, "", _SPATIAL.format('stiffness="1" damping="1" springlength="0 1"', _TWO))),
    "water on a box": ("fluid", mjcf(_PLAIN, '<option density="1000"/>')),
}  # fmt: skip
"""What the own engine refuses: the feature that it names, and a model that has nothing else of this kind."""

EVERYTHING = mjcf(
    '<geom name="floor" type="plane" size="1 1 1"/>' + _SITES.replace("<body ", '<body gravcomp="1" '), "",
    '<equality><joint joint1="j" polycoef="1 0 0 0 0"/></equality>' + _acts('<muscle joint="j" lengthrange="-1 1"/>')
    + _SPATIAL.format('frictionloss="1"', _TWO),
)  # fmt: skip
"""A model with several features that the own engine refuses."""

FISH = mjcf(
    '<body name="head"><joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>'
    '<joint name="yaw" axis="0 0 1"/><geom type="box" size=".1 .01 .05" density="1100" fluidshape="ellipsoid"/>'
    '<body name="motor" pos=".05 0 0"><joint name="motor" axis="0 1 0"/>'
    '<geom type="box" size=".007 .05 .007" mass=".03" fluidshape="ellipsoid"/>'
    '<site name="m_left" pos="0 -.05 -.03"/><site name="m_right" pos="0 .05 .03"/></body>'
    '<body name="plate" pos=".11 0 0"><joint name="h0" axis="0 0 1" stiffness=".6"/>'
    '<geom type="box" size=".02 .002 .05" pos=".02 0 0" density="1200" fluidshape="ellipsoid"/>'
    '<site name="p_left" pos=".02 -.03 0"/><site name="p_right" pos=".02 .03 0"/>'
    '<body name="fin" pos=".04 0 0"><joint name="h1" axis="0 0 1" stiffness=".3"/>'
    '<geom type="box" size=".03 .001 .06" pos=".04 0 0" mass=".02" fluidshape="ellipsoid"/>'
    '<site name="f_left" pos=".02 -.015 0"/><site name="f_right" pos=".02 .015 0"/></body></body></body>',
    '<option gravity="0 0 0" density="1000" viscosity="0.0013" timestep="0.001" integrator="implicitfast">'
    '<flag contact="disable"/></option><default><tendon stiffness="5000" damping="5"/></default>',
    '<tendon><spatial name="left"><site site="m_left"/><site site="p_left"/><site site="f_left"/></spatial>'
    '<spatial name="right"><site site="m_right"/><site site="p_right"/><site site="f_right"/></spatial></tendon>'
    '<actuator><velocity name="motor" joint="motor" kv="20" ctrllimited="true" ctrlrange="-15 15" '
    'forcerange="-60 60"/></actuator>',
)  # fmt: skip
"""A motor, two cables, two plates in water."""
