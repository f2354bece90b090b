"""An elliptic section of a rod: its inertia and stiffness, by a sum over its points."""

from __future__ import annotations

import numpy as np
import pytest

from rtmms.model.rods import elliptic_section


def test_an_elliptic_section_is_the_sum_over_its_points():
    a, b, density, young = 0.02, 0.03, 800.0, 5e6
    y, z = np.meshgrid(np.linspace(-a, a, 801), np.linspace(-b, b, 801))
    inside, cell = (y / a) ** 2 + (z / b) ** 2 < 1.0, 4.0 * a * b / 800**2
    about_y, about_z = (float((x * x)[inside].sum()) * cell for x in (z, y))
    section = elliptic_section(a, b, density, young)
    assert section.mass_kg_m == pytest.approx(density * inside.sum() * cell, rel=5e-3)
    assert section.inertia_kg_m == pytest.approx(
        (density * (about_y + about_z), density * about_y, density * about_z), rel=5e-3
    )
    assert (section.bend_y_n_m2, section.bend_z_n_m2) == pytest.approx((young * about_y, young * about_z), rel=5e-3)
    round_one = elliptic_section(a, a, density, young, poisson=0.25)  # G J, J = pi r^4 / 2
    assert round_one.twist_n_m2 == pytest.approx(young / 2.5 * np.pi * a**4 / 2.0)
