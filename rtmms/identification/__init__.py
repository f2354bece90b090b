"""Parameters of a robot from its sensors' measurements and its commands: recordings, a model's
predictions for them, the fit, its quality, and the report. `rtmms identify` is the command."""
