"""Continuous bodies: a Cosserat rod whose strain is imposed as a function of place and time, its fluid, and a plant of
it (Boyer and Porez 2015, section 8, as corrected in docs/continuous_eel.md)."""
