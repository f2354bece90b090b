# The README's commands, each of which needs nothing but Python 3.11 or newer: they make .venv and install into it.
PYTHON ?= python3

.PHONY: run test check bench docs pictures frames notebooks clean

run: .venv/installed       ## the manta swims for 20 s; picture in manta.png
	.venv/bin/rtmms run manta --figure manta.png

test: .venv/tested         ## the default tests
	.venv/bin/python -m pytest -q

check:                     ## what a change must pass: style, types, imports, tests
	.ci/run

bench: .venv/installed     ## what a step costs, against plain Python
	.venv/bin/rtmms bench plant

docs: .venv/documented    ## the documentation as a site, in build/site
	NO_MKDOCS_2_WARNING=1 DISABLE_MKDOCS_2_WARNING=true .venv/bin/mkdocs build -q --strict

pictures: .venv/documented ## the pictures of docs/images that show robots; needs Chromium
	.venv/bin/python docs/site/pictures.py

frames: .venv/documented   ## the pictures of docs/images/frames
	.venv/bin/python docs/site/frames.py

notebooks: .venv/tested   ## the notebooks of docs/notebooks, run again, with the outputs of their cells
	.venv/bin/python docs/site/notebooks.py

clean:
	rm -rf .venv build *.egg-info

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/installed: pyproject.toml | .venv/bin/python
	.venv/bin/python -m pip install -q -e .
	touch $@

.venv/documented: pyproject.toml | .venv/bin/python
	.venv/bin/python -m pip install -q -e '.[docs]'
	touch $@

.venv/tested: pyproject.toml | .venv/bin/python
	.venv/bin/python -m pip install -q -e '.[test]'
	touch $@
