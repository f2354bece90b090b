"""FMI both ways: a robot as an FMU (export, exported_fmi2, exported_fmi3), an FMU as a plant (plant, library, archive).

It needs fmpy, pythonfmu3 (FMI 3) and pythonfmu (FMI 2), which are loaded at their first use.
"""
