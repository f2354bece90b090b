"""Small MJCF models for tests, and the folders of models that installed packages have."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

BOX = '<body name="box" pos="0 0 1"><freejoint/><geom name="box" size=".1 .2 .3" type="box"/></body>'


def mjcf(bodies: str, before: str = "", after: str = "") -> str:
    """Return the text of a model."""
    return f"<mujoco>{before}<worldbody>{bodies}</worldbody>{after}</mujoco>"


WALKER = mjcf(
    """
    <geom name="floor" type="plane" size="5 5 .1" friction="0.8"/>
    <body name="trunk" pos="0 0 0.5"><freejoint/>
      <geom name="trunk" type="capsule" size=".08 .2"/><site name="imu" pos=".1 0 0"/>
      <body name="leg" pos=".1 0 -.1"><joint name="hip" axis="0 1 0" range="-1 1" damping=".5"/>
        <geom name="leg" type="capsule" size=".04" fromto="0 0 0 0 0 -.3" solref=".01 1"/>
        <body name="foot" pos="0 0 -.3"><joint name="slide" type="slide" axis="0 0 1" range="-.05 .05" stiffness="500"/>
          <geom name="foot" size=".06"/><site name="sole" size=".07"/></body></body>
    </body>
    <body name="stone" pos="1 0 .2"><freejoint/><geom name="stone" size=".2"/></body>
    """,
    '<option timestep="0.002"/><custom><numeric name="gain" data="1 2"/></custom>',
    """
    <actuator><position name="hip" joint="hip" kp="60" ctrlrange="-1 1"/><motor joint="slide" gear="30"/></actuator>
    <sensor><accelerometer name="acceleration" site="imu"/><gyro name="velocity" site="imu"/>
      <touch name="touch" site="sole"/><jointpos name="hip_angle" joint="hip"/></sensor>
    <keyframe><key name="crouch" qpos="0 0 .45 1 0 0 0 .4 .01  1 0 .2 1 0 0 0" ctrl=".4 0"/></keyframe>
    """,
)
"""A free body with a leg, in contact with a floor, and a free stone."""

KINDS = {
    "contacts": WALKER,
    "implicit": mjcf(BOX, '<option integrator="implicitfast" density="1000" viscosity=".001" wind="1 0 0"/>'),
    "rk4": mjcf(
        BOX + '<body pos="0 0 3"><joint name="h"/><geom size=".1" pos=".1 0 0"/><site name="s"/></body>',
        '<option integrator="RK4"/>',
        '<sensor><accelerometer site="s" name="acc"/><framepos objtype="site" objname="s" name="place"/></sensor>',
    ),
    "activation": mjcf(
        '<body><joint name="h"/><geom size=".1" pos=".1 0 0"/></body>', "",
        '<actuator><general joint="h" dyntype="filter" dynprm="0.1"/><muscle joint="h" lengthrange="-1 1"/></actuator>',
    ),
    "tendon": mjcf(
        '<site name="a" pos="0 0 1"/><body><joint name="h" axis="0 1 0"/><geom size=".1" pos=".3 0 0"/>'
        '<site name="b" pos=".3 0 0"/></body>', "",
        '<tendon><spatial name="t" stiffness="40"><site site="a"/><site site="b"/></spatial></tendon>'
        '<actuator><motor name="pull" tendon="t"/></actuator>',
    ),
    "ball": mjcf('<body name="x"><joint name="neck" type="ball" damping=".1"/><geom size=".1" pos=".2 0 0"/></body>'),
    "mocap": mjcf(BOX + '<body mocap="true" pos="0 0 3"><geom size=".1"/></body>'),
    "weld": mjcf(
        BOX + '<body name="other" pos="0 0 2"><freejoint/><geom size=".1"/></body>', "",
        '<equality><weld body1="box" body2="other"/></equality>',
    ),
    "flex": mjcf(
        '<flexcomp name="cloth" type="grid" count="3 3 1" spacing=".1 .1 .1" pos="0 0 1" radius=".01">'
        '<edge equality="true"/></flexcomp>' + BOX
    ),
}  # fmt: skip
"""Models by what is special in them."""


def installed_models() -> list[Path]:
    """Return the models of gymnasium and dm_control, where these are installed."""
    folders = [("gymnasium", "envs/mujoco/assets"), ("dm_control", "suite")]
    result: list[Path] = []
    for package, folder in folders:
        spec = find_spec(package)
        for place in (spec.submodule_search_locations or []) if spec is not None else []:
            result += sorted((Path(place) / folder).glob("*.xml"))
    return result
