"""Flows with gradient and acceleration: streets, shears, accelerating streams, grids from files, compiled functions."""

import re
import zipfile

import numpy as np
import pytest
from numba import njit
from scipy.io import netcdf_file

import rtmms
from rtmms.fluids.ambient import SAMPLE_ROOM, Flow, Street, VortexRow, sample
from rtmms.fluids.flow_grid import Grid
from rtmms.mechanism.plant import TreePlant
from rtmms.model.description import Body, Mechanism
from rtmms.model.elements import Strip

RNG = np.random.default_rng(4)
H = 1e-30
AXIS = np.array([-1.0, -0.4, 0.1, 1.0])


def of_place(t, x, y, z, out):
    out[0] = np.sin(3.0 * x + 2.0 * t)
    out[1] = x * y
    out[2] = z * t


def whole(t, x, y, z, out):
    out[:] = 0.0
    out[0], out[3], out[12] = x * t, t, x


def at(flow, x, t):
    out = np.zeros(SAMPLE_ROOM, complex)
    sample(flow.pack(), np.zeros(3), complex(t), *(complex(value) for value in x), out)
    return out[:15]


FLOWS = {
    "street": Flow.street(), "accelerating": Flow((0.1, 0, 0), acceleration=(0.3, -0.1, 0.2)),
    "grid": Flow(grid=Grid(AXIS, AXIS, AXIS, AXIS, RNG.normal(size=(4, 4, 4, 4, 3)))),
    "function": Flow(compiled=of_place), "whole": Flow(compiled=whole),
}  # fmt: skip


@pytest.mark.parametrize("name", FLOWS)
def test_gradient_and_rate_are_those_of_the_velocity(name):
    flow, x, t = FLOWS[name], np.array([0.33, 0.011, -0.2]), 0.6
    result = at(flow, x, t).real
    assert not flow.still
    tight = 1e-12 if name != "function" else 1e-7
    for b in range(3):
        slope = at(flow, x + 1j * H * np.eye(3)[b], t)
        np.testing.assert_allclose(slope.imag[:3] / H, result[3:12].reshape(3, 3)[:, b], atol=tight)
        np.testing.assert_allclose(slope.real, result, atol=1e-15)
        if name != "grid":  # and the derivatives' own derivatives, where they go on: by differences
            d = 1e-6 * np.eye(3)[b]
            extra = (at(flow, x + d, t) - at(flow, x - d, t)).real / 2e-6
            np.testing.assert_allclose(slope.imag / H, extra, atol=2e-5)
    np.testing.assert_allclose(at(flow, x, t + 1j * H).imag[:3] / H, result[12:], atol=tight)


def test_the_street_is_a_street():
    """Without divergence, the stream far away, a deficit between the rows, and each vortex carried at the advection."""
    street = Street()
    assert street.spacing == pytest.approx(0.2125)
    assert street.circulation == pytest.approx(2 * 0.2125 * 0.075 / np.tanh(np.pi * 0.281))
    flow = Flow.street(street)
    result = at(flow, (0.07, 0.02, 0.0), 0.3).real
    assert result[3] + result[7] + result[11] == pytest.approx(0.0, abs=1e-14)
    np.testing.assert_allclose(at(flow, (0.0, 30.0, 0.0), 0.0).real[:3], [0.5, 0, 0], atol=1e-12)
    line = [at(flow, (x, 0.0, 0.0), 0.0).real[0] for x in np.linspace(0, street.spacing, 40, endpoint=False)]
    k = 2.0 * np.pi / street.spacing  # a row's mean jump, less what is in its cores
    up, soft = k * 0.5 * 0.281 * street.spacing, 0.5 * (k * 0.02) ** 2
    share = np.sinh(up) / np.sqrt((np.cosh(up) + soft) ** 2 - 1.0)
    assert np.mean(line) == pytest.approx(0.5 - share * street.circulation / street.spacing, rel=1e-12)
    # the other row, of points, carries a vortex at U - Gamma / 2 a tanh(pi h / a)
    upper, lower = street.rows()
    thin = VortexRow(lower.circulation, lower.spacing, 1e-6, lower.place, lower.drift)
    carried = at(Flow((0.5, 0, 0), vortices=[thin]), (*upper.place, 0.0), 0.0).real
    np.testing.assert_allclose(carried[:2], [0.85 * 0.5, 0.0], atol=1e-9)


def test_a_grid_is_right_at_its_nodes_and_exact_for_what_is_linear(tmp_path):
    t, x, y, z = np.meshgrid(AXIS, AXIS, AXIS, AXIS, indexing="ij")
    u = np.stack([1.0 + 2.0 * x - y + 3.0 * t, x * y, z * t], axis=-1)
    np.savez(tmp_path / "flow.npz", t=AXIS, x=AXIS, y=AXIS, z=AXIS, u=u)
    with netcdf_file(tmp_path / "flow.nc", "w") as file:
        for letter in "txyz":
            file.createDimension(letter, 4)
            file.createVariable(letter, "d", (letter,))[:] = AXIS
        for k, letter in enumerate("uvw"):
            file.createVariable(letter, "d", tuple("txyz"))[:] = u[..., k]
    for name in ("flow.npz", "flow.nc"):
        flow = Flow(grid=Grid.load(tmp_path / name))
        result = at(flow, (0.3, -0.2, 0.5), 0.7).real
        np.testing.assert_allclose(result[:3], [1 + 0.6 + 0.2 + 2.1, -0.06, 0.35], atol=1e-12)
        np.testing.assert_allclose(result[[3, 4, 12, 11, 14]], [2, -1, 3, 0.7, 0.5], atol=1e-12)
        assert np.all(np.isnan(at(flow, (1.1, 0, 0), 0.0)))
    steady = Flow(grid=Grid(0.0, AXIS, AXIS, 0.0, u[:1, :, :, :1]))
    assert steady.grid.ends is None
    assert np.all(np.isfinite(at(steady, (0.3, 0.1, 99.0), 1e6)))


def write_netcdf(path, order="txyz", named="{}", change=lambda file: None):
    """A field that is linear in each coordinate, and differs in all of them, with dimensions in an order."""
    axes = {letter: np.linspace(0.0, 1.0, 3 + k) for k, letter in enumerate("txyz")}
    grid = np.meshgrid(*(axes[letter] for letter in order), indexing="ij")
    t, x, y, z = (grid[order.index(letter)] for letter in "txyz")
    with netcdf_file(path, "w") as file:
        for letter, values in axes.items():
            file.createDimension(named.format(letter), len(values))
            file.createVariable(letter, "d", (named.format(letter),))[:] = values
        for letter, values in zip("uvw", (x + 10.0 * y, z - t, x - z), strict=True):
            file.createVariable(letter, "d", tuple(named.format(item) for item in order))[:] = values
        change(file)


@pytest.mark.parametrize("order", ["txyz", "tzyx", "zyxt", "yxzt"])
@pytest.mark.parametrize("named", ["{}", "n{}"])
def test_a_netcdf_file_names_its_dimensions(tmp_path, order, named):
    write_netcdf(tmp_path / "flow.nc", order, named)
    result = at(Flow(grid=Grid.load(tmp_path / "flow.nc")), (0.3, 0.2, 0.9), 0.4).real
    np.testing.assert_allclose(result[:3], [0.3 + 2.0, 0.9 - 0.4, 0.3 - 0.9], atol=1e-12)


def test_a_netcdf_file_is_read_by_its_attributes(tmp_path):
    """Packed values are scaled; missing ones, other units and depths are refused."""

    def packed(file):
        v = file.variables["v"]
        v[:] = np.round(v[:] / 0.5)
        v.scale_factor, v.add_offset = 0.25, 1.0

    write_netcdf(tmp_path / "flow.nc", change=packed)
    result = at(Flow(grid=Grid.load(tmp_path / "flow.nc")), (0.0, 0.0, 1.0), 0.0).real
    assert result[1] == 0.25 * 2.0 + 1.0

    def missing(file):
        file.variables["w"]._FillValue = -9999.0
        file.variables["w"][0, 0, 0, 1] = -9999.0

    def unit(name, text):
        return lambda file: setattr(file.variables[name], "units", text)

    def foreign(file):
        file.createDimension("level", 2)
        del file.variables["u"]
        file.createVariable("u", "d", ("t", "x", "y", "level"))[:] = 0.0

    def still(file):
        for name in "uvw":
            del file.variables[name]

    write_netcdf(tmp_path / "flow.nc", change=unit("u", "m s-1"))
    Grid.load(tmp_path / "flow.nc")
    for change, text in (
        (missing, "w: expected a value at each node, got 1 missing"),
        (unit("u", "cm/s"), "u: expected the unit m/s, got 'cm/s'"),
        (unit("x", "degrees_east"), "x: expected the unit m, got 'degrees_east'"),
        (unit("t", "days since 2000-01-01"), "t: expected the unit s, got 'days since"),
        (lambda file: setattr(file.variables["z"], "positive", "down"), "z: expected values that grow upwards"),
        (still, "expected velocities u, v, w, got none"),
        (foreign, "u: expected at most one dimension for each of t, x, y, z, and no other, got"),
    ):
        write_netcdf(tmp_path / "flow.nc", change=change)
        with pytest.raises(rtmms.ModelError, match=re.escape(text)):
            Grid.load(tmp_path / "flow.nc")


def test_grids_and_functions_that_cannot_be_are_refused(tmp_path):
    u = np.zeros((1, 4, 1, 1, 3))
    u[0, 2, 0, 0, 1] = np.nan
    cases = [
        (lambda: Grid(0.0, AXIS, 0.0, 0.0, u), r"u must be finite, got nan at t = 0, x = 0.1"),
        (lambda: Grid(0.0, AXIS[::-1], 0.0, 0.0, u), "x must be finite numbers that rise"),
        (lambda: Grid(0.0, AXIS, 0.0, 0.0, u[:, :3]), r"u must have shape \(1, 4, 1, 1, 3\)"),
        (lambda: Grid.load(tmp_path / "none.npz"), "none.npz: there is no such file"),
        (lambda: Grid.load(tmp_path / "flow.csv"), "expected a .npz or .nc"),
        (lambda: Flow(compiled=3), "expected a function"),
        (lambda: Flow(compiled=lambda t, x, y, z, out: None), "3 finite numbers"),
        (lambda: Flow(grid=3), "grid must be a Grid"),
        (lambda: VortexRow(1.0, 0.0, 1.0).packed("here"), "here: expected finite"),
    ]
    np.savez(tmp_path / "bare.npz", x=AXIS)
    cases.append((lambda: Grid.load(tmp_path / "bare.npz"), "bare.npz: cannot be read as a flow grid"))
    (tmp_path / "half.npz").write_bytes((tmp_path / "bare.npz").read_bytes()[:150])
    cases.append((lambda: Grid.load(tmp_path / "half.npz"), "half.npz: cannot be read as a flow grid: damaged"))
    np.savez(tmp_path / "words.npz", x=np.array(["a", "b"]), u=np.zeros((1, 2, 1, 1, 3)))
    cases.append((lambda: Grid.load(tmp_path / "words.npz"), "words.npz: x must be numbers"))
    head = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,), }".ljust(117) + b"\n"
    with zipfile.ZipFile(tmp_path / "claim.npz", "w") as file:
        for name in ("u.npy", "x.npy"):
            file.writestr(name, b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head)
    cases.append((lambda: Grid.load(tmp_path / "claim.npz"), "claim.npz: .*need more memory than there is"))
    for make, message in cases:
        with pytest.raises(rtmms.ModelError, match=message):
            make()


def run(plant):
    for _ in range(1000):
        plant.step(plant.neutral)


def test_a_grid_that_ends_within_the_run_reports_where():
    body = Body("ball", 1.0, inertia=np.eye(3), elements=[Strip(0.1, drag=(10.0, 20.0, 20.0))])
    still = Mechanism("ball", [body], gravity=(0, 0, 0))
    axis = np.array([-0.2, 0.2])
    u = np.broadcast_to([2.0, 0.0, 0.0], (1, 2, 1, 1, 3))
    plant = TreePlant(still, 0.01, flow=Flow(grid=Grid(0.0, axis, 0.0, 0.0, u)))
    assert plant.ends is None
    with pytest.raises(rtmms.DivergedError, match=r"grid ends: x = 0\.2\d* m is beyond -0\.2 to 0\.2 m"):
        run(plant)
    assert 0.0 < plant.vector[0] <= 0.2
    beyond = Flow(grid=Grid(0.0, axis + 1.0, 0.0, 0.0, u))
    with pytest.raises(rtmms.ModelError, match=r"x = 0 m is beyond 0\.8 to 1\.2 m"):
        TreePlant(still, 0.01, flow=beyond)


def test_snapshots_know_a_flow_by_what_it_is_and_not_by_where_it_lies():
    grids = [Grid(0.0, AXIS, 0.0, 0.0, np.full((1, 4, 1, 1, 3), value)) for value in (1.0, 1.0, 2.0)]
    result = [Flow(grid=grid).contents for grid in grids]
    assert result[0] == result[1] != result[2]

    def swirl_of(speed):
        table = np.array([speed, 0.0])

        @njit
        def swirl(t, x, y, z, out):
            out[0], out[1], out[2] = speed + table[0], speed, 0.0

        return Flow(compiled=swirl).contents

    swirls = [swirl_of(speed) for speed in (1.0, 2.0, 1.0)]
    assert swirls[0] == swirls[2] != swirls[1], "values from outside belong to a function"
    assert Flow(compiled=of_place).contents == Flow(compiled=of_place).contents != Flow(compiled=whole).contents
