"""Studies: sweeps of a scenario, fits of a model to recordings (fit_*.py), and papers that are reproduced.

A paper's NAME.py has `main`, which an entry point names (group rtmms.papers), and the paper's claims; NAME_*.py have
our runs and figures. No other module imports them.
"""
