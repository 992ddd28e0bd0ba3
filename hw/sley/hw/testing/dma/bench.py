"""What surrounds the load and store units in a bench: local memories, and memory behind runs."""

import random
from typing import Any

from sley.abi.faults import Unit
from sley.abi.instructions import Space
from sley.abi.timing import SRAM_READ
from sley.hw.testing.dma.program import WORD
from sley.hw.testing.dma.reference import DmaState
from sley.hw.testing.pins import Pins
from sley.hw.testing.unit import UnitBench


class DmaBench(UnitBench):
    """The unit between local memories and memory; ``state`` is what they hold.

    Parameters
    ----------
    dut, seed, timeout
        As in ``UnitBench``.
    state : DmaState
        Contents, which the unit reads and writes, and the unit's kind.

    Members
    -------
    grants : list of int
        Cycles of reads and writes of the local memories, but those of lists.
    list_grants : list of int
        Cycles of reads of lists.
    runs : list of (cycle, address, bytes)
        Runs that the unit asked memory for.
    acknowledged : list of int
        Cycle in which each run of a store was acknowledged.
    joined : int
        Runs that the next one continues.
    """

    def __init__(self, dut: Any, state: DmaState, *, seed: int = 0, timeout: int = 20_000) -> None:
        super().__init__(dut, seed=seed, timeout=timeout)
        self.state = state
        self.grants: list[int] = []
        self.list_grants: list[int] = []
        self.runs: list[tuple[int, int, int]] = []
        self.acknowledged: list[int] = []
        self.joined = 0

    def play_local(self, denied: float = 0.0) -> None:
        """The local memories: what Load writes, or Store reads, with the probability that a port is not granted."""
        process = self._writes if self.state.unit is Unit.LOAD else self._reads
        for port, space in ((self.dut.scratchpad, Space.SCRATCHPAD), (self.dut.accumulator, Space.ACCUMULATOR)):
            self.add(process(port, self.state.local[space], denied, self.grants))
        if self.state.config.gather:
            rows = self.state.local[Space.ACCUMULATOR]
            self.add(self._reads(self.dut.list_read, rows, denied, self.list_grants))
            self.add(self._watch_list)

    def play_memory(self, latency: tuple[int, int] = (3, 3), pause: float = 0.0) -> None:
        """Memory behind the unit's runs: least and greatest cycles to an answer, and the probability of a pause."""
        if self.state.unit is Unit.LOAD:
            self._play_reader(latency, pause)
        else:
            self._play_writer(latency, pause)

    def _writes(self, port: Any, rows: list[bytearray], denied: float, grants: list[int]) -> Any:
        rng = random.Random(self.rng.random())
        granules = len(port.enable)
        size = len(rows[0]) // granules

        async def process(ctx: Any) -> None:
            pins = Pins(port.ready)
            ready = rng.random() >= denied
            pins.set(ctx, ready)
            async for _, _, valid, row, data, enable in ctx.tick().sample(port.valid, port.row, port.data, port.enable):
                if valid and ready:
                    grants.append(self.cycle)
                    new = data.to_bytes(len(rows[0]), "little")
                    for k in range(granules):
                        if enable >> k & 1:
                            rows[row][k * size : (k + 1) * size] = new[k * size : (k + 1) * size]
                ready = rng.random() >= denied
                pins.set(ctx, ready)

        return process

    def _reads(self, port: Any, rows: list[bytearray], denied: float, grants: list[int]) -> Any:
        rng = random.Random(self.rng.random())
        width = len(port.data)

        async def process(ctx: Any) -> None:
            pipe: list[int | None] = [None] * SRAM_READ
            pins, edges = Pins(port.ready, port.data), aiter(ctx.tick().sample(port.valid, port.row, port.part))
            while True:
                ready = rng.random() >= denied
                arriving = pipe.pop(0)
                pins.set(ctx, ready, rng.getrandbits(width) if arriving is None else arriving)
                _, _, valid, row, part = await anext(edges)
                if valid and ready:
                    grants.append(self.cycle)
                read = int.from_bytes(rows[row], "little") >> (part * width) & ((1 << width) - 1)
                pipe.append(read if valid and ready else None)

        return process

    async def _watch_list(self, ctx: Any) -> None:
        """A scrub clears the accumulators as soon as the units are idle."""
        async for _, _, busy, valid in ctx.tick().sample(self.dut.busy, self.dut.list_read.valid):
            assert busy or not valid, f"a list is read by a unit that is not busy, cycle {self.cycle}"

    def _play_reader(self, latency: tuple[int, int], pause: float) -> None:
        """Memory behind ``run`` and ``beat``; each run takes at least a random latency."""
        dut, bus, memory = self.dut, self.state.config.bus_bytes, self.state.memory
        rng = random.Random(self.rng.random())
        queue: list[tuple[int, dict[str, int]]] = []

        async def process(ctx: Any) -> None:
            offered, run = False, dut.run.payload
            promised: int | None = None
            pins = Pins(dut.run.ready, dut.beat.valid, dut.beat.payload)
            edges = aiter(ctx.tick().sample(dut.beat.ready, dut.run.valid, run.addr, run.bytes, run.more, run.joins))
            while True:
                run_ready = rng.random() >= pause
                offered = offered or bool(queue and queue[0][0] <= self.cycle and rng.random() >= pause)
                beat = queue[0][1] if offered else {"data": rng.getrandbits(8 * bus), "last": 1}
                pins.set(ctx, run_ready, offered, beat)
                _, _, taken, valid, address, length, more, joins = await anext(edges)
                if offered and taken:
                    queue.pop(0)
                    offered = False
                if valid and run_ready:
                    assert length > 0
                    assert not joins or promised in (None, address)
                    promised = (address + length) & WORD if more else None
                    self.joined += more
                    self.runs.append((self.cycle, address, length))
                    due = self.cycle + rng.randint(*latency) - 1
                    for at in range(0, length, bus):
                        piece = memory[address + at : address + min(at + bus, length)]
                        error = int(self.state.refusal(address, address + min(at + bus, length)))
                        beat = {"data": int.from_bytes(piece, "little"), "last": at + bus >= length, "error": error}
                        queue.append((due, beat))

        self.add(process)

    def _play_writer(self, latency: tuple[int, int], pause: float) -> None:
        """Memory behind ``run`` and ``data``: takes a run, then its data, and acknowledges it later, but no run that is
        to be joined before the next one is here or ``cut``. A run has a group, and no group begins anew while it has
        runs of its last time."""
        dut, bus, memory = self.dut, self.state.config.bus_bytes, self.state.memory
        rng = random.Random(self.rng.random())
        promised: int | None = None
        runs: list[tuple[int, int, int]] = []
        acks: list[tuple[int, int, int]] = []

        async def process(ctx: Any) -> None:
            nonlocal promised
            got = b""
            run = dut.run.payload
            pins = Pins(dut.run.ready, dut.data.ready, dut.writer_pending, dut.writer_error, dut.writer_error_phase)
            edges = aiter(
                ctx.tick().sample(
                    dut.run.valid, run.addr, run.bytes, run.more, dut.phase, dut.data.valid, dut.data.payload, dut.cut
                )
            )
            while True:
                run_ready = len(runs) < 4 and rng.random() >= pause
                ready = bool(runs) and rng.random() >= pause
                complete = len(acks) > 1 or runs or promised is None
                acknowledged = bool(acks and complete) and acks[0][0] <= self.cycle
                phases = [entry[2] for entry in (*acks, *runs)]
                pending = sum(1 << k for k in set(phases))
                error_phase = acks[0][2] if acks else rng.randrange(2)
                pins.set(ctx, run_ready, ready, pending, acks[0][1] if acknowledged else 0, error_phase)
                _, _, run_valid, address, length, more, phase, valid, data, cut = await anext(edges)
                if acknowledged:
                    acks.pop(0)
                    self.acknowledged.append(self.cycle)
                if cut:
                    promised = None
                if valid and ready:
                    got += data.to_bytes(bus, "little")
                    start, size, group = runs[0]
                    if len(got) >= size:
                        error = int(self.state.refusal(start, start + size))
                        if not error:
                            memory[start : start + size] = got[:size]
                        due = max(self.cycle + rng.randint(*latency), acks[-1][0] + 1 if acks else 0)
                        acks.append((due, error, group))
                        runs.pop(0)
                        got = b""
                if run_valid and run_ready:
                    assert length > 0
                    assert promised in (None, address)
                    promised = (address + length) & WORD if more else None
                    self.runs.append((self.cycle, address, length))
                    self.joined += more
                    assert phase not in phases or phase == phases[-1]
                    runs.append((address, length, phase))

        self.add(process)
