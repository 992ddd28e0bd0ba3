"""The matrix unit beside its golden model, on memories that this bench plays."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np
from matrix_programs import COVERAGE, Program, count_commands

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.abi.instructions import Op
from sley.abi.types import ElementType
from sley.hw.core.matrix.unit import MatrixUnit
from sley.hw.testing.pins import Pins
from sley.hw.testing.streams import Traffic, compiled
from sley.hw.testing.unit import UnitBench
from sley.sim.model.memory import FaultError, ModelMemory
from sley.sim.model.state import LocalState
from sley.sim.model.units import execute

SPECIALS = np.array(
    [0, 0x8000, 0x3F80, 0xBF80, 0x7F80, 0xFF80, 0x7FC0, 0xFFA1, 0x7F7F, 0xFF7F, 0x0080, 0x807F, 0x0001, 0x0100, 0x7F01],
    np.uint16,
)
"""bf16: zeros, ones, infinities, NaNs, the largest, the smallest, subnormals."""


def fill_with_floats(state: LocalState, rng: np.random.Generator, kind: str) -> None:
    """``ordinary``: products and sums of like size, which round; ``special``: with rows of special values and of any
    bits."""
    lanes, words = state.lanes, state.accumulator.view(np.uint32)

    def ordinary(shape: tuple[int, ...]) -> np.ndarray:
        values = rng.standard_normal(shape) * 2.0 ** rng.integers(-6, 7, shape)
        return values.astype(np.float32).view(np.uint32)

    lanes[:] = ordinary(lanes.shape) >> 16
    words[:] = ordinary(words.shape)
    if kind == "special":
        mixed = rng.random(lanes.shape) < rng.choice([0, 0, 0.02, 0.3, 1], (len(lanes), 1))
        lanes[mixed] = rng.choice(SPECIALS, lanes.shape)[mixed]
        anything = rng.random(len(lanes)) < 0.2
        lanes[anything] = rng.integers(0, 1 << 16, lanes.shape)[anything]
        words[::3] = rng.choice(SPECIALS, words.shape)[::3].astype(np.uint32) << 16
        words[1::5] = rng.integers(0, 1 << 32, words.shape)[1::5]


@dataclass
class Result:
    cycles: int
    faults: list[tuple[int, int, int]]  # code, pc, address
    rows: list[int]  # cycles in which activations entered the array
    reads: list[int]  # grants of activations
    loads: list[int]  # grants of weights
    writes: list[int]  # cycles of writes
    signals: list[Traffic] = field(default_factory=list)
    commands: list[int] = field(default_factory=list)  # cycles in which they were accepted


class MatrixBench:
    """The unit with both memories, their contents taken from a model's state and left in ``accumulator``."""

    def __init__(self, config: ChipConfig, seed: int = 0, *, extreme: bool = False, floats: str = "") -> None:
        self.config = config
        self.state = LocalState(config, ModelMemory(64, config.addr_bits))
        rng = np.random.default_rng(seed)
        scratchpad = rng.integers(0, 256, self.state.scratchpad.shape)
        if extreme:
            scratchpad = rng.choice([0x80, 0x7F, 0x80], self.state.scratchpad.shape)
        self.state.scratchpad[:] = scratchpad
        self.state.accumulator[:] = rng.integers(0, 256, self.state.accumulator.shape)
        if floats:
            fill_with_floats(self.state, rng, floats)
        self.accumulator = self.state.accumulator.copy()
        self.bench = UnitBench(compiled(MatrixUnit, config), seed=seed, timeout=8_000)
        self.dut = self.bench.dut
        self.result = Result(0, self.bench.faults, [], [], [], [])

    def model(self, program: Program) -> tuple[int, int, int] | None:
        """Executes on the model up to the first fault."""
        for command in program.commands:
            try:
                execute(self.state, Unit.MATRIX, command)
            except FaultError as fault:
                return int(fault.code), fault.pc, fault.address & 0xFFFFFFFF
        return None

    def play_memories(self, *, weights_denied: float = 0.0, activations_denied: float = 0.0) -> None:
        dut, result = self.dut, self.result
        rng = random.Random(self.bench.rng.random())
        reads = [
            (dut.activations, self.state.scratchpad, activations_denied, result.reads),
            (dut.weights, self.state.scratchpad, weights_denied, result.loads),
            (dut.accumulate_read, self.accumulator, 0.0, []),
        ]
        write = dut.accumulate_write
        previous: list[int | None] = [None] * len(reads)

        async def memories(ctx: Any) -> None:
            ctx.set(write.ready, 1)
            accept = Pins(*(port.ready for port, *_ in reads))
            answer = Pins(*(port.data for port, *_ in reads))
            watched = [x for port, *_ in reads for x in (port.valid, port.row)]
            watched += [write.valid, write.row, write.data, write.enable, dut.rows, dut.busy]
            edges = aiter(ctx.tick().sample(*watched))
            cycle = 0
            while True:
                ready = [rng.random() >= denied for _, _, denied, _ in reads]
                accept.set(ctx, *ready)
                _, _, *sampled = await anext(edges)
                data = []
                for k, (_, memory, _, log) in enumerate(reads):
                    valid, row = sampled[2 * k : 2 * k + 2]
                    bits = 8 * memory.shape[1]
                    noise = 0 if previous[k] is not None else rng.getrandbits(bits)
                    if memory is self.accumulator and not self.config.has(ElementType.BF16):
                        noise = 0
                    data.append(noise if previous[k] is None else previous[k])
                    previous[k] = int.from_bytes(memory[row].tobytes(), "little") if valid and ready[k] else None
                    if valid and ready[k]:
                        log.append(cycle)
                answer.set(ctx, *data)
                valid, row, value, enable, entering, busy = sampled[2 * len(reads) :]
                if valid:
                    assert enable == (1 << len(write.enable)) - 1
                    self.accumulator[row] = np.frombuffer(
                        value.to_bytes(self.config.accumulator_row_bytes, "little"), np.uint8
                    )
                    result.writes.append(cycle)
                if entering:
                    result.rows.append(cycle)
                if busy:
                    result.cycles = cycle
                cycle += 1

        self.bench.add(memories)

    def run(
        self,
        program: Program,
        *,
        idle: float = 0,
        pause: float = 0,
        denied: float = 0,
        stall: float = 0,
        gaps: Mapping[int, int] | None = None,
    ) -> Result:
        """Sends all, with ``gaps`` of so many cycles in front of some commands, and compares the signals; memories and
        faults are the caller's to compare."""
        self.play_memories(weights_denied=denied, activations_denied=stall)
        items: list[dict[str, int] | None] = []
        for at, payload in enumerate(program.payloads()):
            items += [*[None] * (gaps or {}).get(at, 0), payload]
        sent = self.bench.send(self.dut.command, items, idle=idle)
        count_commands(self.config, program)
        waits = {"commands wait": idle or pause, "weights wait": denied, "activations wait": stall}
        for kind in [kind for kind, rate in waits.items() if rate] or ["full speed"]:
            COVERAGE.hit("streams", kind)
        expected = [program.signals(k) for k in range(2)]
        got = [self.bench.receive(self.dut.signal[k], len(expected[k]), pause=pause) for k in range(2)]
        self.bench.run()
        # SETs complete between loads in no fixed order, and signal nothing.
        assert [int(s) for s in got[0].items if int(s)] == [s for s in expected[0] if s]
        assert [int(s) for s in got[1].items] == expected[1]
        for code, *_ in self.result.faults:
            COVERAGE.hit("fault", FaultCode(code).name)
        self.result.signals, self.result.commands = got, sent.cycles
        return self.result

    def check(self, program: Program, *, gaps: Mapping[int, int] | None = None, **options: float) -> Result:
        """The whole program must run without fault and leave what the model leaves."""
        assert self.model(program) is None
        result = self.run(program, gaps=gaps, **options)
        assert not result.faults
        assert (self.accumulator == self.state.accumulator).all()
        lengths = [c.c for c in program.commands if c.op is Op.MATMUL]
        assert len(result.rows) == len(result.reads) == sum(lengths)
        for rows, signalled in zip(accumulate(lengths), result.signals[1].cycles, strict=True):
            assert not rows or signalled > result.writes[rows - 1], "signalled before the last row is written"
        return result
