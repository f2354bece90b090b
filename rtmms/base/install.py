"""Commands that install an optional part of an installed package, for messages."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, distribution
from shlex import quote
from urllib.parse import urlsplit
from urllib.request import url2pathname


def install_command(extra: str, package: str = "rtmms") -> str:
    """Return the pip command that adds an extra to a package where it is installed from.

    Parameters
    ----------
    extra : str
        The extra, as 'gym'.
    package : str, default 'rtmms'
        The package that has it.

    Returns
    -------
    str
        `pip install -e 'CLONE[EXTRA]'` for a clone, the file or the address of any other direct installation, and `pip
        install 'PACKAGE[EXTRA]'` for a package from an index. See PEP 610.
    """
    try:
        origin = json.loads(distribution(package).read_text("direct_url.json") or "{}")
        url, editable = str(origin.get("url", "")), bool(origin.get("dir_info", {}).get("editable"))
        system = str(origin.get("vcs_info", {}).get("vcs", ""))
    except (PackageNotFoundError, ValueError, AttributeError):
        url, editable, system = "", False, ""
    if not url:
        return f"pip install '{package}[{extra}]'"
    parts = urlsplit(url)
    if parts.scheme != "file":
        return f"pip install {quote(f'{package}[{extra}] @ ' + (f'{system}+' if system else '') + url)}"
    path = url2pathname(parts.path)
    return f"pip install {'-e ' if editable else ''}{quote(f'{path}[{extra}]')}"
