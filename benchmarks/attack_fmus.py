"""FMUs that no tool writes, for `rtmms bench attacks`: archives, descriptions and binaries that are none."""

from __future__ import annotations

import io
import random
import re
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from .attack_cases import Case, command, flipped

DESCRIPTION = """<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="3.0" modelName="Lag" instantiationToken="lag">
  <CoSimulation modelIdentifier="lag" canHandleVariableCommunicationStepSize="false" fixedInternalStepSize="0.01"/>
  <UnitDefinitions><Unit name="m"><BaseUnit m="1"/></Unit></UnitDefinitions>
  <ModelVariables>
    <Float64 name="time" valueReference="0" causality="independent" variability="continuous"/>
    <Float64 name="u" valueReference="1" causality="input" start="0 0" min="-50" max="50">
      <Dimension start="2"/></Float64>
    <Boolean name="open" valueReference="2" causality="input" variability="discrete" start="true"/>
    <Float64 name="gain" valueReference="3" causality="parameter" variability="tunable" start="2"/>
    <Float64 name="x" valueReference="4" causality="output" unit="m" initial="calculated"/>
    <Float64 name="y" valueReference="5" causality="output" initial="calculated"><Dimension start="2"/></Float64>
  </ModelVariables>
  <ModelStructure><Output valueReference="4"/><Output valueReference="5"/>
    <InitialUnknown valueReference="4"/><InitialUnknown valueReference="5"/></ModelStructure>
</fmiModelDescription>
"""
VALUES = (
    "", "x", "-1", "0", "1e999", "nan", "inf", "-inf", "99999999999999999999", "1000000000", "2147483648", "1e-300",
    "../../precious", "&#27;]0;owned&#7;", "a&#10;rtmms: all is well", "[/oops]", "x" * 100_000, "true", "0 0 0 0 0",
    "&lt;script&gt;", "4294967296", "0x10", "\u202e", "3.0-beta",
)  # fmt: skip
ENTITIES = "".join(f'<!ENTITY a{k} "{f"&a{k - 1};" * 10 if k else "lol" * 10}">' for k in range(10))
BINARY = "binaries/x86_64-linux/lag.so"
COMMANDS = (
    ("run", "theirs.fmu", "--controller", "none", "--mode", "free", "--duration", "0.05", "--quiet"),
    ("list", "theirs.fmu"), ("export-fmu", "theirs.fmu", "-o", "out.fmu"),
    ("run", "theirs.fmu", "--controller", "none", "--mode", "free", "--duration", "0.05", "--set", "gain=1e999"),
    ("sweep", "theirs.fmu", "--over", "gain=1,2", "--duration", "0.05", "-o", "out.parquet", "--threads", "1"),
    ("serve", "theirs.fmu", "--duration", "0.05"),
)  # fmt: skip


def fmus(source: Path, chance: random.Random, count: int) -> Iterator[Case]:
    """An archive of each kind below, or a description with one value changed, into each command that takes an FMU."""
    kinds = list(_archives(chance).items())
    for number in range(count):
        if number % 2 and kinds:
            name, make = kinds[number // 2 % len(kinds)]
        else:
            name, make = _changed(chance)
        words = chance.choice(COMMANDS)

        def prepare(folder: Path, make: Callable[[], bytes] = make) -> None:
            (folder / "theirs.fmu").write_bytes(make())
            (folder / "precious").write_text("precious")

        yield Case(f"{name} {' '.join(words)}", prepare, command(*words))


def _changed(chance: random.Random) -> tuple[str, Callable[[], bytes]]:
    """One attribute with another value, or one gone."""
    places = list(re.finditer(r'(\w+)="([^"]*)"', DESCRIPTION))
    at, value = chance.choice(places), chance.choice(VALUES)
    gone = chance.random() < 0.1
    text = DESCRIPTION[: at.start()] + ("" if gone else f'{at[1]}="{value}"') + DESCRIPTION[at.end() :]
    return f"{at[0]} -> {'' if gone else value[:40]!r}", lambda: packed({"modelDescription.xml": text, BINARY: ELF})


def _archives(chance: random.Random) -> dict[str, Callable[[], bytes]]:
    sound: dict[str, str | bytes] = {"modelDescription.xml": DESCRIPTION, BINARY: ELF}
    doctype = f"<!DOCTYPE f [{ENTITIES}]>"
    laughing = DESCRIPTION.replace("<fmi", f"{doctype}<fmi", 1).replace('modelName="Lag"', 'modelName="&a9;"')
    reading = DESCRIPTION.replace("<fmi", '<!DOCTYPE f [<!ENTITY x SYSTEM "file:///etc/passwd">]><fmi', 1).replace(
        "<ModelStructure>", "<ModelStructure>&x;"
    )
    variable = '<Float64 name="v{}" valueReference="{}" causality="output"/>'
    many = "".join(variable.format(k, 10 + k) for k in range(100_000))

    def described(text: str) -> Callable[[], bytes]:
        return lambda: packed(sound | {"modelDescription.xml": text})

    return {
        "zeros unpacked": lambda: packed(sound | {"resources/bomb": bytes(1 << 30)}, copies=3),
        "many files": lambda: packed(sound | {f"resources/{k}": "" for k in range(50_001)}),
        "deep folders": lambda: packed(sound | {"resources/" + "a/" * 2000 + "b": ""}),
        "long name": lambda: packed(sound | {"resources/" + "a" * 60_000: ""}),
        "parent": lambda: packed(sound | {"../precious": "gone"}),
        "root": lambda: packed(sound | {"/tmp/rtmms-owned": "gone"}),
        "parent within": lambda: packed(sound | {"resources/../../precious": "gone"}),
        "windows": lambda: packed(sound | {"..\\precious": "gone", "c:precious": "gone"}),
        "link": lambda: packed(sound | {"resources/x": "../../../precious"}, links=("resources/x",)),
        "link to a folder": lambda: packed({"binaries": "/usr/lib", "modelDescription.xml": DESCRIPTION},
                                           links=("binaries",)),
        "link as description": lambda: packed({"modelDescription.xml": "/etc/passwd"}, links=("modelDescription.xml",)),
        "twice": lambda: packed(sound) + packed({"modelDescription.xml": "x"}),
        "file and folder": lambda: packed(sound | {"resources": "x", "resources/x": "y"}),
        "name in the name": lambda: packed(sound | {"resources/\x1b]0;owned\x07": "x"}),
        "locked": lambda: packed(sound).replace(b"PK\x03\x04\x14\x00\x00\x00", b"PK\x03\x04\x14\x00\x01\x00"),
        "cut": lambda: packed(sound)[: chance.randrange(400)],
        "flipped": lambda: flipped(packed(sound), chance),
        "noise": lambda: b"PK\x03\x04" + chance.randbytes(4096),
        "sizes that lie": lambda: _lying(packed(sound)),
        "no description": lambda: packed({BINARY: ELF}),
        "description that is a folder": lambda: packed({"modelDescription.xml/x": "", BINARY: ELF}),
        "description of 80 MB": described("<a>" + " " * (80 << 20)),
        "entities": described(laughing),
        "a file by an entity": described(reading),
        "elements in elements": described("<a>" * 100_000),
        "100,000 variables": described(DESCRIPTION.replace("</ModelVariables>", many + "</ModelVariables>")),
        "other encoding": lambda: packed(sound | {"modelDescription.xml": DESCRIPTION.encode("utf-16")}),
        "10^9 elements": described(DESCRIPTION.replace('Dimension start="2"', 'Dimension start="1000000000"')),
        "10^6 elements": described(DESCRIPTION.replace('Dimension start="2"', 'Dimension start="1000000"')),
        "many dimensions": described(
            DESCRIPTION.replace('<Dimension start="2"/>', '<Dimension start="9"/>' * 60)
        ),
        "the same name": described(
            DESCRIPTION.replace('name="x"', 'name="gain"').replace('name="open"', 'name="u[0]"')
        ),
        "no binary": lambda: packed({"modelDescription.xml": DESCRIPTION}),
        "binary that is text": lambda: packed(sound | {BINARY: "#!/bin/sh\ntouch precious\n"}),
        "binary cut": lambda: packed(sound | {BINARY: ELF[:64]}),
        "binary of another machine": lambda: packed(sound | {BINARY: ELF[:18] + b"\xb7\x00" + ELF[20:]}),
        "binary empty": lambda: packed(sound | {BINARY: ""}),
    }  # fmt: skip


ELF = struct.pack("<4s5B7xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 0, 0, 3, 62, 1, 0, 64, 0, 0, 64, 56, 0, 64, 0, 0)
"""The head of a shared library that has nothing in it."""


def packed(files: dict[str, str | bytes], links: tuple[str, ...] = (), copies: int = 1) -> bytes:
    """A zip archive of these; links are of symbolic links, the last file stands in it so many times."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        for name, data in files.items():
            last = name == list(files)[-1]
            for copy in range(copies if last else 1):
                entry = zipfile.ZipInfo(name + str(copy or ""))
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = (0o120777 if name in links else 0o100644) << 16
                file.writestr(entry, data)
    return out.getvalue()


def _lying(data: bytes) -> bytes:
    """Its directory says that all files have one byte."""
    made = bytearray(data)
    for at in (found.start() for found in re.finditer(rb"PK\x01\x02", data)):
        made[at + 24 : at + 28] = struct.pack("<I", 1)
    return bytes(made)
