"""Parameters of a robot from its sensors' measurements and its commands.

The package has recordings, a model's predictions for them, the fit, its quality, and the report. `rtmms identify` is
the command.
"""
