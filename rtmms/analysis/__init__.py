"""Trim, linearise, invert: for any mechanism, and for any plant with a chart of its state (chart.py).

The package names no robot.
"""
