"""A caller's errors with our FMUs: an answer in a sentence, nothing damaged, and the host goes on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rtmms.fmi.export import export

pytest.importorskip("fmpy", reason="fmpy is not installed: pip install 'rtmms[fmi]'")
pytest.importorskip("pythonfmu3", reason="pythonfmu3 is not installed: pip install 'rtmms[fmi]'")

pytestmark = pytest.mark.full

FAULTS = """
import json, math, sys
from fmpy import extract, read_model_description
from fmpy.fmi3 import FMU3Slave
folder = extract(sys.argv[1])
about = read_model_description(folder)
vr = {v.name: v.valueReference for v in about.modelVariables}
messages = []
def receive(_, status, __, text):
    messages.append([status, text.decode()])
def make(name):
    one = FMU3Slave(guid=about.guid, unzipDirectory=folder, instanceName=name,
                    modelIdentifier=about.coSimulation.modelIdentifier)
    one.instantiate(logMessage=receive)
    one.enterInitializationMode(startTime=0.0)
    one.exitInitializationMode()
    return one
def run(one, first, steps):
    for k in range(first, first + steps):
        one.setFloat64([vr["left.front"]], [0.3 * math.sin(0.02 * k)])
        one.doStep(k * 1e-3, 1e-3)
    return one.getFloat64([vr["position"]], nValues=3)
a, b, other = make("a"), make("b"), make("other")
run(a, 0, 20)
whole = run(b, 0, 40)
state = a.getFMUState()
text = bytes(a.serializeFMUState(state))
flip = text[:3000] + bytes([text[3000] ^ 1]) + text[3001:]
answers = {}
def attempt(name, call):
    messages.clear()
    try:
        call()
    except Exception as fault:
        answers[name] = [getattr(fault, "status", None), list(messages)]
    else:
        answers[name] = [0, list(messages)]
attempt("empty", lambda: a.deserializeFMUState(b""))
attempt("short", lambda: a.deserializeFMUState(text[:-5]))
attempt("flip", lambda: a.deserializeFMUState(flip))
attempt("bytes", lambda: a.deserializeFMUState(bytes(range(256)) * 40))
attempt("output", lambda: a.setFloat64([vr["left.front"], vr["position"]], [0.9, 1.0]))
attempt("unknown", lambda: a.setFloat64([9999], [1.0]))
attempt("get", lambda: a.getFloat64([9999]))
attempt("type", lambda: a.setUInt64([vr["seed"]], [1]))
attempt("seed", lambda: a.setInt64([vr["seed"]], [-1]))
for name, step in (("half", 5e-4), ("nan", math.nan), ("inf", math.inf), ("huge", 1e300), ("back", -1e-3)):
    attempt(name, lambda: a.doStep(0.02, step))
attempt("when", lambda: a.doStep(math.nan, 1e-3))
attempt("ahead", lambda: a.doStep(0.5, 1e-3))
attempt("again", lambda: a.doStep(0.019, 1e-3))
kept = a.getFloat64([vr["left.front"]])[0]
whole_after = run(a, 20, 20)
again = a.deserializeFMUState(text)
a.setFMUState(again)
whole_again = run(a, 20, 20)
for one in (a, b, other):
    one.terminate()
    one.freeInstance()
c = make("c")
fresh = run(c, 0, 40)
c.terminate()
c.freeInstance()
print(json.dumps([answers, kept, whole, whole_after, whole_again, fresh]))
"""
ERROR = 3
FATAL = 4


@pytest.fixture(scope="module")
def manta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export("manta", tmp_path_factory.mktemp("fmu") / "manta.fmu", parameters={"chains": 6})


@pytest.fixture(scope="module")
def results(manta: Path) -> list[Any]:
    child = subprocess.run(
        [sys.executable, "-c", FAULTS, str(manta)], capture_output=True, text=True, timeout=300, check=False
    )
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout)


@pytest.mark.parametrize(
    ("name", "status", "text"),
    [
        ("empty", FATAL, "serialised state: expected one of an FMU of rtmms, got 0 other bytes"),
        ("short", FATAL, "serialised state: expected an undamaged state"),
        ("flip", FATAL, "serialised state: expected an undamaged state"),
        ("bytes", FATAL, "serialised state: expected one of an FMU of rtmms, got 10240 other bytes"),
        ("output", FATAL, "position: expected an input or a parameter to set, got output position"),
        ("unknown", FATAL, "value reference 9999: expected one from 0 to"),
        ("get", FATAL, "value reference 9999: expected one from 0 to"),
        ("type", FATAL, "seed: expected a call for Int64, got one for UInt64"),
        ("seed", FATAL, "seed: expected a whole number >= 0, got -1"),
        ("half", ERROR, "communication step: expected a multiple of 0.001 s, got 0.0005"),
        ("nan", ERROR, "communication step: expected a multiple of 0.001 s, got nan s"),
        ("inf", ERROR, "communication step: expected a multiple of 0.001 s, got inf s"),
        ("huge", ERROR, "communication step: expected a multiple of 0.001 s, got 1"),
        ("back", ERROR, "communication step: expected a multiple of 0.001 s, got -0.001"),
        ("when", ERROR, "communication point: expected a finite time, got nan s"),
        ("ahead", ERROR, "communication point: expected 0.02"),
        ("again", ERROR, "the end of the last step, got 0.019"),
    ],
)
def test_each_is_answered_in_a_sentence(results: list[Any], name: str, status: int, text: str) -> None:
    values, output = results[0][name]
    assert values == status
    assert [item[0] for item in output] == [status]
    assert text in output[0][1]
    assert len(output[0][1]) < 300


def test_nothing_is_damaged(results: list[Any]) -> None:
    """The instance that was asked wrongly goes on with the bits of one that was not, and can be freed."""
    _, stored, whole, after, again, fresh = results
    assert stored != 0.9
    assert whole == after == again == fresh
    assert any(whole)


WITHOUT = """
import sys
sys.modules["rtmms"] = None  # import rtmms: ModuleNotFoundError, as where it is not installed
import fmpy
try:
    fmpy.simulate_fmu(sys.argv[1], stop_time=0.01)
except Exception as fault:
    print("refused:", fault)
"""


def test_where_rtmms_is_not_installed_the_host_lives_and_is_reported(manta: Path) -> None:
    for _ in range(3):
        child = subprocess.run(
            [sys.executable, "-c", WITHOUT, str(manta)], capture_output=True, text=True, timeout=120, check=False
        )
        assert child.returncode == 0, child.stderr
        assert "refused: Failed to instantiate FMU" in child.stdout
        assert "this FMU needs rtmms (pip install 'rtmms[fmi]') in the Python that runs it" in child.stdout
