"""Old names of modules: each is imported under its new name, with a warning, for one minor version."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING

from rtmms.base.errors import RenamedWarning

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

MOVED_PACKAGES = {
    "rtmms.identification": "rtmms.studies",
    "rtmms.papers": "rtmms.studies",
    "rtmms.report": "rtmms.view",
    "rtmms.shapes": "rtmms.view",
    "rtmms.sweep": "rtmms.studies",
}
"""Old name of a package, and the package that has its modules now, under the same or another name."""
MOVED = {
    "rtmms.analysis.bordered": "rtmms.analysis.block_matrices",
    "rtmms.analysis.inverse": "rtmms.analysis.equilibrium",
    "rtmms.analysis.linear": "rtmms.analysis.linearise",
    "rtmms.analysis.linearise_step": "rtmms.analysis.linearise",
    "rtmms.analysis.trim_commands": "rtmms.analysis.trim",
    "rtmms.base.declared": "rtmms.base.source_declarations",
    "rtmms.base.typed": "rtmms.base.value_conversion",
    "rtmms.bridging.admission": "rtmms.bridging.untrusted",
    "rtmms.bridging.backoff": "rtmms.bridging.sending",
    "rtmms.bridging.fields": "rtmms.bridging.channels",
    "rtmms.bridging.outbox": "rtmms.bridging.sending",
    "rtmms.bridging.plugins": "rtmms.bridging.config",
    "rtmms.bridging.turns": "rtmms.bridging.sending",
    "rtmms.bridging.watchdog": "rtmms.bridging.peer_watch",
    "rtmms.continuum.shapes": "rtmms.continuum.strain_modes",
    "rtmms.contract": "rtmms.base.contract",
    "rtmms.errors": "rtmms.base.errors",
    "rtmms.fmi.slave": "rtmms.fmi.exported_fmi3",
    "rtmms.fmi.slave2": "rtmms.fmi.exported_fmi2",
    "rtmms.gym.tasks": "rtmms.gym.robot_tasks",
    "rtmms.identification.descent": "rtmms.studies.fit_descent",
    "rtmms.identification.evidence": "rtmms.studies.fit_evidence",
    "rtmms.identification.objectives": "rtmms.studies.fit_features",
    "rtmms.identification.page": "rtmms.studies.fit_page",
    "rtmms.identification.prediction": "rtmms.studies.fit_prediction",
    "rtmms.identification.recording": "rtmms.studies.recordings",
    "rtmms.identification.residuals": "rtmms.studies.fit_residuals",
    "rtmms.identification.tables": "rtmms.studies.fit_tables",
    "rtmms.identification.unknowns": "rtmms.studies.fit_unknowns",
    "rtmms.input_file": "rtmms.base.files",
    "rtmms.jit": "rtmms.base.jit",
    "rtmms.loop.fallback": "rtmms.loop.step_outcome",
    "rtmms.memory": "rtmms.base.memory",
    "rtmms.model.drawing": "rtmms.model.description",
    "rtmms.monitor": "rtmms.plant",
    "rtmms.monitor.monitor": "rtmms.plant.monitor",
    "rtmms.papers.fishsim_laws": "rtmms.studies.fishsim_laws",
    "rtmms.planning.shadow": "rtmms.planning.reconstructed_state",
    "rtmms.report.page": "rtmms.view.tables",
    "rtmms.report.tables": "rtmms.view.tables",
    "rtmms.scenario.options": "rtmms.scenario.run_options",
    "rtmms.sensing.entry": "rtmms.sensing.compiled_step",
    "rtmms.shapes.drawings": "rtmms.view.drawings",
    "rtmms.shapes.known": "rtmms.view.drawings",
    "rtmms.snapshot": "rtmms.base.snapshot",
    "rtmms.spatial": "rtmms.base.spatial",
    "rtmms.sweep.figure": "rtmms.studies.sweep_figure",
    "rtmms.sweep.in_process": "rtmms.studies.sweep_in_process",
    "rtmms.sweep.inputs": "rtmms.studies.sweep_files",
    "rtmms.sweep.rows": "rtmms.studies.sweep_rows",
    "rtmms.sweep.running": "rtmms.studies.sweep_running",
    "rtmms.sweep.study": "rtmms.studies.sweep_study",
    "rtmms.sweep.table": "rtmms.studies.sweep_table",
    "rtmms.terminal": "rtmms.base.terminal",
    "rtmms.view.notebook": "rtmms.view.page",
    "rtmms.view.picture": "rtmms.view.scene",
    "rtmms.view.scenery": "rtmms.view.colours",
    "rtmms.whole_file": "rtmms.base.files",
    "rtmms.world.sights": "rtmms.world.relative_sensors",
}
"""Old name of a module, and the module that has its contents now."""


class MovedModules(MetaPathFinder, Loader):
    """Finder of the old names, and the loader that replaces the old module by the new one."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a specification for an old name.

        Parameters
        ----------
        fullname : str
            Name of the module.
        path : Sequence[str] | None
            Unused.
        target : ModuleType | None, optional
            Unused.

        Returns
        -------
        ModuleSpec | None
            None for every other name.
        """
        known = fullname in MOVED or fullname in MOVED_PACKAGES or fullname.rpartition(".")[0] in MOVED_PACKAGES
        return ModuleSpec(fullname, self) if known else None

    def exec_module(self, module: ModuleType) -> None:
        """Import the new module under the old name.

        Parameters
        ----------
        module : ModuleType
            The old module.
        """
        old = module.__name__
        package, _, name = old.rpartition(".")
        new = MOVED.get(old) or MOVED_PACKAGES.get(old) or f"{MOVED_PACKAGES[package]}.{name}"
        warnings.warn(f"module {old} is {new} now; the next version removes the old name", RenamedWarning, stacklevel=2)
        sys.modules[old] = import_module(new)


def find_moved_modules() -> None:
    """Let Python import the old names; a second call changes nothing."""
    if not any(isinstance(item, MovedModules) for item in sys.meta_path):
        sys.meta_path.insert(0, MovedModules())  # before the finder of files, which would load a module twice
