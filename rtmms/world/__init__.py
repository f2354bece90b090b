"""Several robots on one clock, as one plant: what each is and where (`members.py`), the plant (`world.py`), its
compiled step (`world.py`). Hydrodynamic interaction between them is left out."""
