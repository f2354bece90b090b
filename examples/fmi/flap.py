"""A controller as an FMU of FMI 2: both fins of the manta flap, the harder the lower it is. Build it.

python -m pythonfmu build -f flap.py
"""

import math

from pythonfmu import Fmi2Causality, Fmi2Slave, Real


class Flap(Fmi2Slave):
    """Inputs: height, m. Outputs: the four rods, rad."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.height = 0.0
        self.front = self.back = 0.0
        self.register_variable(Real("height", causality=Fmi2Causality.input))
        self.register_variable(Real("front", causality=Fmi2Causality.output))
        self.register_variable(Real("back", causality=Fmi2Causality.output))

    def do_step(self, current_time, step_size):
        amplitude = 0.4 - 0.2 * self.height
        phase = 2.0 * math.pi * 0.6 * (current_time + step_size)
        self.front, self.back = amplitude * math.sin(phase), amplitude * math.sin(phase - 0.6)
        return True
