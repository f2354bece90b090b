"""MJCF files, and URDF files on request, as plants that MuJoCo simulates.

`plant` has the plant and its loaders, `files` checks the files that a model names, `library` loads MuJoCo, `channels`
derives actuators and outputs from a model, `fields` its parameters, and `drawing` its geometry for viewers.
"""
