"""Synthesis, place and route, and bitstream of a design on a device, and what they report."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amaranth.back import rtlil

from sley.fpga.boards.board import BoardTop
from sley.fpga.devices.device import annotate_platform, device_of
from sley.fpga.devices.family import Resources
from sley.fpga.flow.nextpnr import best_seed, place, place_refined, routing, with_seed
from sley.fpga.flow.synthesis import Synthesis, synthesise
from sley.fpga.flow.toolchain import run_tool
from sley.fpga.netlist.carry_ends import trim_carry_chains
from sley.fpga.netlist.fanout import copy_drivers
from sley.fpga.placement.floorplan import place_blocks

PATH_DEPTH = 4
"""Levels of hierarchy that name a block on a critical path."""
TIMING_WEIGHT = 30
"""How much nextpnr's usual placer minds timing beside the length of wires. With its own 10 it leaves DSP blocks farther
from their logic; docs/reference/fpga-measurements.md has what was measured."""


@dataclass(frozen=True)
class CriticalPath:
    """The slowest path between registers: nanoseconds, of which ``routing``, and the blocks it goes through."""

    delay: float
    routing: float
    blocks: tuple[str, ...]


@dataclass(frozen=True)
class Implementation:
    """A design on a device: ``resources`` after synthesis, all else as nextpnr reports it.

    ``fmax`` and ``constraint`` are in MHz, ``used`` and ``available`` numbers of cells by nextpnr's type, ``seconds``
    the run time of the whole flow.
    """

    bitstream: Path
    resources: Resources
    fmax: float
    constraint: float
    used: Mapping[str, int]
    available: Mapping[str, int]
    path: CriticalPath
    seconds: float

    @property
    def met(self) -> bool:
        """Whether the clock constraint is met."""
        return self.fmax >= self.constraint


def implement(
    platform: Any,
    design: BoardTop,
    folder: Path,
    *,
    name: str = "sley",
    dense: bool = False,
    may_miss: bool = False,
    array_blocks: int | None = None,
    seeds: int = 1,
) -> Implementation:
    """Implements ``design`` on ``platform``, an Amaranth platform that is used once; everything is left in ``folder``.

    ``dense``: see ``Dense``; ``array_blocks``: see ``annotate_platform``; ``seeds``: see ``best_seed``. A clock
    constraint that is not met is a ``FlowError`` unless it ``may_miss``; so is a design with more cells of a kind than
    the device has, which is known before place and route, and a step that fails.
    """
    began = time.monotonic()
    device = device_of(platform)
    dense_flow = device.family.dense if dense else None
    report = f"{name}.report.json"
    options = ["--report", report, "--seed", "1"]
    options += ["--placer", dense_flow.placer] if dense_flow else ["--placer-heap-timingweight", str(TIMING_WEIGHT)]
    options += ["--timing-allow-fail"] if may_miss else []
    annotate_platform(platform, device.family, device.capacity.dsp, array_blocks)
    plan = platform.prepare(design, name, nextpnr_opts=options)
    plan.extract(folder)
    text = plan.files[f"{name}.il"]
    made = synthesise(text, device.family, folder, name=name, dense=dense, resets=device.resets)
    device.check(made.top.total)
    trim_carry_chains(folder / f"{name}.json", device.family)
    copy_drivers(folder / f"{name}.json", device.family)
    place_blocks(folder / f"{name}.json", device)
    _, command, packing = json.loads(plan.files[f"build_{name}.json"])["commands"]
    if dense_flow:
        seed = best_seed(lambda seed: place_refined(command, seed, folder), seeds)
        last = ("routing", routing(command, seed, design.clock_hz / 1e6), f"{name}.tim")
    else:
        seed = best_seed(lambda seed: place(command, seed, folder), seeds) if seeds > 1 else 1
        last = ("place and route", with_seed(command, seed), f"{name}.tim")
    for step, words, log in (last, ("packing", packing, f"{name}.pack")):
        run_tool(step, words, folder, folder / log)
    return read_report(
        folder / f"{name}{device.family.bitstream}", folder / report, made.top.total, time.monotonic() - began
    )


def netlist(
    platform: Any, design: BoardTop, folder: Path, *, name: str = "sley", array_blocks: int | None = None
) -> Synthesis:
    """The netlist of ``design`` with the pins of ``platform``, as JSON and as EDIF for the tools of a vendor.

    A design with more cells of a kind than the device has is a ``FlowError``; ``array_blocks``: see
    ``annotate_platform``.
    """

    def text(fragment: Any, name: str, **_: Any) -> str:
        return str(rtlil.convert_fragment(fragment, name=name, emit_src=False, propagate_domains=False)[0])

    device = device_of(platform)
    annotate_platform(platform, device.family, device.capacity.dsp, array_blocks)
    platform.toolchain_prepare = text  # Amaranth itself hands it out as Verilog only
    made = synthesise(str(platform.prepare(design, name)), device.family, folder, name=name, edif=True)
    device.check(made.top.total)
    return made


def read_report(bitstream: Path, report: Path, resources: Resources, seconds: float) -> Implementation:
    """What nextpnr wrote with ``--report``."""
    found = json.loads(report.read_text())
    clock, speed = min(found["fmax"].items(), key=lambda item: float(item[1]["achieved"]))
    cells = found["utilization"]
    paths = [
        path["path"] for path in found["critical_paths"] if path["from"].endswith(clock) == path["to"].endswith(clock)
    ]
    return Implementation(
        bitstream,
        resources,
        float(speed["achieved"]),
        float(speed["constraint"]),
        {name: cell["used"] for name, cell in cells.items()},
        {name: cell["available"] for name, cell in cells.items()},
        max((_critical_path(path) for path in paths), key=lambda path: path.delay),
        seconds,
    )


def _critical_path(segments: list[dict[str, Any]]) -> CriticalPath:
    blocks: list[str] = []
    for segment in segments:
        *hierarchy, _ = segment["to"]["cell"].split("$")[0].split(".")
        block = ".".join(hierarchy[:PATH_DEPTH])
        if block and blocks[-1:] != [block]:
            blocks.append(block)
    routing = sum(segment["delay"] for segment in segments if segment["type"] == "routing")
    return CriticalPath(sum(segment["delay"] for segment in segments), routing, tuple(blocks))
