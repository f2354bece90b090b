"""FMUs written in C for the tests: a tool that is not ours, built with the headers of the standard."""

from __future__ import annotations

import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

HERE = Path(__file__).parent

FMI3 = """<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="3.0" modelName="Lag" instantiationToken="lag">
  <CoSimulation modelIdentifier="lag" canGetAndSetFMUState="true" canSerializeFMUState="true"
    canHandleVariableCommunicationStepSize="false" fixedInternalStepSize="0.01"/>
  <UnitDefinitions><Unit name="m"><BaseUnit m="1"/></Unit></UnitDefinitions>
  <ModelVariables>
    <Float64 name="time" valueReference="0" causality="independent" variability="continuous"/>
    <Float64 name="u" valueReference="1" causality="input" start="0 0" min="-50" max="50">
      <Dimension start="2"/>
    </Float64>
    <Boolean name="open" valueReference="2" causality="input" variability="discrete" start="true"/>
    <Float64 name="gain" valueReference="3" causality="parameter" variability="tunable" start="2"/>
    <Float64 name="x" valueReference="4" causality="output" unit="m" initial="calculated"/>
    <Float64 name="y" valueReference="5" causality="output" initial="calculated"><Dimension start="2"/></Float64>
    <Int32 name="count" valueReference="6" causality="output" variability="discrete" initial="calculated"/>
    <Int32 name="seed" valueReference="7" causality="parameter" variability="fixed" start="0"/>
  </ModelVariables>
  <ModelStructure>
    <Output valueReference="4"/><Output valueReference="5"/><Output valueReference="6"/>
    <InitialUnknown valueReference="4"/><InitialUnknown valueReference="5"/><InitialUnknown valueReference="6"/>
  </ModelStructure>
</fmiModelDescription>
"""

FMI2 = """<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="Lag" guid="lag">
  <CoSimulation modelIdentifier="lag" canHandleVariableCommunicationStepSize="true"/>
  <ModelVariables>
    <ScalarVariable name="u" valueReference="0" causality="input"><Real start="0"/></ScalarVariable>
    <ScalarVariable name="gain" valueReference="1" causality="parameter" variability="fixed">
      <Real start="2"/>
    </ScalarVariable>
    <ScalarVariable name="x" valueReference="2" causality="output"><Real/></ScalarVariable>
  </ModelVariables>
  <ModelStructure><Outputs><Unknown index="3"/></Outputs>
    <InitialUnknowns><Unknown index="3"/></InitialUnknowns>
  </ModelStructure>
</fmiModelDescription>
"""


def build(folder: Path, version: int, mischief: str = "") -> Path:
    """The lag for FMI 2 or 3 as a file in `folder`; skips the test where there is no C compiler.

    mischief  C that the one for FMI 2 does in its steps from 0.05 s on
    """
    fmpy = pytest.importorskip("fmpy", reason="fmpy is not installed: pip install 'rtmms[fmi]'")
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler: the foreign FMU of these tests is written in C")
    platform = "x86_64-linux" if version == 3 else "linux64"
    if fmpy.platform != "linux64":
        pytest.skip(f"the foreign FMU of these tests is built on 64-bit Linux only, this is {fmpy.platform}")
    built, headers = folder / f"lag{version}.fmu", Path(fmpy.__file__).parent / "c-code"
    library = folder / "lag.so"
    arguments = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", f"-I{headers}", "-o", str(library)]
    text = (headers / f"fmi{version}Functions.h").read_text()
    names = re.findall(rf"#define (fmi{version}[A-Z]\w+)\s+fmi{version}FullName", text)
    stubs = folder / "stubs.c"  # an FMU exports every function of the standard; what the lag does not need fails
    stubs.write_text("".join(f"__attribute__((weak)) int {name}(void) {{ return 3; }}\n" for name in names))
    arguments += [f"-DMISCHIEF={mischief}"] if mischief else []
    subprocess.run([*arguments, str(HERE / f"lag{version}.c"), str(stubs), "-lm"], check=True, timeout=60)
    with zipfile.ZipFile(built, "w") as file:
        file.writestr("modelDescription.xml", FMI3 if version == 3 else FMI2)
        file.write(library, f"binaries/{platform}/lag.so")
    return built
