"""Values of an FMU's parameters are what its description lets them be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rtmms
from rtmms.base.errors import ModelError
from rtmms.fmi.plant import parameter_value
from rtmms.fmi.read_description import limits
from tests.fmi.lags import FMI2, build

fmpy = pytest.importorskip("fmpy", reason="fmpy is not installed: pip install 'rtmms[fmi]'")

pytestmark = pytest.mark.full

TYPES = """<TypeDefinitions>
  <SimpleType name="Shape">
    <Enumeration><Item name="round" value="1"/><Item name="flat" value="4"/></Enumeration></SimpleType>
  <SimpleType name="Share"><Real min="0" max="1"/></SimpleType>
</TypeDefinitions>"""
MORE = """
  <ScalarVariable name="mode" valueReference="3" causality="parameter" variability="tunable">
    <Integer start="0" min="0" max="30"/></ScalarVariable>
  <ScalarVariable name="whole" valueReference="4" causality="parameter" variability="fixed">
    <Integer start="0"/></ScalarVariable>
  <ScalarVariable name="flag" valueReference="5" causality="parameter" variability="fixed">
    <Boolean start="true"/></ScalarVariable>
  <ScalarVariable name="shape" valueReference="6" causality="parameter" variability="fixed">
    <Enumeration declaredType="Shape" start="1"/></ScalarVariable>
  <ScalarVariable name="share" valueReference="7" causality="parameter" variability="fixed">
    <Real declaredType="Share" start="1"/></ScalarVariable>
  <ScalarVariable name="least" valueReference="8" causality="parameter" variability="fixed">
    <Real min="2" start="2"/></ScalarVariable>
</ModelVariables>"""
TEXT = FMI2.replace("<ModelVariables>", TYPES + "<ModelVariables>").replace("</ModelVariables>", MORE)


@pytest.fixture(scope="module")
def variables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("description") / "a.xml"
    path.write_text(TEXT)
    return {v.name: v for v in fmpy.read_model_description(str(path)).modelVariables}


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("mode", 1.5, "a whole number from 0 to 30"), ("mode", 99, "a whole number from 0 to 30"),
        ("mode", -1, "a whole number from 0 to 30"), ("mode", "abc", "a whole number from 0 to 30"),
        ("mode", True, "a whole number from 0 to 30"),
        ("whole", 2**31, "a whole number from -2147483648 to 2147483647"),
        ("flag", 2, "true or false"), ("flag", 0.5, "true or false"), ("flag", "on", "true or false"),
        ("shape", 2, r"one of round \(1\), flat \(4\)"), ("shape", "square", r"one of round \(1\), flat \(4\)"),
        ("share", 1.5, "a number from 0 to 1"), ("least", 1.0, "a number >= 2"),
        ("gain", float("nan"), "a finite number"), ("gain", 10**400, "a finite number"),
    ],
)  # fmt: skip
def test_other_values_are_refused(variables: dict[str, Any], name: str, arguments: Any, expected: str) -> None:
    with pytest.raises(ModelError, match=f"a.fmu: {name}: expected {expected}, got "):
        parameter_value("a.fmu", name, variables[name], arguments)


@pytest.mark.parametrize(
    ("name", "arguments", "value"),
    [
        ("mode", 30, 30.0), ("mode", 3.0, 3.0), ("flag", True, 1.0), ("flag", 0, 0.0), ("shape", "flat", 4.0),
        ("shape", 1, 1.0), ("share", 1, 1.0), ("least", 1e9, 1e9), ("gain", -4, -4.0), ("whole", -(2**31), -(2.0**31)),
    ],
)  # fmt: skip
def test_what_it_may_be(variables: dict[str, Any], name: str, arguments: Any, value: float) -> None:
    assert parameter_value("a.fmu", name, variables[name], arguments) == value


def test_limits_are_its_types_where_it_has_none(variables: dict[str, Any]) -> None:
    assert limits(variables["share"]) == (0.0, 1.0)
    assert limits(variables["gain"]) == (None, None)


def test_a_plant_refuses_them_at_load_and_while_it_runs(tmp_path: Path) -> None:
    path = str(build(tmp_path, 3))
    with pytest.raises(ModelError, match=r"lag3.fmu: seed: expected a whole number from -2147483648 to .*, got 1.5"):
        rtmms.load(path, seed=1.5)
    plant = rtmms.load(path)
    with pytest.raises(ModelError, match="gain: expected a finite number, got 'x'"):
        plant.set(gain="x")  # type: ignore[attr-defined]
