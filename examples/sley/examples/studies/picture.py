"""The picture of a study as SVG, the same bytes for the same numbers."""

from __future__ import annotations

import io

from sley.abi.install import extra
from sley.driver import BadRequest
from sley.examples.studies.study import Result

MARKERS = "os^Dv"


def picture(result: Result, title: str) -> str:
    """Lines with markers. Raises ``BadRequest`` without matplotlib."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
        from matplotlib.ticker import EngFormatter, FixedLocator, NullLocator, StrMethodFormatter
    except ImportError as error:
        raise BadRequest(f"pictures need matplotlib, which is not installed ({error}): {extra('explore')}") from None
    settings = {"svg.hashsalt": "sley", "font.size": 10, "axes.spines.top": False, "axes.spines.right": False}
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=(6.4, 4), layout="constrained")
        axes = figure.subplots()
        for number, line in enumerate(result.lines):
            axes.plot(line.x, line.y, marker=MARKERS[number % len(MARKERS)], label=line.label)
        axes.set(xlabel=result.x, ylabel=result.y, title=title)
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(EngFormatter())
        if result.ticks is not None:
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_locator(FixedLocator(list(result.ticks)))
            axes.xaxis.set_minor_locator(NullLocator())
            axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
        if len(result.lines) > 1:
            axes.legend(frameon=False)
        axes.grid(alpha=0.3)
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"
