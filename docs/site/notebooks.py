"""Runs the notebooks in docs/notebooks and stores the output of their cells, for the site: `make notebooks`.

It needs the extra `notebook`. A page within a cell is left out: it would be megabytes of the file.

`notebooks.py NAME...` runs those alone.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import nbclient
import nbformat

FOLDER = Path(__file__).parents[1] / "notebooks"
MAX_OUTPUT_LENGTH = 400_000
"""Characters of a cell's output that are stored."""


def main() -> None:
    for name in sys.argv[1:] or sorted(file.stem for file in FOLDER.glob("*.ipynb")):
        print(name, flush=True)
        file = FOLDER / f"{name}.ipynb"
        built = nbformat.read(file, as_version=4)
        with tempfile.TemporaryDirectory() as place:
            nbclient.NotebookClient(built, timeout=600, resources={"metadata": {"path": place}}).execute()
        for cell in built.cells:
            cell.metadata.pop("execution", None)  # times of day
            cell["outputs"] = [output for output in cell.get("outputs", []) if len(str(output)) < MAX_OUTPUT_LENGTH]
            if cell.cell_type != "code":
                del cell["outputs"]
        built.metadata.pop("language_info", None)
        nbformat.write(built, file)


if __name__ == "__main__":
    main()
