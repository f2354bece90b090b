"""What `import rtmms` gives: without numba and scipy, and old names with a warning that states where they are now."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rtmms
import rtmms.plant
from rtmms import PlantInfo
from rtmms.base.errors import RenamedWarning
from rtmms.base.moved_modules import MOVED, MOVED_PACKAGES
from rtmms.base.renamed_outputs import OutputValues, present_output
from rtmms.bridging import rates
from rtmms.gym.task import Task
from rtmms.model import Box, Joint, JointLimit, Polar
from rtmms.model.elements import Element
from rtmms.plant import PlantDescription
from rtmms.plant.protocol import CoupledLimit

ROOT = Path(__file__).resolve().parents[1]


def test_every_public_name_is_there() -> None:
    for package in (rtmms, rtmms.model, rtmms.fluids, rtmms.sensing, rtmms.dynamics):
        for name in package.__all__:
            assert getattr(package, name) is not None


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'JointServo'"):  # 0.1 had it
        _ = rtmms.JointServo  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = rtmms.Nothing  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = rtmms.model.Nothing  # type: ignore[attr-defined]


@pytest.mark.full
def test_importing_it_loads_no_compiler() -> None:
    code = "import sys, rtmms; rtmms.connect; rtmms.Controller; "
    code += "print([name for name in ('numba', 'scipy', 'msgspec') if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


MODULES = {**MOVED, **MOVED_PACKAGES, "rtmms.papers.fishsim": "rtmms.studies.fishsim"}


@pytest.mark.parametrize("old", MODULES)
def test_an_old_module_is_the_new_one_and_warns(old: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, old, raising=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = import_module(old)  # of a package's part, the package warns too
    assert f"module {old} is {MODULES[old]} now; the next version removes the old name" in map(
        str, (item.message for item in caught)
    )
    assert result is import_module(MODULES[old])
    assert result.__name__ == MODULES[old]
    del sys.modules[old]


def test_old_names_of_a_bridges_parts_are_the_new_ones_with_a_warning() -> None:
    for old, new in rates.RENAMED.items():
        module, _, name = new.rpartition(".")
        with pytest.warns(RenamedWarning, match=rf"rtmms\.bridging\.rates\.{old} is {re.escape(new)} now"):
            assert getattr(rates, old) is getattr(import_module(module), name)
    with pytest.raises(AttributeError, match=r"'rtmms\.bridging\.rates' has no attribute 'Nothing'"):
        rates.Nothing  # noqa: B018


def test_old_names_of_plants_protocols_are_the_new_ones_with_a_warning() -> None:
    for old, new in rtmms.plant.RENAMED.items():
        with pytest.warns(RenamedWarning, match=rf"rtmms\.plant\.{old} is rtmms\.plant\.{new} now"):
            assert getattr(rtmms.plant, old) is getattr(rtmms.plant, new)
    with pytest.raises(AttributeError, match=r"'rtmms\.plant' has no attribute 'Nothing'"):
        rtmms.plant.Nothing  # noqa: B018


def test_old_fields_are_accepted_and_read_with_a_warning() -> None:
    with pytest.warns(RenamedWarning, match=r"JointLimit\.fastest is JointLimit\.max_rate now"):
        limit = JointLimit("elbow", fastest=2.0)  # type: ignore[call-arg]
    assert limit == JointLimit("elbow", max_rate=2.0)
    with pytest.warns(RenamedWarning, match=r"JointLimit\.fastest"):
        assert limit.fastest == 2.0  # type: ignore[attr-defined]
    with pytest.warns(RenamedWarning, match=r"PlantInfo\.surroundings is PlantInfo\.environment now"):
        info = PlantInfo("buoy", 0.01, "free", None, None, (), (), surroundings={"surface_m": 1.0})  # type: ignore[call-arg]
    assert info.environment == {"surface_m": 1.0}
    with pytest.warns(RenamedWarning, match=r"PlantDescription\.home is PlantDescription\.initial_pose now"):
        PlantDescription(home=lambda: None)  # type: ignore[call-arg]
    with pytest.warns(RenamedWarning, match=r"Joint\.rest is Joint\.rest_position now"):
        assert Joint("elbow", "arm", "hand", rest=0.2).rest_position == 0.2  # type: ignore[call-arg]
    with pytest.warns(RenamedWarning, match=r"Polar\.beyond is Polar\.with_stall_extension now"):
        Polar.beyond([-10, 0, 10], [-1.0, 0.0, 1.0], [0.02, 0.01, 0.02])


def test_old_members_of_subclasses_and_layouts_are_accepted_with_a_warning() -> None:
    with pytest.warns(RenamedWarning, match=r"Near\.most is Near\.max_observation now"):
        near = type("Near", (Task,), {"most": 5.0})
    assert near.max_observation == 5.0
    with pytest.warns(RenamedWarning, match=r"Sail\.words is Sail\.choices now"):
        assert type("Sail", (Element,), {"words": {"law": ("linear",)}}).choices == {"law": ("linear",)}
    with pytest.warns(RenamedWarning, match=r"Box\.own is Box\.mass_properties now"):
        assert Box(1.0, 1.0, 1.0, 2.0).own()[0] == 2.0
    with pytest.warns(RenamedWarning, match=r"CoupledLimit\.most is CoupledLimit\.max_difference now"):
        assert CoupledLimit(0, 1, 2.0, 1.5).most == 2.0


def step_once(path: Path) -> bytes:
    plant = rtmms.load(f"{path}:Pendulum")
    plant.reset(0)
    plant.step(np.array([0.5]))
    plant.fork()
    return plant.snapshot()


def test_a_compiled_plant_of_0_2_runs_with_warnings(tmp_path: Path) -> None:
    text = (ROOT / "examples/32_compiled_plant.py").read_text(encoding="utf-8")
    for new, old in (("step_input", "given"), ('"command"', '"given"'), ("p.command", "p.given"),
                     ("system.command", "system.given"), ("self._command", "self._given")):  # fmt: skip
        assert new in text
        text = text.replace(new, old)
    path = tmp_path / "pendulum_of_0_2.py"
    path.write_text(text, encoding="utf-8")
    with pytest.warns(RenamedWarning) as warned:
        end = step_once(path)
    assert {str(item.message).split(" is ")[0] for item in warned} == {
        "rtmms.base.memory.given", "the layout.given", "Pendulum._given",
    }  # fmt: skip
    assert end == step_once(ROOT / "examples/32_compiled_plant.py")


def test_the_old_initial_pose_of_a_plant_can_be_read_and_set_with_a_warning() -> None:
    plant: Any = rtmms.load("quadrotor")
    with pytest.warns(RenamedWarning, match=r"TreePlant\.home is TreePlant\.initial_pose now"):
        plant.home = {"position": (0.0, 0.0, 3.0)}
    plant.reset()
    assert plant.observe()["position"].tolist() == [0.0, 0.0, 3.0]
    with pytest.warns(RenamedWarning, match=r"TreePlant\.surroundings is TreePlant\.environment now"):
        assert plant.surroundings() == plant.environment()


def test_old_names_of_outputs_find_the_new_ones_with_a_warning() -> None:
    values = OutputValues({"a.dissipated_energy": 2.0, "dissipated_energy": 1.0, "energy": 3.0})
    with pytest.warns(RenamedWarning, match="output lost is dissipated_energy now"):
        assert values["lost"] == 1.0
    with pytest.warns(RenamedWarning, match=r"output a\.tendon_lost is a\.dissipated_energy now"):
        assert values["a.tendon_lost"] == 2.0
    with pytest.raises(KeyError, match="nothing"):
        values["nothing"]
    assert present_output("lost", {"lost", "dissipated_energy"}) == "lost"  # a plant's own output
    assert present_output("lost", {"energy"}) == "lost"
