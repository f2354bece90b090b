"""Provide the robots: each file or folder has a robot's parameters (defaults of its paper), checks, and its plant.

Code that serves two robots is in rtmms.mechanism or rtmms.analysis.
"""
