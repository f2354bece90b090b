"""The version of the package, for `rtmms.__version__`, logs, FMUs and pyproject.toml."""

VERSION = "0.3.0"
