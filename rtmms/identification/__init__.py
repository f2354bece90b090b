"""Parameters of a robot from what its sensors said and the commands that it got: recordings, what a model predicts for
them, the fit, what it is worth, and the report. `rtmms identify` is its face."""
