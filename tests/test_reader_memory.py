"""What a reader of foreign bytes takes of the memory for an input of 10 MB, made to take as much as it can.

Each reader runs in a process of its own, warm, so that the growth of its peak is the input's alone.
"""

from __future__ import annotations

import io
import json
import struct
import subprocess
import sys
import textwrap
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.full

SIZE = 10_000_000
MAX_MIB = 300.0
ROOT = Path(__file__).resolve().parent.parent

Case = tuple[str, str, str, Callable[[], bytes | str]]
"""Imports, what is called with `path`, name of the file, and what the file has."""


def filled(head: str, item: str, tail: str = "") -> str:
    """`item` again and again, up to the size."""
    return head + item * ((SIZE - len(head) - len(tail)) // len(item)) + tail


def numbered(head: str, item: str, tail: str = "") -> str:
    """The same, each `item` with its number in place of %d."""
    parts, size, k = [head], len(head) + len(tail), 0
    while size < SIZE - len(item) - 8:
        parts.append(item.replace("%d", str(k)))
        size += len(parts[-1])
        k += 1
    return "".join((*parts, tail))


def zipped(entries: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return out.getvalue()


def many_entries() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for k in range(SIZE // 160):
            archive.writestr(f"resources/{k}", b"")
    return out.getvalue()


def npz(**arrays: int) -> bytes:
    """Arrays of zeros, of so many numbers, packed."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, count in arrays.items():
            head = io.BytesIO()
            form = {"descr": "<f8", "fortran_order": False, "shape": (count,)}
            np.lib.format.write_array_header_1_0(head, form)  # type: ignore[arg-type]
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                file.write(head.getvalue())
                for _ in range(count * 8 >> 20):
                    file.write(bytes(1 << 20))
    return out.getvalue()


def trace() -> bytes:
    origin = io.BytesIO()
    np.save(origin, np.array(json.dumps({"format": "rtmms trace 1"})))
    bomb = npz(command=1 << 28)
    out = io.BytesIO(bomb)
    with zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("origin.npy", origin.getvalue())
    return out.getvalue()


def log_of(inner: bytes, announced: int | None = None) -> bytes:
    """A log whose one chunk has this."""
    import zlib

    import zstandard

    packed = zstandard.compress(inner, 19 if len(inner) < 1 << 24 else 1)
    size = len(inner) if announced is None else announced
    chunk = struct.pack("<QQQI", 0, 1, size, zlib.crc32(inner)) + struct.pack("<I", 4) + b"zstd"
    chunk += struct.pack("<Q", len(packed)) + packed
    return b"\x89MCAP0\r\n" + bytes([6]) + struct.pack("<Q", len(chunk)) + chunk


def log_of_columns(blocks: int) -> bytes:
    """A log of columns alone: so many attachments, each of 4096 steps of zeros."""
    import zlib

    from mcap.writer import Writer

    from rtmms.loop.log_row import RowHead
    from rtmms.record.columns import MAX_ROWS, ColumnWriter
    from rtmms.record.log_messages import signals, width
    from rtmms.record.origin import describe
    from rtmms.record.records import BINARY, COLUMNS
    from tests.pendulum import Pendulum

    run = {"robot": "pendulum", "preset": None, "parameters": {}, "seed": 0, "mode": "free", "rate": 1.0}
    origin = describe(Pendulum(), run)
    actuators, outputs = signals(origin["actuators"]), signals(origin["outputs"])
    block = ColumnWriter(actuators, outputs)
    for _ in range(MAX_ROWS):
        block.add(RowHead(*[0] * len(RowHead._fields)), bytes(8 * (width(actuators) + width(outputs))))
    first = block.take()
    length = struct.unpack_from("<I", first)[0]
    table, parts = json.loads(first[8 : 8 + length]), first[8 + length :]
    out = io.BytesIO()
    writer = Writer(out)
    writer.start()
    writer.add_attachment(0, 0, "origin.json", "application/json", json.dumps(origin).encode())
    for k in range(blocks):
        text = json.dumps({**table, "first": k * MAX_ROWS, "last": k == blocks - 1}).encode()
        data = struct.pack("<II", len(text), zlib.crc32(text)) + text + parts
        writer.add_attachment(0, 0, COLUMNS, BINARY, data)
    writer.finish()  # type: ignore[no-untyped-call]
    return out.getvalue()


def message() -> bytes:
    return bytes([5]) + struct.pack("<Q", 22) + bytes(22)


def dae(text: str) -> str:
    head = '<?xml version="1.0"?><COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">'
    return f"{head}{text}</COLLADA>"


def triangles(item: str, tail: str = "") -> str:
    source = (
        '<library_geometries><geometry id="g"><mesh><source id="s"><float_array id="sa" count="9">0 0 0 1 0 0 0 1 0'
        '</float_array><technique_common><accessor source="#sa" count="3" stride="3"><param name="X" type="float"/>'
        '<param name="Y" type="float"/><param name="Z" type="float"/></accessor></technique_common></source>'
        '<vertices id="v"><input semantic="POSITION" source="#s"/></vertices><triangles count="COUNT"><input '
        'semantic="VERTEX" source="#v" offset="0"/><p>'
    )
    end = "</p></triangles></mesh></geometry></library_geometries>" + tail
    return dae(filled(source.replace("COUNT", str(SIZE // 6)), item, end))


def laughs(root: str) -> str:
    """Entities of entities."""
    lines = ['<!ENTITY a0 "ha">'] + [f'<!ENTITY a{k} "{f"&a{k - 1};" * 10}">' for k in range(1, 9)]
    return f'<?xml version="1.0"?><!DOCTYPE {root} [{"".join(lines)}]><{root} name="r"><link name="&a8;"/></{root}>'


def stl() -> bytes:
    count = (SIZE - 84) // 50
    rows = np.zeros(count, dtype=[("normal", "<f4", 3), ("corners", "<f4", 9), ("more", "<u2")])
    rows["corners"] = np.random.default_rng(0).random((count, 9))
    return bytes(80) + struct.pack("<I", count) + rows.tobytes()


URDF = "from rtmms.model.urdf import read_urdf; import yourdfpy, trimesh, lxml"
MESH = (
    "from rtmms.model.urdf import read_mesh; from rtmms.model.description import mesh; "
    "from rtmms.model.solids import Placement; import trimesh, collada, lxml; from pathlib import Path"
)
DRAW = "mesh(*read_mesh(Path(path)), Placement(), (), 900)"
DBC = "from rtmms_bridges.bus.signals import load; import cantools"
FMU = "from rtmms.fmi.archive import UnpackedFmu; from rtmms.fmi.read_description import parse_description; import fmpy"
OPEN_FMU = "parse_description(path, UnpackedFmu(path).folder)"
TOML = "from rtmms.base.toml_file import read_toml"
JSON = "from rtmms.bridging.untrusted import read_json; from pathlib import Path"
LOG = "from rtmms.record.records import records; import mcap, zstandard; from pathlib import Path"
READ_LOG = "for one in records(Path(path)): pass"
ARRAYS = "from rtmms.record.log_arrays import read_log; import mcap, zstandard"
TABLE = "from rtmms.studies.fit_tables import _read, refuse_bomb; from pathlib import Path; import pyarrow.parquet"
NPZ = "import numpy; from rtmms.model.modal import load_finite_elements"
WIRE = "from rtmms.wire.protocol.messages import decode, decode_from_plant; from pathlib import Path"
XML_FMU = '<fmiModelDescription fmiVersion="2.0" modelName="m" guid="g"><CoSimulation modelIdentifier="m"/>'

CASES: dict[str, Case] = {
    "urdf: elements": (URDF, "read_urdf(path)", "r.urdf", lambda: filled('<robot name="r">', "<a/>", "</robot>")),
    "urdf: links": (
        URDF, "read_urdf(path)", "r.urdf", lambda: numbered('<robot name="r">', '<link name="l%d"/>', "</robot>")),
    "urdf: entities": (URDF, "read_urdf(path)", "r.urdf", lambda: laughs("robot")),
    "urdf: an attribute": (
        URDF, "read_urdf(path)", "r.urdf",
        lambda: filled('<robot name="r"><link name="l"><inertial><origin xyz="', "1 ", '"/></inertial></link></robot>'),
    ),
    "urdf: attributes": (
        URDF, "read_urdf(path)", "r.urdf", lambda: numbered('<robot name="r"', ' a%d=""', "/>")),
    "stl": (MESH, DRAW, "m.stl", stl),
    "stl: text": (
        MESH, DRAW, "m.stl", lambda: filled(
            "solid x\n", "facet normal 0 0 0\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\n"
            "endfacet\n", "endsolid\n")),
    "stl: solids": (MESH, DRAW, "m.stl", lambda: filled("", "solid x\nendsolid x\n")),
    "obj: points": (MESH, DRAW, "m.obj", lambda: filled("", "v 1 2 3\nf 1 1 1\n")),
    "obj: faces": (MESH, DRAW, "m.obj", lambda: filled("v 1 2 3\nv 2 2 2\nv 3 1 2\n", "f 1 2 3\n")),
    "obj: a face": (MESH, DRAW, "m.obj", lambda: filled("v 1 2 3\nf ", "1 ")),
    "obj: groups": (MESH, DRAW, "m.obj", lambda: filled("v 1 2 3\nv 2 2 2\nv 3 1 2\n", "o x\nf 1 2 3\n")),
    "ply: text": (
        MESH, DRAW, "m.ply", lambda: filled(
            "ply\nformat ascii 1.0\nelement vertex 400000\nproperty float x\nproperty float y\nproperty float z\n"
            "end_header\n", "0 0 0\n")),
    "ply: announced": (
        MESH, DRAW, "m.ply", lambda: filled(
            "ply\nformat binary_little_endian 1.0\nelement vertex 4000000000\nproperty float x\nend_header\n", "\0")),
    "off": (MESH, DRAW, "m.off", lambda: filled("OFF\n900000 1 0\n", "1 2 3\n")),
    "dae: elements": (MESH, DRAW, "m.dae", lambda: dae("<a/>" * (SIZE // 4))),
    "dae: numbers": (MESH, DRAW, "m.dae", lambda: triangles("0 1 2 ")),
    "dae: entities": (MESH, DRAW, "m.dae", lambda: laughs("COLLADA")),
    "a mesh in an archive": (MESH, DRAW, "m.zip", lambda: zipped({"m.stl": bytes(1 << 29)})),
    "dbc": (DBC, "load(path)", "r.dbc", lambda: numbered(
        'VERSION ""\nBU_: A B\n', 'BO_ %d M%d: 8 A\n SG_ s : 0|8@1+ (1,0) [0|1] "" A\n\n')),
    "dbc: as long as it may be": (DBC, "load(path)", "r.dbc", lambda: numbered(
        'VERSION ""\nBU_: A B\n', 'BO_ 1%d M%d: 8 A\n SG_ s : 0|8@1+ (1,0) [0|1] "" A\n\n')[: 2_400_000]),
    "dbc: announced": (DBC, "load(path)", "r.dbc", lambda: 'VERSION ""\nBU_: A\nBO_ 1 M: 1000000000 A\n'),
    "fmu: entries": (FMU, OPEN_FMU, "m.fmu", many_entries),
    "fmu: packed": (FMU, OPEN_FMU, "m.fmu", lambda: zipped({f"resources/{k}": bytes(1 << 28) for k in range(9)})),
    "fmu: lzma": (FMU, OPEN_FMU, "m.fmu", lambda: zipped({"x": bytes(1 << 28)}, zipfile.ZIP_LZMA)),
    "fmu: elements": (FMU, OPEN_FMU, "m.fmu", lambda: zipped(
        {"modelDescription.xml": filled(XML_FMU, "<a/>", "</fmiModelDescription>").encode()})),
    "fmu: variables": (FMU, OPEN_FMU, "m.fmu", lambda: zipped({"modelDescription.xml": numbered(
        XML_FMU + "<ModelVariables>", '<ScalarVariable name="v%d" valueReference="%d"><Real/></ScalarVariable>',
        "</ModelVariables></fmiModelDescription>").encode()})),
    "toml": (TOML, "read_toml(path)", "t.toml", lambda: numbered("", "a%d=1\n")),
    "toml: as long as it may be": (TOML, "read_toml(path)", "t.toml", lambda: numbered("", "a%d=1\n")[:4_000_000]),
    "toml: lists": (TOML, "read_toml(path)", "t.toml", lambda: "x=[" + "[]," * 1_300_000 + "]"),
    "json of a bridge": (JSON, "read_json(Path(path).read_bytes())", "m", lambda: filled("[", "{},", "{}]")),
    "log: zeros": (LOG, READ_LOG, "l.mcap", lambda: log_of(bytes(1 << 29))),
    "log: zeros that are not announced": (LOG, READ_LOG, "l.mcap", lambda: log_of(bytes(1 << 29), 1000)),
    "log: messages": (LOG, READ_LOG, "l.mcap", lambda: log_of(message() * 4_000_000)),
    "log: as many messages as it may be": (LOG, READ_LOG, "l.mcap", lambda: log_of(message() * 540_000)),
    "log: columns": (ARRAYS, "read_log(path).time", "l.mcap", lambda: log_of_columns(6000)),
    "log: columns, as many as may be": (ARRAYS, "read_log(path).outcomes", "l.mcap", lambda: log_of_columns(1000)),
    "log: a column": (ARRAYS, "read_log(path)['angle']", "l.mcap", lambda: log_of_columns(6000)),
    "log: a wide column": (ARRAYS, "read_log(path)['shape']", "l.mcap", lambda: log_of_columns(1000)),
    "trace of commands": (
        "from rtmms.record.commands import load; from pathlib import Path", "load(Path(path))", "t.npz", trace),
    "finite elements": (
        NPZ, "load_finite_elements('b', path, modes=2)", "m.npz", lambda: npz(nodes=1 << 28, mass=8, stiffness=8)),
    "frame": (WIRE, "decode(Path(path).read_bytes(), 1 << 16)", "f", lambda: b"\xdd\xff\xff\xff\xff" + b"\x90" * SIZE),
    "frame of a plant": (
        WIRE, "decode_from_plant(Path(path).read_bytes())", "f", lambda: b"\xdc\xff\xff" * (SIZE // 3)),
    "msgpack of zenoh": (
        "from rtmms_bridges.zenoh import read_msgpack; import msgpack; from pathlib import Path",
        "read_msgpack(Path(path).read_bytes())", "f", lambda: b"\xdd\xff\xff\xff\xff" + b"\x90" * SIZE),
    "table: csv": (TABLE, "_read(Path(path))", "t.csv", lambda: filled("time,a,b,c,d\n", "1,2,3,4,5\n")),
    "table: wide csv": (TABLE, "_read(Path(path))", "t.csv", lambda: filled("t\n", "1,")),
    "table: parquet": (TABLE, "refuse_bomb(Path(path)); _read(Path(path))", "t.parquet", lambda: parquet()),
    "table: parquet of texts": (
        TABLE, "refuse_bomb(Path(path)); _read(Path(path))", "t.parquet", lambda: texts()),
    "shapes": (
        "from rtmms.locomotion.paths import read_shapes", "read_shapes(path, 2)", "s.csv",
        lambda: filled("", "1,2\n")),
}  # fmt: skip


def texts() -> bytes:
    """One text of 4 MB, a million times."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = io.BytesIO()
    item = pa.DictionaryArray.from_arrays(pa.array(np.zeros(1_000_000, dtype=np.int32)), pa.array(["x" * 4_000_000]))
    pq.write_table(pa.table({"time": item}), out, compression="none", store_schema=False)
    return out.getvalue()


def parquet() -> bytes:
    """One value, 20 million times."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(pa.table({"time": pa.array(np.zeros(20_000_000))}), out)
    return out.getvalue()


NEEDS = {
    "urdf": ("yourdfpy", "trimesh"), "stl": ("trimesh",), "obj": ("trimesh",), "ply": ("trimesh",), "off": ("trimesh",),
    "dae": ("trimesh", "collada"), "a mesh": ("trimesh", "collada"), "dbc": ("cantools",), "fmu": ("fmpy",),
    "log": ("mcap", "zstandard"), "table": ("pyarrow",), "msgpack": ("msgpack", "zenoh"),
}  # fmt: skip

CHILD = """
    import resource, sys, warnings
    warnings.simplefilter("ignore")
    path = sys.argv[1]
    {imports}
    def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    before = peak()
    try:
        {call}
    except Exception as fault:
        print(f"{{type(fault).__name__}}: {{str(fault)[:200]}}")
    print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in KiB on Linux")
@pytest.mark.parametrize("name", CASES)
def test_a_reader_takes_a_bounded_part_of_the_memory(name: str, tmp_path: Path) -> None:
    for package in next((wants for word, wants in NEEDS.items() if name.startswith(word)), ()):
        pytest.importorskip(package)
    imports, call, file, built = CASES[name]
    content = built()
    path = tmp_path / file
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert path.stat().st_size <= 1.2 * SIZE
    program = textwrap.dedent(CHILD).format(imports=imports, call=call)
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    *output, grown = done.stdout.splitlines()
    assert float(grown) < MAX_MIB, f"{name}: grew by {grown} MiB ({output})"
