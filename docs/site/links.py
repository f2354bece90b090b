"""For mkdocs: links that lead out of docs/ become paths of the repository, as the site has no such files."""

from __future__ import annotations

import posixpath
import re
from typing import Any

LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(((?:\.\./)+[^)#]*)(#[^)]*)?\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    folder = posixpath.dirname(page.file.src_uri)

    def link_text(match: re.Match[str]) -> str:
        text, target = match.group(1), match.group(2)
        path = posixpath.normpath(posixpath.join("docs", folder, target))
        if path.startswith("docs/"):
            return match.group(0)
        return text if path in text or text.strip("`") in path else f"{text} (`{path}`)"

    return LINK.sub(link_text, markdown)
