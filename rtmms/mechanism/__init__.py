"""Provide a tree of bodies as a plant: joint laws, actuators, equations of motion, methods as tableaus, and one step.

The modules contain nothing of one robot.
"""
