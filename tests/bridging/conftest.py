"""The wire's fixtures serve here too."""

from tests.wire.conftest import make_host, runtime_directory  # noqa: F401
