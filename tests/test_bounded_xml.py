"""XML of anybody is looked through before a tree is made of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtmms.base.errors import ModelError
from rtmms.base.files import XmlLimits, check_npz, check_xml
from rtmms.model.urdf import KINDS, read_mesh

SMALL = XmlLimits(max_bytes=10_000, max_parts=20, max_depth=5, max_value_chars=10, max_words=6)
REFUSED = {
    "a document type": (b"<!DOCTYPE r><r/>", "no document type"),
    "an entity": (b'<!DOCTYPE r [<!ENTITY a "b">]><r>&a;</r>', "no document type"),
    "a file of others": (b'<!DOCTYPE r SYSTEM "file:///etc/passwd"><r/>', "no document type"),
    "bytes": (b"<r>" + b" " * 10_000 + b"</r>", "at most 10000 bytes, got 10007"),
    "elements": (b"<r>" + b"<a/>" * 20 + b"</r>", "at most 20 elements and attributes"),
    "attributes": (b"<r " + b" ".join(b'a%d=""' % k for k in range(20)) + b"/>", "at most 20 elements and attributes"),
    "depth": (b"<a>" * 6 + b"</a>" * 6, "at most 5 elements within each other"),
    "a value": (b'<r a="12345678901"/>', "<r>: a: expected at most 10 characters, got 11"),
    "words": (b"<r>1 2 3 4 5 6 7</r>", "at most 6 words of text"),
    "half a document": (b"<r>", "expected XML"),
    "nothing": (b"", "expected XML"),
    "an encoding": (b'<?xml version="1.0" encoding="none-such"?><r/>', "expected XML"),
}


@pytest.mark.parametrize(("data", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ModelError) as output:
        check_xml(data, "a place", SMALL)
    assert str(output.value).startswith("a place: ")
    assert message in str(output.value)


def test_what_is_counted() -> None:
    result = check_xml(b'<r xmlns:x="u"><x:a u="1"/><a u="1"/><b>1 2</b></r>', "a place", counted={"a": "u"})
    assert (result.word_count, result.elements) == (2, {"r": 1, "a": 2, "b": 1})
    assert result.values == {("a", "1"): 2}


def test_meshes_are_of_a_few_kinds(tmp_path: Path) -> None:
    for name in ("m.zip", "m.glb", "m.3mf", "m.zae", "m", "m.tar.gz"):
        (tmp_path / name).write_bytes(b"x")
        with pytest.raises(ModelError, match="expected a file of"):
            read_mesh(tmp_path / name)
    assert not {".zip", ".gz", ".zae", ".3mf"} & set(KINDS)


def test_an_obj_file_is_vertices_and_faces(tmp_path: Path) -> None:
    file = tmp_path / "m.obj"
    file.write_text("mtllib /etc/passwd\nv 0 0 0\nv 1 0 0 9\nv 1 1 0\nv 0 1 0\nusemtl x\nf 1/1/1 2//2 3 -1\n")
    vertices, faces = read_mesh(file)
    assert vertices.tolist() == [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]
    assert faces.tolist() == [[0, 1, 2], [0, 2, 3]]
    file.write_text("v 0 0 0\nf 1 2 3\n")
    with pytest.raises(ModelError, match="expected faces with indices of the vertices"):
        read_mesh(file)


MESHES = {
    "m.stl": (b"\x00" * 80 + b"\xff\xff\xff\xff" + b"\x00" * 50, "size does not fit its number"),
    "m.ply": (b"ply\nformat ascii 1.0\nelement vertex 999999999\nend_header\n", "at most 500000 elements vertex"),
    "n.ply": (b"ply\nelement vertex 9x\nend_header\n", "expected 'element NAME COUNT'"),
    "m.dae": (b'<!DOCTYPE r [<!ENTITY a "b">]><r/>', "no document type"),
    "n.dae": (b"<r>" + b'<instance_geometry url="#g"/>' * 4000 + b"</r>", "fewer nested copies"),
    "o.dae": (b"<r>" + b'<instance_node url="#g"/>' * 60 + b"</r>", "fewer nested copies"),
}


@pytest.mark.parametrize("name", MESHES)
def test_a_mesh_is_looked_through(tmp_path: Path, name: str) -> None:
    data, message = MESHES[name]
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ModelError) as output:
        read_mesh(tmp_path / name)
    assert message in str(output.value)


def test_arrays_that_unpack_to_much_are_refused(tmp_path: Path) -> None:
    import numpy as np

    small, large = tmp_path / "a.npz", tmp_path / "b.npz"
    np.savez_compressed(small, a=np.zeros(1000))
    np.savez_compressed(large, a=np.zeros(9_000_000))
    with small.open("rb") as file:
        check_npz(file, small)
    with (
        large.open("rb") as file,
        pytest.raises(ModelError, match="expected arrays of at most 64 MiB, got 68 MiB once unpacked"),
    ):
        check_npz(file, large)
