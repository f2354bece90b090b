"""rtmms gaits: numbers, JSON, figures, files of shapes; wrong words end with 2 and a sentence."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rtmms.base.source_declarations import fact
from rtmms.cli.main import main
from rtmms.plant.loading import robots
from rtmms.robots.shape_gaits import GAITS
from rtmms.view.style import figure_file


@pytest.fixture
def gaits(capsys: pytest.CaptureFixture[str]) -> Any:
    """(exit status, standard output, standard error) of `rtmms gaits WORDS`, in this process."""

    def run(*text: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["gaits", *text])
        result = capsys.readouterr()
        return int(ended.value.code or 0), result.out, result.err

    return run


SWIMMERS_NET = [0.7259539483, 0.0964967286, 0.0]


@pytest.mark.parametrize(
    ("robot", "gait", "cycles", "net"),
    [
        ("purcell", "circle:a=1", 1, [0.1484970643, 0.0402010991, 0.0]),
        ("purcell", "circle:a=1,c1=0,c2=0", 2, [2 * 0.1484970643, 2 * 0.0402010991, 0.0]),
        pytest.param("fluid_swimmer", "circle:a=.5", 1, SWIMMERS_NET, marks=pytest.mark.full),
        pytest.param("fluid_swimmer", "stroke", 1, SWIMMERS_NET, marks=pytest.mark.full),
        pytest.param("snakeboard", "drive", 1, [0.1244027847, -0.0011904385, -0.0604740265], marks=pytest.mark.full),
        pytest.param("unicycle", "park", 2, [1.0, -1.0, 0.0], marks=pytest.mark.full),  # kernels of the ground
    ],
)
def test_displacement_of_a_gait(robot: str, gait: str, cycles: int, net: list[float], gaits: Any) -> None:
    status, out, _ = gaits(robot, "--gait", gait, "--cycles", str(cycles), "--json")
    content = json.loads(out, parse_constant=lambda word: 1 / 0)
    assert status == 0
    assert (content["robot"], content["gait"], content["cycles"]) == (robot, gait, cycles)
    np.testing.assert_allclose(content["displacement"], net, atol=1e-8)
    assert content["work"] > 0.0
    assert content["cost"] > 0.0


@pytest.mark.full  # kernels that nothing else in the default suite uses
def test_in_space_a_rotation_vector_and_a_position(gaits: Any) -> None:
    content = json.loads(gaits("satellite", "--gait", "rectangle", "--json")[1])
    net = content["displacement"]
    np.testing.assert_allclose(net["rotation_vector"], [-0.0382059925, 0.0321583142, 0.1651868933], atol=1e-8)
    assert len(net["position"]) == 3
    half = json.loads(gaits("cat", "--gait", "righting", "--json")[1])["displacement"]["rotation_vector"]
    assert float(np.linalg.norm(half)) == pytest.approx(math.pi, abs=1e-6)


def test_a_file_of_shapes(tmp_path: Path, gaits: Any) -> None:
    """The same as the word, with a heading or without, closed or not."""
    corners = [(1, 1), (-1, 1), (-1, -1), (1, -1)]
    wanted = json.loads(gaits("purcell", "--gait", "square:a=1", "--json")[1])
    for name, rows, head in (("open", corners, ""), ("closed", [*corners, corners[0]], "left,right\n")):
        file = tmp_path / f"{name}.csv"
        file.write_text(head + "\n".join(f"{a},{b}" for a, b in rows) + "\n")
        content = json.loads(gaits("purcell", "--gait", str(file), "--json")[1])
        np.testing.assert_allclose(content["displacement"], wanted["displacement"], atol=1e-12)
        assert content["cost"] == pytest.approx(wanted["cost"], rel=1e-12)
    file = tmp_path / "swapped.csv"  # columns go by the names of their heading
    file.write_text("right,left\n" + "\n".join(f"{b},{2 * a}" for a, b in corners) + "\n")
    plain = tmp_path / "plain.csv"
    plain.write_text("\n".join(f"{2 * a},{b}" for a, b in corners) + "\n")
    swapped, wanted = (json.loads(gaits("purcell", "--gait", str(item), "--json")[1]) for item in (file, plain))
    assert swapped["displacement"] == wanted["displacement"]


@pytest.mark.full
def test_the_best_gait_is_better_than_those_known_and_can_be_run_again(tmp_path: Path, gaits: Any) -> None:
    status, out, _ = gaits("purcell", "--json", "-o", str(tmp_path), "--set", "limit_rad=2")
    message = json.loads(out)
    assert status == 0
    assert message["gait"] == "best"
    assert message["score"] >= message["beside"]["centred"] * (1.0 - 1e-6)
    assert message["beside"]["centred"] > 1.9 * message["beside"]["stroke"]
    assert abs(message["displacement"][2]) < 1e-6
    assert math.hypot(*message["displacement"][:2]) / message["cost"] == pytest.approx(message["score"], rel=1e-6)
    names = [Path(name).name for name in message["figures"]]
    assert names == ["purcell-curvature.png", "purcell-motion.png", "purcell-gait.csv"]
    assert all(Path(name).stat().st_size > 2000 for name in message["figures"])
    again = json.loads(gaits("purcell", "--gait", message["figures"][2], "--json")[1])
    np.testing.assert_allclose(again["displacement"], message["displacement"], atol=1e-4)
    shorter = json.loads(gaits("purcell", "--json", "--per", "length", "--set", "limit_rad=2")[1])
    assert shorter["score"] == pytest.approx(math.hypot(*shorter["displacement"][:2]) / shorter["length"], rel=1e-6)
    assert shorter["score"] > shorter["beside"]["stroke"]


def test_the_table_is_for_people(tmp_path: Path, gaits: Any) -> None:
    status, out, _ = gaits("cat", "--gait", "circle:a=0.5", "-o", str(tmp_path))
    assert status == 0
    for parts in ("rotation vector", "put in, if nothing is given back", "cat-curvature.png"):
        assert parts in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("purcell", "--gait", "circl"), "unknown gait 'circl'; did you mean circle"),
        (("purcell", "--gait", "circle:a=4"), "joint 'left' would move to 4, beyond its limits -3.14159 to 3.14159"),
        (("purcell", "--gait", "circle:a=1,b=2"), "unknown parameter of gait 'circle' 'b'"),
        (("purcell", "--gait", "circle:a"), "expected circle:key=value"),
        (("purcell", "--gait", "circle:a=x"), "a must be a finite number, got 'x'"),
        (("purcell", "--gait", "circle:a=nan"), "a must be a finite number, got 'nan'"),
        (("purcell", "--gait", "circle:a=0"), "a must not be 0"),
        (("purcell", "--gait", "stroke:a=1"), "'stroke' has none; remove them"),
        (("purcell", "--gait", "nothing.csv"), "nothing.csv: there is no such file"),
        (("purcell", "--cycles", "0", "--gait", "circle"), "0 is not in the range"),
        (("purcel",), "did you mean purcell"),
        pytest.param(
            *(
                ("unicycle", "--gait", "weave"),
                "expected a closed path of 2 joint angles, got motions of left.speed, right.speed",
            ),
            marks=pytest.mark.full,
        ),
        pytest.param(
            *(("unicycle",), "the search for the best gait needs motion by inertia or drag; name a gait"),
            marks=pytest.mark.full,
        ),
        pytest.param(
            *(
                ("snakeboard", "--gait", "circle"),
                "a circle has 2 shape variables, but the robot has 3; give a FILE.csv",
            ),
            marks=pytest.mark.full,
        ),
        (("eel", "--gait", "circle"), "gaits: expected a robot that moves by its shape"),
        (("purcell", "--goal", "up"), "unknown goal 'up'"),
        (("purcell", "--set", "length_m=-1", "--gait", "circle"), "length_m must be > 0"),
    ],
)
def test_wrong_words(arguments: tuple[str, ...], message: str, gaits: Any) -> None:
    status, out, err = gaits(*arguments)
    assert (status, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_a_robot_without_gaits_is_refused(gaits: Any) -> None:
    status, out, err = gaits("quadrotor")
    assert (status, out) == (2, "")
    assert "robot 'quadrotor': gaits: expected a robot that moves by its shape" in err


def test_robots_that_their_shape_moves_are_driven_by_shape() -> None:
    driven = {name for name, point in robots().items() if fact(point.module, "CONTROLLER") == "shape"}
    assert driven == set(GAITS) | {"snake"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2\n3\n", "line 2: expected 2 finite numbers, got '3'"),
        ("1,2\n3,x\n", "line 2: expected 2 numbers, got '3,x'"),
        ("1,2\n3,nan\n", "line 2: expected 2 finite numbers"),
        ("left,right\n1,2\n", "expected at least 2 shapes, got 1"),
        ("", "expected at least 2 shapes, got 0"),
        ("9,0\n0,1\n", "joint 'left' would move to 9"),
        ("front,back\n0,1\n1,0\n", "line 1: expected the heading left,right, in any order, got 'front,back'"),
        ("0,1\n,\n1,0\n", "line 2: expected 2 numbers, got ','"),
    ],
)
def test_a_broken_file(text: str, message: str, tmp_path: Path, gaits: Any) -> None:
    file = tmp_path / "gait.csv"
    file.write_text(text)
    status, out, err = gaits("purcell", "--gait", str(file))
    assert (status, out) == (2, "")
    assert message in err
    file.write_bytes(b"\xff\xfe\x00")
    assert gaits("purcell", "--gait", str(file))[0] == 2


def test_figures_are_written_in_the_format_that_is_asked_for(tmp_path: Path, gaits: Any) -> None:
    assert gaits("purcell", "--gait", "square:a=1", "-o", str(tmp_path), "--format", "svg")[0] == 0
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".svg", ".svg"]
    assert figure_file(tmp_path, "a").suffix == ".png"  # for whoever comes after


@pytest.mark.parametrize("arguments", [("gaits", "purcell"), ("reproduce", "qu2024")])
def test_an_unknown_format_is_refused_before_anything_is_computed(arguments: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "-o", str(tmp_path / "made"), "--format", "bmp"])
    assert ended.value.code == 2
    assert not list(tmp_path.iterdir())
