"""The manta's body and fins: how they share a stage, the step made of such stages, and what a state amounts to.
The flat layout that all of it works on, and the door from Python."""
