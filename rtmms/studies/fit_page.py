"""Report of a fit as one HTML page, and its preset file."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from rtmms.base.errors import safe_text
from rtmms.base.files import PAGE_MARK, new_file_beside, with_checksum
from rtmms.base.toml_file import read_toml, toml_comment, toml_key, toml_value
from rtmms.studies.fit_evidence import Evidence, sentences
from rtmms.studies.fit_unknowns import Kind, Unknown, split, value_of
from rtmms.studies.fitting import Solution
from rtmms.studies.recordings import Recording, spread
from rtmms.view.style import BLUE, CORAL, GRID, INK, MUTED, SAND, figure, project_style, save, write_note

# What was fitted as a file of parameters that `--preset FILE.toml` and `rtmms.load(robot, preset=FILE)` take.


def preset_text(recording: Recording, asked: Sequence[Unknown], values: Mapping[str, float],
                errors: Mapping[str, float], source: str) -> str:  # fmt: skip
    """Return a preset in TOML: the recording's own parameters with the fitted ones in their place.

    Parameters
    ----------
    recording : Recording
        Its robot, preset and parameters.
    asked : Sequence[Unknown]
        Requested unknowns.
    values : Mapping[str, float]
        Fitted values by name.
    errors : Mapping[str, float]
        Standard errors by name, written as comments.
    source : str
        Names of the recordings, for the first comment.

    Returns
    -------
    str
        The text.
    """
    provided: dict[str, Any] = {}
    if recording.preset is not None and recording.preset.endswith(".toml"):
        provided |= read_toml(recording.preset)
    elif recording.preset is not None:
        provided["preset"] = recording.preset
    provided |= dict(recording.parameters)
    plant = recording.build()
    comments: dict[str, list[str]] = {}
    for item in asked:
        if item.kind is not Kind.MODEL or item.name != item.key:  # a value of one recording is not the robot's
            continue
        root, element = split(item.name)
        if element < 0:
            provided[root] = values[item.name]
        else:
            if not isinstance(provided.get(root), list):
                provided[root] = list(value_of(plant, root))
            provided[root][element] = values[item.name]
        where = "" if element < 0 else f"[{element}] "
        comments.setdefault(root, []).append(f"{where}+- {errors[item.name]:.3g}")
    lines = [""]
    for key, value in provided.items():
        if value is None:
            continue
        comment = f"  {toml_comment(', '.join(comments[key]))}" if key in comments else ""
        lines.append(f"{toml_key(key)} = {toml_value(value)}{comment}")
    return with_checksum(
        toml_comment(f"{recording.robot}, fitted by rtmms identify to {source}"), "\n".join(lines) + "\n"
    )


def write_text(path: Path, text: str, option: str) -> None:
    """Write a text as UTF-8, whole or not at all.

    Parameters
    ----------
    path : Path
        File.
    text : str
        Its text.
    option : str
        Option of the command that names the file, for messages.

    Raises
    ------
    RtmmsError
        The file cannot be written.
    """
    with new_file_beside(path, option) as part:
        part.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")


# The report as one page of HTML that needs no other file: tables, and figures as SVG within it.


MAX_POINTS = 1200
"""Points of a curve."""
MAX_PANELS = 12
LAGS = 40

_STYLE = f"""body {{ font: 15px/1.5 system-ui, sans-serif; color: {INK}; max-width: 62rem; margin: 2rem auto }}
h1 {{ font-size: 1.5rem }} h2 {{ font-size: 1.15rem; margin-top: 2rem }}
table {{ border-collapse: collapse }}
th, td {{ text-align: right; padding: .2rem .8rem; border-bottom: 1px solid {GRID} }}
th:first-child, td:first-child {{ text-align: left }} svg {{ max-width: 100%; height: auto }}
p.note {{ color: {CORAL} }} p.small {{ color: {MUTED} }}"""
_OF_SPREAD = (
    "In units of the standard error. Bars: two of them. Grey: where each fifth of the data alone would have moved the "
    "value. Yellow: from another starting point."
)
_OF_FIT = (
    "White: Ljung and Box's test does not reject it (1 %). Where residuals are not white, the model leaves something "
    "out, and standard errors are widened by the correlation that is seen."
)
_OF_SERIES = "Dots: measured. Line: the model. Shaded: held back."


def page(solution: Solution, evidence: Evidence, report: Mapping[str, Any], path: Path) -> None:
    """Write the HTML page, whole or not at all.

    Parameters
    ----------
    solution : Solution
        Result of the fit.
    evidence : Evidence
        Its quality.
    report : Mapping[str, Any]
        See rtmms.studies.fit_evidence.as_words.
    path : Path
        File.

    Raises
    ------
    ModelError
        The page cannot be written.
    """
    title = f"{_word(report['robot'])}: identified parameters"
    held, count = 100.0 * report["hold_out"], len(evidence.names)
    parts = [
        f"<h1>{title}</h1>",
        f"<p>From {_word(', '.join(report['logs']))}; the last {held:.0f} % of each were held back.</p>",
        *(f'<p class="note">{_word(line)}</p>' for line in sentences(report)),
        "<h2>Parameters</h2>", _parameters(report),
        _svg(_spread, 9.0, 0.9 + 0.5 * count, solution, evidence), _small(_OF_SPREAD),
        "<h2>Correlation</h2>", _svg(_correlation, 2.6 + 0.55 * count, 1.6 + 0.5 * count, evidence),
        "<h2>Fit</h2>", _fit(report), _small(_OF_FIT),
        _svg(_series, 9.0, 0.6 + 1.9 * _rows(solution), solution), _small(_OF_SERIES),
        "<h2>Residuals' correlation in time</h2>", _svg(_whiteness, 9.0, 0.6 + 1.5 * _rows(solution), solution),
    ]  # fmt: skip
    text = "\n".join(parts)
    write_text(path, f'<!doctype html>\n<html lang="en"><head>{PAGE_MARK}<meta charset="utf-8">'
                     f"<title>{title}</title>\n"
                     f"<style>{_STYLE}</style></head><body>\n{text}\n</body></html>\n", "-o")  # fmt: skip


MAX_TITLE = 80
"""Characters of the title of a figure."""


def draw_figure(solution: Solution, evidence: Evidence, path: Path | None = None) -> Any:
    """Draw the values with their spread and the channels beside the model, as one figure.

    Parameters
    ----------
    solution : Solution
        Result of the fit.
    evidence : Evidence
        Its quality.
    path : Path | None, optional
        File to write.

    Returns
    -------
    Any
        The matplotlib figure.

    Raises
    ------
    RtmmsError
        The file cannot be written.
    """
    with project_style():
        whole = figure(9.0, 2.0 + 0.4 * len(evidence.names) + 1.5 * _rows(solution))
        parts: Any = whole.subfigures(2, 1, height_ratios=[1.5 + 0.4 * len(evidence.names), 1.5 * _rows(solution)])
        above, below = parts
        _spread(above, solution, evidence)
        titles = [recording.name for recording in solution.residuals.predictor.recordings]
        above.suptitle(f"Fit to {', '.join(titles)}"[:MAX_TITLE], x=0.08, ha="left", fontweight="bold")
        above.subplots_adjust(left=0.2, bottom=0.3, top=0.8)
        _series(below, solution)
        below.subplots_adjust(left=0.08, right=0.97, top=0.95, bottom=0.08, hspace=0.75)
        if path is not None:
            save(whole, path, dpi=100)
    return whole


def _small(text: str) -> str:
    return f'<p class="small">{html.escape(text)}</p>'


def _word(text: str) -> str:
    """Escape text of others."""
    return html.escape(safe_text(text))


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{head}</th>" for head in heads)
    body = "".join("<tr>" + "".join(f"<td>{_word(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _parameters(report: Mapping[str, Any]) -> str:
    rows = []
    for name, item in report["parameters"].items():
        error = "" if item["standard_error"] is None else f"{item['standard_error']:.3g}"
        rows.append((name, f"{item['value']:.6g}", error, item["unit"], f"{item['start']:.6g}", item["bound"] or ""))
    return _table(("parameter", "value", "standard error", "unit", "from", "at bound"), rows)


def _fit(report: Mapping[str, Any]) -> str:
    rows = []
    for name, item in report["fit"].items():
        held = "" if item["held_out_rms"] is None else f"{item['held_out_rms']:.3g}"
        rows.append((name, f"{item['rms']:.3g}", f"{item['noise']:.3g}", held, item["unit"], str(item["samples"]),
                     "yes" if item["white"] else f"no ({item['correlation']:.2f})"))  # fmt: skip
    return _table(("channel", "rms", "noise", "held back", "unit", "samples", "white"), rows)


def _svg(draw: Callable[..., None], width: float, height: float, *values: Any) -> str:
    """Return a figure as an element of the page."""
    with project_style():
        import matplotlib

        matplotlib.rcParams["svg.hashsalt"] = "rtmms"
        drawn = figure(width, height)
        draw(drawn, *values)
        out = StringIO()
        drawn.savefig(out, format="svg", bbox_inches="tight", metadata={"Date": None})
    text = out.getvalue()
    return text[text.index("<svg") :]


def _spread(drawn: Any, solution: Solution, evidence: Evidence) -> None:
    axes = drawn.subplots()
    count = len(evidence.names)
    for row, (k, error) in enumerate(zip(solution.asked, evidence.error, strict=True)):
        item, at = solution.unknowns[k], count - 1 - row
        value = solution.z[k] * item.scale
        size = error if np.isfinite(error) and error > 0.0 else item.scale
        axes.plot([-2.0, 2.0], [at, at], color=BLUE, lw=5.0, alpha=0.35, solid_capstyle="butt")
        near = np.clip((evidence.windows[:, row] - value) / size, -12.0, 12.0)
        axes.plot(near, np.full(len(near), at - 0.18), "o", color=MUTED, ms=3.5)
        for z, _ in solution.others:
            axes.plot(np.clip((z[k] * item.scale - value) / size, -12.0, 12.0), at + 0.18, "d", color=SAND, ms=5.0)
        axes.plot(0.0, at, "|", color=BLUE, ms=14.0)
    axes.set_yticks(range(count), evidence.names[::-1])
    axes.set(xlabel="standard errors from the value", ylim=(-0.6, count - 0.4))


def _correlation(drawn: Any, evidence: Evidence) -> None:
    axes = drawn.subplots()
    axes.imshow(evidence.correlation, cmap="RdBu_r", vmin=-1.0, vmax=1.0)
    names = range(len(evidence.names))
    for i in names:
        for j in names:
            value = evidence.correlation[i, j]
            axes.text(j, i, f"{value:.2f}", ha="center", va="center", color="white" if abs(value) > 0.6 else INK)
    axes.set_xticks(names, evidence.names, rotation=30, ha="right")
    axes.set_yticks(names, evidence.names)
    axes.grid(False)


def _channels(solution: Solution) -> list[str]:
    """Return the channels with samples: one without, such as GPS under water, has no panel."""
    return list(dict.fromkeys(block.channel for block in solution.residuals.blocks))


def _rows(solution: Solution) -> int:
    return min(MAX_PANELS, len(_channels(solution)))


def _series(drawn: Any, solution: Solution) -> None:
    """Draw each channel's component that moves most, in the first recording."""
    residuals = solution.residuals
    predicted = residuals.predicted(solution.z)
    panels = drawn.subplots(_rows(solution), 1, squeeze=False)[:, 0]
    for axes, name in zip(panels, _channels(solution), strict=False):
        shown_blocks = [
            b for b in residuals.blocks if b.channel == name and residuals.predictor.segments[b.segment].recording == 0
        ]
        if not shown_blocks:
            write_note(axes, f"{name}: not in the first recording")
            continue
        k = int(np.argmax(spread(np.concatenate([b.values for b in shown_blocks]))))
        end = None
        for block in shown_blocks:
            segment = residuals.predictor.segments[block.segment]
            begin = segment.first * residuals.predictor.recordings[0].dt
            every = max(1, len(block.time) // MAX_POINTS)
            time = begin + block.time[::every]
            first = block is shown_blocks[0]
            axes.plot(time, block.values[::every, k], ".", color=MUTED, ms=2.0, label="measured" if first else None)
            marker = "+" if block.series.feature is not None else None
            expected = residuals.expected(block, predicted, solution.z)[::every, k]
            label = "model" if first else None
            axes.plot(time, expected, color=BLUE, lw=1.0, marker=marker, ms=9.0, label=label)
            if not block.fitted.all():
                end = begin + float(block.time[~block.fitted][0]), begin + float(block.time[-1])
        if end is not None:
            axes.axvspan(*end, color=GRID, alpha=0.6, lw=0.0, label="held back")
        unit = shown_blocks[0].series.unit
        axes.set(
            title=f"{shown_blocks[0].series.component(k)}, {unit}" if unit else shown_blocks[0].series.component(k)
        )
        if axes is panels[0]:
            axes.legend(loc="upper left", markerscale=3.0)
    panels[-1].set(xlabel="time, s")
    if hasattr(drawn, "tight_layout"):
        drawn.tight_layout()


def _whiteness(drawn: Any, solution: Solution) -> None:
    residuals = solution.residuals
    predicted = residuals.predicted(solution.z)
    panels = drawn.subplots(_rows(solution), 1, squeeze=False)[:, 0]
    for axes, name in zip(panels, _channels(solution), strict=False):
        block = max((b for b in residuals.blocks if b.channel == name), key=lambda b: int(b.fitted.sum()))
        off = np.nan_to_num(residuals.differences(block, predicted, solution.z)[block.fitted])
        count = len(off)
        if count < 3 * LAGS:
            write_note(axes, f"{name}: too few samples")
            continue
        for k in range(off.shape[1]):
            r = off[:, k] - off[:, k].mean()
            power = float(r @ r) or 1.0
            axes.plot(range(1, LAGS + 1), [float(r[n:] @ r[:-n]) / power for n in range(1, LAGS + 1)], lw=1.0)
        axes.axhspan(-2.0 / np.sqrt(count), 2.0 / np.sqrt(count), color=GRID, lw=0.0)
        axes.set(title=name)
    panels[-1].set(xlabel="lag, samples")
    drawn.tight_layout()
