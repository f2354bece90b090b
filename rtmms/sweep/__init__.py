"""Many runs of a scenario with values that differ: the cases, one run of each, the table, what it shows."""
