"""Messages about what is missing name a command that installs it: from the clone, the file or the index."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from rtmms.base import install


class Distribution:
    """A package as PEP 610 records where it is from."""

    def __init__(self, origin: Any) -> None:
        self.text = origin if isinstance(origin, str) or origin is None else json.dumps(origin)

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return self.text


@pytest.mark.parametrize(
    ("origin", "arguments"),
    [
        (None, ["rtmms[gym]"]),
        ("not JSON", ["rtmms[gym]"]),
        ("[]", ["rtmms[gym]"]),
        ({"url": "file:///home/me/rtmms", "dir_info": {"editable": True}}, ["-e", "/home/me/rtmms[gym]"]),
        ({"url": "file:///home/my%20own/rtmms", "dir_info": {}}, ["/home/my own/rtmms[gym]"]),
        ({"url": "file:///tmp/rtmms-0.3.0-py3-none-any.whl", "archive_info": {}},
         ["/tmp/rtmms-0.3.0-py3-none-any.whl[gym]"]),
        ({"url": "https://example.org/rtmms.git", "vcs_info": {"vcs": "git", "commit_id": "1"}},
         ["rtmms[gym] @ git+https://example.org/rtmms.git"]),
    ],
)  # fmt: skip
def test_the_command_installs_from_where_it_is(
    monkeypatch: pytest.MonkeyPatch, origin: Any, arguments: list[str]
) -> None:
    monkeypatch.setattr(install, "distribution", lambda package: Distribution(origin))
    assert shlex.split(install.install_command("gym")) == ["pip", "install", *arguments]


def test_a_package_that_is_not_installed_comes_from_the_index() -> None:
    assert install.install_command("lacking", "no-such-package") == "pip install 'no-such-package[lacking]'"
