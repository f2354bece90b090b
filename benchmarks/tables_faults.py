"""What docs/faults.md says of the last result of `rtmms bench faults`: markdown."""

from __future__ import annotations

from .tables_loop import Result, kept, machine, number, table

HEADS = ("fault", "steps", "missed %", "without %", "lost %", "without %", "longest row", "refused")


def run(result: Result) -> str:
    """Where it was measured, whether all was handled, and what is beyond the aim."""
    failed, most = result["failed"], result["target_percent"]
    beyond = sorted(
        ((one["more_lost_percent"], one["case"]) for one in result["cases"]
         if one["more_lost_percent"] is not None and one["more_lost_percent"] > most), reverse=True
    )  # fmt: skip
    handled = f"Not handled as they should be: {', '.join(failed)}." if failed else "All was handled as it should be."
    over = ", ".join(f"{case} {more:.1f}" for more, case in beyond) or "none"
    return (
        f"{machine(result)}; {result['duration_s']:g} s with each fault, and as long without ({kept('faults.json')}).\n"
        f"Lost are overruns and skipped periods, in percent of the steps. {handled}\n"
        f"With more than {most:g} % more lost than without the fault: {over}."
    )


def faults(result: Result) -> str:
    """A row a fault."""

    def lost(count: int, steps: int) -> str:
        return number(100.0 * count / steps if steps else None, 2)

    return table(HEADS, (
        [
            one["case"], str(one["steps"]), number(one["misses_percent"], 2), number(one["misses_without_percent"], 2),
            lost(one["overrun_or_skipped"], one["steps"]),
            lost(one["overrun_or_skipped_without"], one["steps_without"]), str(one["longest_row"]),
            ", ".join(f"{code} {count}" for code, count in one["rejected"].items()),
        ]
        for one in result["cases"]
    ))  # fmt: skip


def attacks(result: Result) -> str:
    """A row a family of hostile inputs, of the last `rtmms bench attacks`."""
    rows = [
        [name, str(one["cases"]), str(one["outcomes"].get("taken", 0)), str(one["outcomes"].get("refused", 0)),
         str(len(one["findings"]))]
        for name, one in result["families"].items()
    ]  # fmt: skip
    return table(("family", "cases", "taken as data", "refused in a sentence", "findings"), rows)
