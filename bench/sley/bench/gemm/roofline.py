"""The roofline picture of ``sley bench suite`` (Williams, Waterman, Patterson 2009): what a chip could do, and does.

A point is a measured product. It stands above its MACs for each byte that it must move over the memory bus's busier
channel, reads or writes, every byte once. No point can lie above the roof: the bytes that a channel moves in a cycle,
times the MACs for each, up to the peak of the arrays.
"""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from sley.abi.config import ChipConfig
from sley.bench.gemm.measure import GemmMeasurement
from sley.bench.gemm.suite import Result, distinct

FORMATS = tuple(Figure().canvas.get_supported_filetypes())
"""Suffixes of files for a picture."""
MARKERS = "osD^vP*X<>"
TICKS = StrMethodFormatter("{x:,g}")
GREY = "0.35"


def intensity(measured: GemmMeasurement, config: ChipConfig) -> float:
    """MACs for each byte that the busier channel must move."""
    return measured.macs / (measured.bound.beats * config.bus_bytes)


def draw(path: Path, title: str, config: ChipConfig, results: Sequence[Result]) -> None:
    """Writes the picture, of the type that the file's name ends in."""
    figure = Figure(figsize=(10, 6), dpi=150, layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log", title=title)
    families = list(dict.fromkeys(result.layer.family for result in results))
    for index, family in enumerate(families):
        points = [r.measured for r in distinct(r for r in results if r.layer.family == family)]
        axes.scatter(
            [intensity(point, config) for point in points],
            [point.macs / point.cycles for point in points],
            s=44,
            marker=MARKERS[index % len(MARKERS)],
            facecolor="none",  # families share many places
            edgecolor=f"C{index % 10}",
            linewidth=1.2,
            zorder=3,
            label=family,
        )
    peak, bus = results[0].measured.peak_macs, config.bus_bytes
    ridge = peak / bus
    low, high = axes.get_xlim()
    low, high = min(low, ridge / 4), max(high, ridge * 4)
    axes.plot([low, ridge, high], [low * bus, peak, peak], color="black", linewidth=1.5, zorder=2)
    axes.set_xlim(low, high)
    axes.set_ylim(top=peak * 3)
    axes.annotate(f"{peak:,} MACs a cycle", (high, peak), (-6, 5), textcoords="offset points", ha="right", color=GREY)
    axes.annotate(
        f"{bus} bytes a cycle",
        (ridge / 2, peak / 2),
        (-8, 8),
        textcoords="offset points",
        ha="right",
        color=GREY,
    )
    axes.set_xlabel("MACs for each byte that the busier channel of the memory bus must move")
    axes.set_ylabel("MACs a cycle, doorbell to fence")
    axes.xaxis.set_major_formatter(TICKS)
    axes.yaxis.set_major_formatter(TICKS)
    axes.grid(which="major", color="0.9", zorder=0)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right upper", frameon=False)
    figure.savefig(path)
