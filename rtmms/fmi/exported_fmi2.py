"""Robot inside an FMU of FMI 2.0: variables are scalars, and an output's array is so many of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element, SubElement

import numpy as np

from rtmms.fmi.archive import import_library
from rtmms.fmi.exported_fmi3 import Slave, about, limits_to_xml, unit_of

if TYPE_CHECKING:
    from rtmms.plant.protocol import Channel


class RobotSlave2(Slave):
    """Slave of FMI 2, mixed with pythonfmu's Fmi2Slave. Arrays are scalars 'position[0]', 'thrust[1,2]'."""

    def setup_experiment(self, start_time: float, stop_time: float | None, tolerance: float | None) -> None:
        """Ignore the tool's times, as the robot's own time begins at 0 in any case.

        Parameters
        ----------
        start_time, stop_time : float, float | None
            Times of the run, s.
        tolerance : float | None
            Not used.
        """

    def do_step(self, current_time: float, step_size: float) -> bool:
        """Advance the plant by a communication step, see `_refusal`.

        Parameters
        ----------
        current_time, step_size : float
            Time and step, s.

        Returns
        -------
        bool
            False for a refused step.
        """
        refusal = self._refusal(current_time, step_size)
        if refusal:
            self._log(refusal, import_library("pythonfmu.enums", "an FMU").Fmi2Status.error)
        return not refusal

    def to_xml(self, model_options: Any = None) -> Element:
        """Return the model description, with parts that pythonfmu lacks: units, limits of inputs, initial unknowns.

        Parameters
        ----------
        model_options : Any, optional
            Options of pythonfmu.

        Returns
        -------
        Element
            The element.
        """
        root: Element = super().to_xml(model_options or {})  # type: ignore[misc]
        root.set("generationTool", f"rtmms {self.version}, {root.get('generationTool')}")
        units = Element("UnitDefinitions")
        for name, exponents in self._known_units().items():
            base = SubElement(SubElement(units, "Unit", name=name), "BaseUnit")
            for key, exponent in exponents.items():
                base.set(key, str(exponent))
        root.insert(1, units)  # right after CoSimulation, as the schema has it
        limits_to_xml(root, self.plant, lambda variable: variable[0])
        unit_by_name = {channel.name: unit_of(channel) for channel in (*self.plant.actuators, *self.plant.outputs)}
        for variable in root.iter("ScalarVariable"):
            unit = unit_by_name.get(variable.get("name", "").partition("[")[0])
            if unit is not None:
                variable[0].set("unit", unit)
        structure = root.find("ModelStructure")
        assert structure is not None  # what Fmi2Slave writes
        initial = SubElement(structure, "InitialUnknowns")
        for known in root.iter("Outputs"):
            for unknown in known:
                SubElement(initial, "Unknown", index=unknown.get("index", ""))
        return root

    def _declare(self) -> None:
        of, enums = import_library("pythonfmu", "an FMU"), import_library("pythonfmu.enums", "an FMU")
        causality, variability, initial = enums.Fmi2Causality, enums.Fmi2Variability, enums.Fmi2Initial
        experiment = import_library("pythonfmu.default_experiment", "an FMU").DefaultExperiment
        self.default_experiment = experiment(start_time=0.0, step_size=self.plant.dt)
        self._add(of.Integer(
            "seed", causality=causality.parameter, variability=variability.fixed, initial=initial.exact,
            description="of what is random", getter=lambda: self.seed, setter=self._set_seed,
        ))  # fmt: skip
        for place, channel in enumerate(self.plant.actuators):
            self._add(of.Real(
                channel.name, causality=causality.input, variability=variability.continuous, description=about(channel),
                getter=lambda place=place: self.command[place],
                setter=lambda value, place=place: self.command.__setitem__(place, value),
            ))  # fmt: skip
        for channel in self.plant.outputs:
            for k, name in enumerate(scalars(channel)):
                self._add(of.Real(
                    name, causality=causality.output, variability=variability.continuous, initial=initial.calculated,
                    description=about(channel),
                    getter=lambda channel=channel, k=k: self._observe(channel).flat[k],
                ))  # fmt: skip


def scalars(channel: Channel) -> Iterator[str]:
    """Yield the names of a channel's scalars, row-major.

    Parameters
    ----------
    channel : Channel
        The channel.

    Yields
    ------
    str
        'depth', or 'position[0]', ..., 'thrust[1,2]'.

    Examples
    --------
    >>> from rtmms.fmi.exported_fmi2 import scalars
    >>> from rtmms.plant.protocol import Channel
    >>> list(scalars(Channel("position", "m", (2,))))
    ['position[0]', 'position[1]']
    """
    for place in np.ndindex(*channel.shape):
        yield channel.name + (f"[{','.join(map(str, place))}]" if place else "")
