"""Provide continuous bodies: a Cosserat rod whose strain is a function of place and time, its fluid, and its plant.

Boyer and Porez 2015, section 8, as corrected in docs/continuous_eel.md.
"""
