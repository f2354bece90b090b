"""The figure of `bench loop`: what an exchange takes, block by block, beside raw exchanges and the deadline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

COLOURS = {"loop": "#1b6ca8", "steady": "#3aa06a", "zeromq": "#d1812c", "datagram": "#5a5a5a"}
NAMES = {
    "loop": "the loop, gait",
    "steady": "the loop, steady",
    "zeromq": "raw ZeroMQ",
    "datagram": "raw Unix datagrams",
}
QUANTILES = (("p50", "o"), ("p99", "^"), ("p999", "s"))


def draw(result: Mapping[str, Any], path: str) -> None:
    """One panel a rate; idle and loaded beside each other; a mark for each block's p50, p99, p99.9."""
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    rates = sorted({case["rate_hz"] for case in result["cases"]})
    drawing, panels = plt.subplots(1, len(rates), figsize=(3.4 * len(rates), 3.6), sharey=True, squeeze=False)
    for axes, rate in zip(panels[0], rates, strict=True):
        cases = [case for case in result["cases"] if case["rate_hz"] == rate]
        for c, case in enumerate(cases):
            for w, (who, colour) in enumerate(COLOURS.items()):
                rows = [block[who]["exchange"] for block in case["blocks"] if "failed" not in block[who]]
                for q, mark in QUANTILES:
                    places = [c + 0.2 * (w - 1.5) + 0.02 * (k - len(rows) / 2) for k in range(len(rows))]
                    axes.plot(places, [row[q] for row in rows], mark, color=colour, ms=3.5, alpha=0.8)
        axes.axhline(1e6 / rate, color="#b03030", lw=0.8)
        axes.set_yscale("log")
        axes.set_xticks(range(len(cases)), [case["condition"] for case in cases])
        axes.set_xlim(-0.6, len(cases) - 0.4)
        axes.set_title(f"{rate} Hz", fontsize=9)
        axes.grid(axis="y", lw=0.3, alpha=0.6)
    panels[0][0].set_ylabel("exchange, us (line: the period)")
    handles = [Line2D([], [], color=colour, marker="o", ls="", label=NAMES[who]) for who, colour in COLOURS.items()]
    handles += [Line2D([], [], color="k", marker=mark, ls="", label=q.replace("p999", "p99.9"))
                for q, mark in QUANTILES]  # fmt: skip
    drawing.legend(handles=handles, ncol=7, fontsize=7, loc="lower center", frameon=False)
    drawing.tight_layout(rect=(0, 0.07, 1, 1))
    drawing.savefig(path, dpi=130)
    plt.close(drawing)
