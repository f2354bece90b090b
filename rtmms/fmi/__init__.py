"""FMI both ways: a robot as an FMU (export, slave, slave2), an FMU as a plant (plant, library, archive).

Needs fmpy, pythonfmu3 (FMI 3) and pythonfmu (FMI 2), which are loaded when asked for.
"""
