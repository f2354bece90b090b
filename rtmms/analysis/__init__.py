"""Trim, linearise, invert: for any mechanism, and for any plant that offers a chart of its state (chart.py).
No robot is named here."""
