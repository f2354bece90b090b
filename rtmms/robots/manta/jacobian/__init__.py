"""A and B of a step of the manta by its structure: what displacements and wrenches of chains and body become. Compiled
only where a derivative is asked for."""
