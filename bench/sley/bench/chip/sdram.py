"""The SDRAM controller's use of the data bus: words that move against cycles, refreshes and all.

Long sequences in bursts of the chip's greatest length, single beats at random places of 32 MiB, and a sequence each
way at once, on the controller with the model of the part. Fails when a share is missed or a rule of the part is broken.
"""

import random
import sys
from dataclasses import replace
from typing import Any

from amaranth.utils import exact_log2
from rich.console import Console
from rich.table import Table

from sley.abi.config import ChipConfig, preset
from sley.fpga.memory.sdram.part import COMMON_32M
from sley.fpga.memory.sdram.pins import Command
from sley.fpga.testing.sdram_bench import SdramBench, broken_rules
from sley.hw.testing.axi import Channel
from sley.hw.testing.streams import StreamBench

SEQUENCE_BYTES = 4096
SINGLE_BEATS = 120
STORED_ROWS = 64
PART = replace(COMMON_32M, power_up=2_000)  # nobody has to wait for it here
TRAFFIC = ("sequence read", "sequence written", "both ways", "beats read", "beats written")
PROMISED = {
    ("nano", 25): (0.95, 0.95, 0.87, 0.44, 0.42),
    ("edge", 25): (0.95, 0.95, 0.87, 0.82, 0.82),
    ("nano", 100): (0.96, 0.96, 0.85, 0.34, 0.33),
}
"""Preset and MHz: least share of each kind of traffic."""


def share(config: ChipConfig, clock_hz: int, reads: list[tuple[int, int]], writes: list[tuple[int, int]]) -> float:
    """Of the cycles from the first column command to the last word. ``reads``, ``writes``: addresses and beats."""
    dut = SdramBench(config, clock_hz, PART, stored_rows=STORED_ROWS)
    bench = StreamBench(dut, timeout=100_000)
    columns: list[int] = []

    async def watch(ctx: Any) -> None:
        while True:
            fault, command = (await ctx.tick().sample(dut.fault, dut.sdram.command))[2:]
            if fault:
                sys.exit(f"rules of the part are broken: {', '.join(broken_rules(fault))}")
            if Command(command) in (Command.READ, Command.WRITE):
                columns.append(bench.cycle)

    bench.add(watch)
    for channel, bursts in (("ar", reads), ("aw", writes)):
        kind = {"size": exact_log2(config.bus_bytes), "burst": 1, "id": 0}
        bench.send(Channel(dut.bus, channel), [{"addr": addr, "len": beats - 1, **kind} for addr, beats in bursts])
    beats = [k == count - 1 for _, count in writes for k in range(count)]
    full = (1 << config.bus_bytes) - 1
    bench.send(Channel(dut.bus, "w"), [{"data": 1, "strb": full, "last": last} for last in beats])
    bench.receive(Channel(dut.bus, "b"), len(writes))
    bench.receive(Channel(dut.bus, "r"), sum(count for _, count in reads))
    bench.run()
    burst = dut.memory.timing.burst
    return burst * len(columns) / (columns[-1] - columns[0] + burst)


def sequence(config: ChipConfig, start: int) -> list[tuple[int, int]]:
    step = config.max_burst * config.bus_bytes
    return [(at, config.max_burst) for at in range(start, start + SEQUENCE_BYTES, step)]


def single_beats(config: ChipConfig) -> list[tuple[int, int]]:
    places = random.Random(1)
    return [
        (config.bus_bytes * places.randrange(COMMON_32M.memory_bytes // config.bus_bytes), 1)
        for _ in range(SINGLE_BEATS)
    ]


def measure() -> list[str]:
    """Prints the table; returns what was missed."""
    table = Table("bus", "clock", *TRAFFIC)
    missed = []
    for (name, mhz), promised in PROMISED.items():
        config = preset(name)
        sequences = sequence(config, 0), sequence(config, 1 << 20)
        beats = single_beats(config)
        traffic: list[tuple[list[tuple[int, int]], list[tuple[int, int]]]] = [
            (sequences[0], []),
            ([], sequences[0]),
            (sequences[0][::2], sequences[1][::2]),
            (beats, []),
            ([], beats[:STORED_ROWS]),
        ]
        shares = [share(config, mhz * 1_000_000, *both) for both in traffic]
        table.add_row(f"{name}, {config.bus_bytes} bytes", f"{mhz} MHz", *(f"{part:.1%}" for part in shares))
        missed += [
            f"{what} of {name} at {mhz} MHz: {found:.1%}, not {least:.0%}"
            for what, found, least in zip(TRAFFIC, shares, promised, strict=True)
            if found < least
        ]
    Console().print(table)
    return missed
