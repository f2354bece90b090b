"""The public names of rtmms.locomotion: none is hidden by a module that is imported first."""

from __future__ import annotations

import pkgutil

from rtmms import locomotion


def test_no_module_is_called_as_a_public_name() -> None:
    modules = {module.name for module in pkgutil.iter_modules(locomotion.__path__)}
    assert "reduced_dynamics" in modules
    assert modules.isdisjoint(locomotion.__all__)


def test_each_is_there() -> None:
    import rtmms.locomotion.reduced_dynamics as module

    assert locomotion.reduced is module.reduced
    assert all(hasattr(locomotion, name) for name in locomotion.__all__)
