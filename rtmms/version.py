"""The version of the package: what `rtmms.__version__`, logs, FMUs and pyproject.toml have."""

VERSION = "0.2.0"
