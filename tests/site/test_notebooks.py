"""docs/notebooks: each runs from its first cell to its last, as in Jupyter; a cell that raises fails it."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def test_there_are_some() -> None:
    assert len(NOTEBOOKS) >= 5


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")  # of Jupyter's own client
def test_it_runs(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient = pytest.importorskip("nbclient", reason="needs pip install 'rtmms[notebook]'")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    built = nbformat.read(file, as_version=4)
    nbclient.NotebookClient(built, timeout=240, resources={"metadata": {"path": str(tmp_path)}}).execute()
    output = [output for cell in built.cells if cell.cell_type == "code" for output in cell.outputs]
    pictures = sum("image/png" in item.get("data", {}) for item in output)
    assert pictures >= 1
    assert not any(item.output_type == "error" for item in output)
    stored = nbformat.read(file, as_version=4)  # the site shows what the file keeps
    assert any("image/png" in output.get("data", {}) for cell in stored.cells for output in cell.get("outputs", []))
