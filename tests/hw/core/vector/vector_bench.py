"""The vector unit beside its model, with memories that grant, delay and scramble like the real ones."""

import random
from itertools import product

import numpy as np
from vector_model import Model

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode
from sley.abi.instructions import FLAGS_LSB, FORMATS, Op, Space
from sley.abi.timing import SRAM_READ
from sley.abi.types import OPERAND_TYPES, WORD_TYPES, ElementType
from sley.abi.vector.operations import SHORT_OPS, BinaryOp
from sley.hw.core.vector.unit import VectorUnit
from sley.hw.testing.coverage import Coverage
from sley.hw.testing.pins import Pins
from sley.hw.testing.streams import compiled
from sley.hw.testing.unit import UnitBench

OUTPUTS = (*WORD_TYPES, ElementType.INT8)
COVERAGE = Coverage(
    "Vector",
    {
        "operation": [(b_op.name, t.name, out.name) for b_op in SHORT_OPS for t in WORD_TYPES for out in OUTPUTS],
        "operation to bf16": [b_op.name for b_op in SHORT_OPS],
        "A from, B from": list(product([space.name for space in Space], repeat=2)),
        "steps": list(product(["", "bias"], ["", "scale"], ["", "relu"])),
        "operand types": list(product([t.name for t in OPERAND_TYPES], repeat=2)),
        "rows": ["none", "one", "some", "more than 32"],
        "fault": ["LOCAL_ADDRESS", "BAD_PARAMETER", "ILLEGAL_INSTRUCTION"],
    },
)


def count_command(config: ChipConfig, command: dict) -> None:
    """What a VECTOR that runs to its end consists of."""
    f = FORMATS[Op.VECTOR].layout.unpack(command["flags"] << FLAGS_LSB)
    b_op, kind, out = BinaryOp(f["b_op"]), ElementType(f["dtype"]), ElementType(f["out"])
    if out == ElementType.BF16:
        COVERAGE.hit("operation to bf16", b_op.name)
    else:
        COVERAGE.hit("operation", (b_op.name, kind.name, out.name))
    COVERAGE.hit("A from, B from", (Space(f["a_space"]).name, Space(f["b_space"]).name))
    COVERAGE.hit("steps", tuple(name if f[name] else "" for name in ("bias", "scale", "relu")))
    COVERAGE.hit("operand types", (ElementType(f["a_type"]).name, ElementType(f["b_type"]).name))
    rows = command["c"]
    COVERAGE.hit("rows", "more than 32" if rows > 32 else {0: "none", 1: "one"}.get(rows, "some"))


class Bench:
    """The unit between a command stream, a signal stream and two memories, and the model beside it."""

    def __init__(self, config: ChipConfig, *, seed: int = 0, grant: float = 1.0, one_bank: bool = False) -> None:
        self.config, self.grant, self.one_bank = config, grant, one_bank
        self.rng = random.Random(seed)
        self.model = Model.random(config, np.random.default_rng(seed))
        self.scratchpad = self.model.scratchpad.copy()
        self.accumulators = self.model.accumulators.copy()
        self.bench = UnitBench(compiled(VectorUnit, config), seed=seed, timeout=20_000)
        self.dut, self.faults = self.bench.dut, self.bench.faults
        self.hold_writes = False
        for memory, names in (
            (self.scratchpad, ("scratchpad_read_a", "scratchpad_read_b", "scratchpad_write")),
            (self.accumulators, ("accumulator_read_a", "accumulator_read_b", "accumulator_write")),
        ):
            self.bench.add(self._memory(memory, *(getattr(self.dut, name) for name in names)))

    def _memory(self, memory: np.ndarray, read_a, read_b, write):
        row_bits, part_bits = memory[0].nbytes * 8, len(read_a.data)

        async def process(ctx):
            arriving = [[None] * (SRAM_READ - 1) for _ in range(2)]
            accept = Pins(read_a.ready, read_b.ready, write.ready)
            answer = Pins(read_a.data, read_b.data)
            edges = aiter(
                ctx.tick().sample(
                    *(read_a.valid, read_b.valid, write.valid),
                    *(read_a.row, read_b.row, write.row),
                    *(read_a.part, read_b.part),
                    *(write.data, write.enable),
                )
            )
            while True:
                ready = [self.rng.random() < self.grant for _ in range(3)]
                ready[2] = ready[2] and not self.hold_writes
                if self.one_bank:
                    ready[1] = ready[1] and not ctx.get(read_a.valid)
                accept.set(ctx, *ready)
                _, _, valid_a, valid_b, valid_w, row_a, row_b, row_w, part_a, part_b, data, enable = await anext(edges)
                words = []
                for granted, row, part, queue in (
                    (valid_a and ready[0], row_a, part_a, arriving[0]),
                    (valid_b and ready[1], row_b, part_b, arriving[1]),
                ):
                    whole = int.from_bytes(memory[row].tobytes(), "little")
                    queue.append(whole >> (part * part_bits) & ((1 << part_bits) - 1) if granted else None)
                    word = queue.pop(0)
                    words.append(self.rng.getrandbits(part_bits) if word is None else word)
                answer.set(ctx, *words)
                if valid_w and ready[2]:
                    granule = row_bits // 8 // len(write.enable)
                    old, new = memory[row_w].tobytes(), data.to_bytes(row_bits // 8, "little")
                    mixed = b"".join(
                        (new if enable >> g & 1 else old)[g * granule : (g + 1) * granule]
                        for g in range(len(write.enable))
                    )
                    memory[row_w] = np.frombuffer(mixed, memory.dtype)

        return process

    def run(self, commands: list[dict], *, idle: float = 0.0, pause: float = 0.0, alone: bool = False):
        """Runs the commands on both and compares. ``alone``: the one before is done when one is offered. Returns what
        passed the command and signal streams."""
        offers = commands
        if alone:
            offers = [item for c in commands for item in (c, *[None] * (60 + 2 * self.config.row_parts * c["c"]))]
        sent = self.bench.send(self.dut.command, offers, idle=idle)
        signals = self.bench.receive(self.dut.signal[0], len(commands), pause=pause)
        self.bench.run()
        for c in commands:
            self.model.execute(c)
        assert signals.items == [c["signal"] for c in commands]
        self.compare()
        faulty = {pc for _, pc, _ in self.faults}
        for code, *_ in self.faults:
            COVERAGE.hit("fault", FaultCode(code).name)
        for c in commands:
            if c["op"] is Op.VECTOR and c["pc"] not in faulty:
                count_command(self.config, c)
        return sent, signals

    def compare(self) -> None:
        assert self.faults == [tuple(map(int, fault)) for fault in self.model.faults]
        for name in ("scratchpad", "accumulators"):
            got, expected = getattr(self, name), getattr(self.model, name)
            where = np.argwhere(got != expected)
            assert not len(where), f"{name} differs at {where[:5].tolist()}"
