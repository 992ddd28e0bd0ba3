"""A bench for the sequencer: command processor, memory and units as coroutines."""

import random
from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Any

from amaranth.hdl import Elaboratable, Module
from amaranth.lib import wiring

from sley.abi.config import ChipConfig
from sley.abi.faults import UNITS, FaultCode, Unit
from sley.abi.instructions import INSTRUCTION_BYTES
from sley.abi.network import Tag
from sley.abi.packets import INLINE_ARGS
from sley.hw.core.semaphores import Semaphores
from sley.hw.core.sequencer.sequencer import Sequencer
from sley.hw.noc.messages import request_flit
from sley.hw.testing.sequencer.block import Block, Command
from sley.hw.testing.streams import StreamBench, compiled

COMMAND_FIELDS = ("op", "pc", "wait", "signal", "a", "b", "c", "flags")
UnitFault = tuple[FaultCode, int, int]
"""Code, address, and the cycle after the command's acceptance, from 1 on, in which it is raised."""


class Harness(Elaboratable):
    """A sequencer with real semaphores; wait[1] and signal[1] of those are the test's. ``watched``: see ``Design``."""

    def __init__(self, config: ChipConfig, core_index: int) -> None:
        self.sequencer = Sequencer(config)
        self.core_index = core_index
        self.semaphores = Semaphores(2, 2)
        self.watched = (self.sequencer,)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.sequencer = self.sequencer
        m.submodules.semaphores = self.semaphores
        wiring.connect(m, self.sequencer.wait, self.semaphores.wait[0])
        wiring.connect(m, self.sequencer.signal, self.semaphores.signal[0])
        m.d.comb += [
            self.sequencer.core.eq(self.core_index),
            self.semaphores.clear.eq(self.sequencer.clear),
            self.sequencer.semaphores.eq(self.semaphores.some),
        ]
        return m


class SequencerBench:
    """Runs ``blocks`` one after the other.

    Parameters: ``idle`` and ``pause`` per cycle, for every stream; ``latency`` of memory in cycles; ``work``: cycles
    that a unit is busy with a command at most (random up to it, or exactly it without idle and pause), counted
    from the last one; ``bad``: byte
    addresses whose beats carry an error; ``on_command(unit, command)`` gives the fault that a unit raises for it.
    """

    def __init__(
        self,
        config: ChipConfig,
        blocks: Sequence[Block],
        *,
        seed: int = 0,
        core_index: int = 0,
        idle: float = 0.0,
        pause: float = 0.0,
        latency: int = 5,
        work: int = 0,
        bad: Collection[int] = (),
        on_command: Callable[[Unit, Command], UnitFault | None] = lambda unit, command: None,
        timeout: int = 20_000,
    ) -> None:
        self.config = config
        self.blocks = blocks
        self.bench = StreamBench(compiled(Harness, config, core_index), seed=seed, timeout=timeout)
        self.harness: Harness = self.bench.dut
        self.dut = self.harness.sequencer
        self.rng = random.Random(seed)
        self.idle, self.pause, self.latency, self.work, self.bad = idle, pause, latency, work, bad
        self.on_command = on_command
        self.memory: dict[int, int] = {}
        self.block = blocks[0]
        self._runs: deque[tuple[int, int, int]] = deque()
        self.bench.add(self._command_processor, wait=True)
        self.bench.add(self._memory_requests)
        self.bench.add(self._memory_data)
        self.bench.add(self._units)

    def run(self) -> None:
        self.bench.run()

    def _chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def _store(self, address: int, data: bytes) -> None:
        self.memory.update((address + i, byte) for i, byte in enumerate(data))

    async def _command_processor(self, ctx: Any) -> None:
        dut, layout = self.dut, request_flit(self.config)
        for block in self.blocks:
            self.block = block
            data = b"".join(w.to_bytes(INSTRUCTION_BYTES, "little") for w in block.program)
            self._store(block.program_address, data)
            self._store(block.args_address, b"".join(a.to_bytes(4, "little") for a in block.args))
            sizes = len(block.program) | len(block.args) << 16 | block.context << 24 | block.queue << 28
            words = [sizes, block.program_address, block.tag]
            if len(block.args) > INLINE_ARGS:
                words += [block.args_address, *block.index, *block.grid]
            else:
                words += [*block.index, *block.grid, *block.args]
            flits = [layout.const({"payload": {"head": {"kind": 2, "addr": block.watchdog}}})]
            flits += [
                layout.const({"payload": {"beat": {"data": word}}, "last": i == len(words) - 1})
                for i, word in enumerate(words)
            ]
            for flit in flits:
                while self._chance(self.idle):
                    await ctx.tick()
                ctx.set(dut.launch.valid, 1)
                ctx.set(dut.launch.payload, flit)
                _, _, ready = await ctx.tick().sample(dut.launch.ready)
                assert ready, "an idle core takes its launch message without a break"
                ctx.set(dut.launch.valid, 0)
            block.launched = self.bench.cycle
            done: list[int] = []
            while len(done) < 3:
                ready = not self._chance(self.pause)
                ctx.set(dut.done.ready, ready)
                _, _, valid, flit = await ctx.tick().sample(dut.done.valid, dut.done.payload)
                if valid and ready:
                    done.append(int(flit.payload.data))
                    assert flit.last == (len(done) == 3)
                    assert (flit.dest.x, flit.dest.y, flit.payload.tag) == (0, 0, Tag.MESSAGE)
                    block.reported = block.reported or self.bench.cycle
            ctx.set(dut.done.ready, 0)
            block.core, block.pc, block.address = done[0] & 0xFF, done[1], done[2]
            block.code, block.unit = FaultCode(done[0] >> 8 & 0xFF), Unit(done[0] >> 16 & 0xF)
            assert done[0] >> 20 == 0
            assert not ctx.get(dut.running)
            assert not any(ctx.get(self.harness.semaphores.values))

    # Valid and payload never depend on ready: they may be read before the edge, which is faster than sampling.

    async def _memory_requests(self, ctx: Any) -> None:
        run = self.dut.run
        while True:
            ready = not self._chance(self.pause)
            ctx.set(run.ready, ready)
            valid, addr, length = ctx.get(run.valid), ctx.get(run.payload.addr), ctx.get(run.payload.bytes)
            await ctx.tick()
            if valid and ready:
                assert length > 0
                self.block.runs.append((addr, length))
                self.block.asked.append(self.bench.cycle)
                self._runs.append((addr, length, self.bench.cycle + self.latency))

    async def _memory_data(self, ctx: Any) -> None:
        width, beat = self.config.bus_bytes, self.dut.beat
        while True:
            while not self._runs or self.bench.cycle < self._runs[0][2]:
                await ctx.tick()
            addr, length, _ = self._runs.popleft()
            for at in range(addr, addr + length, width):
                while self._chance(self.idle):
                    await ctx.tick()
                end = min(at + width, addr + length)
                data = bytes(self.memory.get(a, 0) for a in range(at, end))
                ctx.set(beat.valid, 1)
                ctx.set(beat.payload.data, int.from_bytes(data, "little"))
                ctx.set(beat.payload.last, end == addr + length)
                ctx.set(beat.payload.error, any(a in self.bad for a in range(at, end)))
                while not (await ctx.tick().sample(beat.ready))[-1]:
                    pass
                self.block.beats.append(self.bench.cycle)
                ctx.set(beat.valid, 0)

    async def _units(self, ctx: Any) -> None:
        """All units: take commands, are busy for a while, drop commands during an abort, raise faults."""
        dut = self.dut
        busy = [0] * len(UNITS)
        faults: list[list[tuple[int, FaultCode, int, int]]] = [[] for _ in UNITS]
        idle = None
        while True:
            ready = [not self._chance(self.pause) for _ in UNITS]
            if self.pause or idle is None:
                for port, value in zip(dut.dispatch, ready, strict=True):
                    ctx.set(port.ready, value)
            if idle is not (idle := not any(busy)):
                ctx.set(dut.units_idle, idle)
            for port, waiting in zip(dut.unit_fault, faults, strict=True):
                if waiting:
                    ctx.set(port.valid, waiting[0][0] == self.bench.cycle)
                    ctx.set(port.code, waiting[0][1])
                    ctx.set(port.address, waiting[0][2])
                    ctx.set(port.pc, waiting[0][3])
                    if waiting[0][0] < self.bench.cycle:
                        waiting.pop(0)
            valid = [ctx.get(port.valid) for port in dut.dispatch]
            command = {}
            if any(valid):
                assert sum(valid) == 1
                assert not ctx.get(dut.done.valid), "a command is handed out after the end of its block"
                payload = dut.dispatch[valid.index(1)].payload
                command = {name: int(ctx.get(payload[name])) for name in COMMAND_FIELDS}
            abort = ctx.get(dut.abort)
            await ctx.tick()
            busy = [max(0, b - 1) for b in busy]
            for k, unit in enumerate(UNITS):
                if valid[k] and ready[k] and not abort:
                    self.block.commands[unit].append(command)
                    self.block.issued.append(self.bench.cycle)
                    exact = not (self.idle or self.pause)
                    busy[k] = max(busy[k], self.work if exact else self.rng.randint(0, self.work))
                    fault = self.on_command(unit, command)
                    if fault is not None:
                        code, address, delay = fault
                        faults[k].append((self.bench.cycle + delay - 1, code, address, command["pc"]))
                        busy[k] = max(busy[k], delay)
