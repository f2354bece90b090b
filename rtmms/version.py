"""The version of the package: what `rtmms.__version__`, logs, FMUs and pyproject.toml tell."""

VERSION = "0.1.0"
