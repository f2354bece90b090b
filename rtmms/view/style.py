"""Style and file formats of figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from rtmms.base.files import KINDS, new_file_beside, refuse_output, write_error

# How every figure looks and reaches its file: without a display, whatever the user's own matplotlib settings.


INK = "#17324d"
MUTED = "#6b7f92"
GRID = "#dfe6ec"
PAPER = "#ffffff"
BLUE = "#1f6fb2"
CORAL = "#e4572e"
TEAL = "#17a398"
SAND = "#e9b44c"
PURPLE = "#7b4b94"
CYCLE = LinearSegmentedColormap.from_list("cycle", (BLUE, TEAL, SAND, CORAL, PURPLE, BLUE))
ORDERED = "viridis"
SERIES = (BLUE, CORAL, TEAL, SAND, PURPLE, "#8d6a4f")

_SETTINGS: Any = {
    "font.family": "DejaVu Sans", "font.size": 9.0, "text.color": INK, "axes.edgecolor": MUTED, "axes.labelcolor": INK,
    "axes.titlecolor": INK, "axes.titlesize": 10.5, "axes.titleweight": "bold", "axes.titlelocation": "left",
    "axes.titlepad": 7.0, "axes.labelsize": 9.0, "axes.linewidth": 0.8, "axes.spines.top": False,
    "axes.spines.right": False, "axes.grid": True, "axes.axisbelow": True, "axes.unicode_minus": True,
    "grid.color": GRID, "grid.linewidth": 0.7, "xtick.color": MUTED, "ytick.color": MUTED, "xtick.labelcolor": INK,
    "ytick.labelcolor": INK, "xtick.labelsize": 8.0, "ytick.labelsize": 8.0, "legend.fontsize": 8.0,
    "legend.frameon": False, "lines.linewidth": 1.5, "figure.facecolor": PAPER, "savefig.facecolor": PAPER,
    "text.parse_math": False,  # names and units are others' text
}  # fmt: skip


@contextmanager
def project_style() -> Iterator[None]:
    """Use matplotlib's defaults and the project's style, and none of the user's settings.

    Yields
    ------
    None
        Nothing.
    """
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


def figure(width: float, height: float) -> Figure:
    """Return an empty figure, which is independent of pyplot and its windows.

    Parameters
    ----------
    width, height : float
        Size in inches.

    Returns
    -------
    Figure
        The figure.
    """
    page = Figure(figsize=(width, height))
    FigureCanvasAgg(page)
    return page


def save(page: Figure, path: Path, dpi: int = 150) -> None:
    """Write the page whole, or leave the file as it was.

    Parameters
    ----------
    page : Figure
        The figure.
    path : Path
        File, whose ending sets the format.
    dpi : int, default 150
        Pixels an inch.

    Raises
    ------
    RtmmsError
        If the file cannot be written.
    """
    drawn = BytesIO()  # matplotlib's writers of PDF answer a full disk with whatever they meet when they close it
    try:
        page.savefig(drawn, dpi=dpi, format=path.suffix.lower().lstrip("."))
    except (OSError, ValueError) as fault:  # of no or too many pixels; PostScript goes through a file of its own
        raise write_error(path, "figure", fault if isinstance(fault, OSError) else str(fault)) from None
    with new_file_beside(path, "figure") as part:
        part.write_bytes(drawn.getvalue())


def colours(count: int) -> Sequence[Any]:
    """Return one colour for each curve of an ordered set.

    Parameters
    ----------
    count : int
        Number of curves.

    Returns
    -------
    Sequence[Any]
        Colours for matplotlib.
    """
    if count <= 3:
        return (BLUE, TEAL, CORAL)[:count]
    chart = matplotlib.colormaps[ORDERED]
    return [chart(0.05 + 0.85 * k / (count - 1)) for k in range(count)]


def subscript(number: int) -> str:
    """Return a number in subscript digits.

    Parameters
    ----------
    number : int
        Number, 0 or more.

    Returns
    -------
    str
        Its digits below the line.

    Examples
    --------
    >>> subscript(12)
    '₁₂'
    """
    return str(number).translate({ord("0") + k: ord("₀") + k for k in range(10)})


def write_note(axes: Any, text: str) -> None:
    """Write a note into a panel that has nothing to show.

    Parameters
    ----------
    axes : Axes
        Axes of matplotlib.
    text : str
        The reason.
    """
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=MUTED, style="italic")
    axes.set(xticks=[], yticks=[])
    axes.grid(False)


# The names of the figures of a paper or a gait: in which format they are written, as the command line has it.


FORMATS = ("png", "pdf", "svg")

_CHOSEN: ContextVar[str] = ContextVar("format of figures", default=FORMATS[0])


@contextmanager
def written_as(form: str) -> Iterator[None]:
    """Write figures in a format within the block.

    Parameters
    ----------
    form : str
        One of FORMATS.

    Yields
    ------
    None
        Nothing.
    """
    token = _CHOSEN.set(form)
    try:
        yield
    finally:
        _CHOSEN.reset(token)


def figure_file(folder: Path, name: str) -> Path:
    """Return the path of a figure in the present format.

    Parameters
    ----------
    folder : Path
        Folder of the file.
    name : str
        Name of the figure, without an ending.

    Returns
    -------
    Path
        The path.

    Raises
    ------
    ModelError
        If a file of another kind would be lost.
    """
    path = folder / f"{name}.{_CHOSEN.get()}"
    refuse_output(path, "-o", KINDS[path.suffix])
    return path
