"""Figures and tables of runs, and the claims of a paper beside our numbers.

The modules here draw and count; none of them steps a plant on a schedule. rtmms.papers has the papers themselves.
"""
