"""A tree of bodies as a plant: what its joints are meant to do, its equations of motion, methods as tableaus, one step.
Nothing of one robot."""
