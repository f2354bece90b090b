"""One robot a file or a folder: its parameters (the defaults are its paper's), their checks, its plant.
What serves two robots stands in rtmms.mechanism or rtmms.analysis."""
