"""Many runs of a scenario with different values: the cases, one run of each, the table, and its figures."""
