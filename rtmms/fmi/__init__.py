"""FMI both ways: a robot as an FMU (export, slave), an FMU as a plant (plant, library, guard).

Needs fmpy and pythonfmu3, which are loaded when asked for.
"""
