"""A build hook: in an editable install, the folders of our plug-ins are importable by their names.

Hatchling maps folders to other names in a wheel (`sources`), but not in an editable install, which is a line in a .pth
file. This hook adds a finder of those folders, so that no symbolic links are needed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDERS = {"rtmms_controllers": "controllers", "rtmms_bridges": "bridges", "rtmms_benchmarks": "benchmarks"}

FINDER = '''"""Written by {hook}: packages whose folders have other names."""

import sys

FOLDERS = {folders!r}


class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        folder = FOLDERS.get(name)
        if folder is None:
            return None
        from importlib.util import spec_from_file_location

        return spec_from_file_location(name, folder + "/__init__.py", submodule_search_locations=[folder])


sys.meta_path.insert(0, Finder)
'''


class EditableFolders(BuildHookInterface):
    """What an editable wheel holds beside its .pth file."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the entry of this package to `build_data`; `version` is 'editable' or 'standard'."""
        if version != "editable":
            return
        root = Path(self.root)
        made = root / "build" / "editable"
        made.mkdir(parents=True, exist_ok=True)
        folders = {name: (root / folder).as_posix() for name, folder in FOLDERS.items()}
        (made / "_rtmms_folders.py").write_text(FINDER.format(hook=".ci/editable.py", folders=folders))
        (made / "_rtmms_folders.pth").write_text("import _rtmms_folders\n")
        build_data["force_include_editable"] = {
            **self.build_config.get_force_include(),
            **{str(made / name): name for name in ("_rtmms_folders.py", "_rtmms_folders.pth")},
        }
