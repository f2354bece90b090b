"""rtmms gaits ROBOT --search GOALS: the best gaits, their files, figure and numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rtmms.base.budget import Budget, OutOfTimeError, remaining
from rtmms.base.errors import ModelError
from rtmms.base.files import KINDS, Kind, new_file_beside, refuse_output, with_checksum
from rtmms.base.terminal import print_json, print_text
from rtmms.base.toml_file import toml_comment, toml_key, toml_value
from rtmms.cli.option_types import INTERRUPTED, folder
from rtmms.view.style import figure_file, written_as

if TYPE_CHECKING:
    from rtmms.studies.gait_search import Gait, ParetoFront, Search


PROGRESS_S = 10.0
"""Between two lines of progress."""


def search_and_print(
    asked: Search, out: Path | None, form: str, threads: int | None, budget: Budget, *, as_json: bool
) -> int:
    """Search the best gaits, write and print them; Ctrl-C and the end of the budget give the best ones so far.

    Parameters
    ----------
    asked : Search
        The request.
    out : Path | None
        Folder of the results.
    form : str
        Format of the figure.
    threads : int | None
        Threads of the rollouts.
    budget : Budget
        Wall time.
    as_json : bool
        Print JSON.

    Returns
    -------
    int
        The exit status.

    Raises
    ------
    ModelError
        The budget ended before a gait was found.
    """
    from rtmms.studies.gait_search import check_request, search

    check_request(asked)
    search_file = None
    if out is not None:
        gait_kind = Kind("gait of rtmms", (toml_comment(f"{asked.robot}: ").lower().encode(),), sealed=True)
        folder("-o", out)
        refuse_output(out / f"{asked.robot}-front.{form}", "-o", KINDS[f".{form}"])
        for path in sorted(out.glob(f"{asked.robot}-gait-*.toml")):
            refuse_output(path, "-o", gait_kind)
        search_file = out / f"{asked.robot}-search-{asked.key()}.json"
    try:
        front = search(asked, file=search_file, threads=threads, report=_Progress(budget), ends_early=True)
    except OutOfTimeError as ended:
        raise ModelError(f"--budget: {ended}, and no gait was found; give a longer budget") from None
    except KeyboardInterrupt:
        if search_file is not None and search_file.is_file():
            print_text(
                f"rtmms: interrupted; run the same command again to continue the search from {search_file}", err=True
            )
        raise
    if front.note:
        goes_on = (
            f"; run the same command again to continue from {search_file}"
            if search_file is not None and search_file.is_file()
            else ""
        )
        print_text(f"rtmms: {front.note}{goes_on}", err=True)
    files = [None if out is None else _written(asked, front, k, out) for k in range(len(front.gaits))]
    result: dict[str, Any] = {
        "robot": asked.robot, "search": list(asked.goals), "seed": asked.seed, "controller": front.controller,
        "evaluations": len(front.tried), "model": dict(front.model), "error": dict(front.error),
        "front": [
            {"words": dict(gait.parameters), **gait.values, "coarse": dict(gait.coarse), "file": file and str(file)}
            for gait, file in zip(front.gaits, files, strict=True)
        ],
        "default": front.default_values, "figures": [], "note": front.note,
    }  # fmt: skip
    if out is not None:
        from rtmms.view.gait_figure import draw_front as draw

        with written_as(form):
            path = figure_file(out, f"{asked.robot}-front")
            draw(front, asked.goals, asked.robot, path)
        result["figures"] = [str(path)]
    if as_json:
        print_json(json.dumps(result, allow_nan=False))
    else:
        print_text(as_table(result))
    if front.note.startswith("Ctrl-C"):
        return INTERRUPTED
    return 0 if front.gaits else 1


class _Progress:
    """A line on standard error for each part of the search, and every ten seconds; OutOfTimeError after the budget."""

    def __init__(self, budget: Budget) -> None:
        self._budget, self._last, self._last_s = budget, "", 0.0

    def __call__(self, what: str, done: int, total: int) -> None:
        elapsed = self._budget.elapsed
        if what != self._last or elapsed - self._last_s > PROGRESS_S:
            self._last, self._last_s = what, elapsed
            left = remaining(elapsed, done, total)
            print_text(f"rtmms: {what}: generation {done} of {total}{left and ', ' + left}", err=True)
        self._budget.refuse_late()


def _written(asked: Search, front: ParetoFront, k: int, out: Path) -> Path:
    """Write the file of a gait, which `--controller NAME:FILE` accepts."""
    item: Gait = front.gaits[k]
    path = out / f"{asked.robot}-gait-{k + 1}.toml"
    title = f"{asked.robot}: " + ", ".join(f"{goal} {value:.5g}" for goal, value in item.values.items())
    lines = [f"{toml_key(name)} = {toml_value(value)}\n" for name, value in item.parameters.items()]
    with new_file_beside(path, "-o") as part:
        part.write_text(with_checksum(toml_comment(title), "".join(lines)), encoding="utf-8", newline="\n")
    return path


def as_table(result: dict[str, Any]) -> str:
    """Return the result as text for a person.

    Parameters
    ----------
    result : dict[str, Any]
        Result as printed with --json.

    Returns
    -------
    str
        Lines.
    """
    from rtmms.studies.gait_search import GOALS

    names = list(result["front"][0]["words"]) if result["front"] else []
    head = f"{'':<9}" + "".join(f"{name:>18}" for name in (*GOALS, *names)) + "  file"
    lines = [f"{result['robot']}: {result['evaluations']} gaits tried, seed {result['seed']}", head]
    for k, item in enumerate(result["front"]):
        numbers = [*(item[goal] for goal in GOALS), *item["words"].values()]
        lines.append(f"{k + 1:<9}" + "".join(f"{value:>18.5g}" for value in numbers) + f"  {item['file'] or ''}")
    if result["default"] is not None:
        lines.append(f"{'default':<9}" + "".join(f"{result['default'][goal]:>18.5g}" for goal in GOALS))
    off = ", ".join(f"{goal} {100 * share:.2g} %" for goal, share in result["error"].items())
    model = ", ".join(f"{key} {value}" for key, value in result["model"].items())
    lines.append(f"sought on a model with {model}; off by at most: {off}")
    return "\n".join([*lines, *(f"figure {path}" for path in result["figures"])])
