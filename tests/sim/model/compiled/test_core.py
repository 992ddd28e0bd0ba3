"""The compiled core against the one of numpy: random instructions, most of them legal, in blocks of random programs."""

import random
from dataclasses import dataclass

import numpy as np
import pytest
from chain_commands import chain_flags, random_chain

from sley.abi.asm import assemble, words_to_bytes
from sley.abi.config import PRESETS, ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.abi.functions.table import Function
from sley.abi.instructions import FORMATS, Op, encode
from sley.abi.pages import AddressMode
from sley.abi.parameters import Param, unit_params
from sley.abi.vector.chains import CHAIN_PARAM, WORDS_KEPT
from sley.sim.model.chip import ModelChip
from sley.sim.model.core import Block, CoreModel

CHAINS = PRESETS["nano"].replace(
    name="chains", operand_types=("int8", "bf16"), vector_chains=3, vector_functions=tuple(Function), gather=True
)
CONFIGS = {
    "nano": PRESETS["nano"],
    "chains": CHAINS,
    "edge": PRESETS["edge"],
    "wide": CHAINS.replace(array=16, vector_lanes=16),
}
MEMORY, DATA, PROGRAM, RESULT = 1 << 16, 0x1000, 0x6000, 0x8000
BLOCKS = 100


@dataclass
class Pair:
    """Both cores, each on a chip of its own with the same contents of memory."""

    chips: list[ModelChip]

    @property
    def cores(self) -> list[CoreModel]:
        return [chip.command.cores[0] for chip in self.chips]

    def run(self, words: list[int], steps: int = 20_000) -> list[object]:
        """Runs a program of both to its end and returns what each came to, without what it left in memory."""
        for chip in self.chips:
            program = np.frombuffer(words_to_bytes(words), np.uint8)
            chip.memory.data[PROGRAM : PROGRAM + len(program)] = program
            core = chip.command.cores[0]
            core.start(Block(0, PROGRAM, len(words), 0, (DATA, 17), 2, (0, 0, 0), (1, 1, 1), 0))
            done = 0
            while core.block is not None and done < steps:
                moved = core.step()
                done += moved or steps
        return [self._state(core) for core in self.cores]

    @staticmethod
    def _state(core: CoreModel) -> object:
        fault = core.fault
        if core.block is not None:  # it waits for ever, or goes round
            core.stop(None)
            return "no end"
        if fault is not None:
            return fault.code, fault.unit, fault.pc, fault.address
        return core.retired, {group: list(values) for group, values in core.counts.values.items()}


def pair(config: ChipConfig, seed: int) -> Pair:
    data = np.random.default_rng(seed).integers(0, 256, MEMORY, np.uint8)
    chips = [ModelChip(config, MEMORY, compiled) for compiled in (False, True)]
    for chip in chips:
        chip.memory.data[:] = data
        chip.spaces[0].root = chip.map["CONTEXT0.ROOT"].layout.pack(mode=AddressMode.PHYSICAL)
    return Pair(chips)


class Writer:
    """Writes random programs for a chip."""

    def __init__(self, config: ChipConfig, seed: int) -> None:
        self.config, self.rng = config, random.Random(seed)

    def program(self) -> list[int]:
        words: list[int] = []
        for register in range(10, 16):
            words.append(encode(Op.ADD, rd=register, use_imm=1, imm=self.rng.choice([0, 1, 3, 5, 17, 40, 100])))
        for _ in range(self.rng.randrange(4, 24)):
            words += self.instruction(len(words))
        return [*words, encode(Op.END)]

    def instruction(self, pc: int) -> list[int]:
        rng = self.rng
        kind = rng.random()
        if kind < 0.4:
            return [self.set()]
        if kind < 0.5:
            return self.scalar(pc)
        if self.config.vector_chains and kind < 0.6:
            return self.chained()
        op = rng.choice([Op.LOAD, Op.LOAD, Op.STORE, Op.WEIGHTS, Op.MATMUL, Op.VECTOR, Op.VROW])
        return [encode(op, **self.fields(op))]

    def fields(self, op: Op) -> dict[str, int]:
        rng, fields = self.rng, {}
        for name in FORMATS[op].flags:
            field = FORMATS[op].layout.fields[name].field
            codes = [code for code in field.enum or range(1 << field.width) if code < 1 << field.width]
            usual = FORMATS[op].defaults.get(name, 0)
            fields[name] = int(rng.choice(codes)) if rng.random() < 0.1 else usual
        for name, registers in (
            ("ra", range(10, 16)),
            ("rb", range(10, 16)),
            ("rc", range(10, 14)),
            ("rd", [0, 0, 0, 11]),
        ):
            if name in FORMATS[op].fields:
                fields[name] = rng.choice(list(registers))
        if op in (Op.LOAD, Op.STORE):
            fields["ra"] = 8
        if FORMATS[op].immediate_replaces and rng.random() < 0.5:
            fields |= {
                "use_imm": 1,
                "imm": rng.choice([0, 1, 2, 3, 4]) if rng.random() < 0.97 else rng.randrange(-2, 70_000),
            }
        if op is Op.SYNC or rng.random() < 0.02:
            fields["signal"] = 1 << rng.randrange(16)
        return fields

    def set(self) -> int:
        rng = self.rng
        unit = rng.choice([Unit.LOAD, Unit.STORE, Unit.MATRIX, Unit.VECTOR])
        if rng.random() < 0.03:
            return encode(Op.SET, param=rng.randrange(256), unit=rng.randrange(1, 5), use_imm=1, imm=rng.randrange(100))
        param, info = rng.choice(list(unit_params(unit, self.config).items()))
        value = rng.choice([0, 1, 2, 3, 5]) if param is not Param.CHUNKS else rng.choice([1, 2, 3, 8])
        if param is Param.RUN_BYTES:
            value = rng.choice([0, 1, 3, 4, self.config.row_bytes, self.config.row_bytes + 1])
        if info.signed and rng.random() < 0.1:
            value = -rng.choice([1, 2, 4])
        if info.width == 32 and unit is Unit.VECTOR:
            value = rng.randrange(-(1 << 31), 1 << 31)
        return encode(Op.SET, param=param, unit=unit, use_imm=1, imm=value)

    def scalar(self, pc: int) -> list[int]:
        rng = self.rng
        ops = [Op.ADD, Op.SUB, Op.MUL, Op.MIN, Op.MAX, Op.AND, Op.OR, Op.SHL, Op.SHR, Op.SAR, Op.SHR]
        if rng.random() < 0.2:
            return [
                encode(Op.LOOP, use_imm=1, imm=rng.randrange(4), target=pc + 1),
                encode(Op.ADD, rd=20, ra=20, rb=11),
            ]
        if rng.random() < 0.2:
            branch = rng.choice([Op.BEQ, Op.BNE, Op.BLT, Op.BGE])
            return [encode(branch, ra=rng.randrange(16), rb=rng.randrange(16), target=pc + 1 + rng.randrange(2))]
        imm = {"use_imm": 1, "imm": rng.randrange(-40, 90)} if rng.random() < 0.5 else {"rb": rng.randrange(24)}
        return [encode(rng.choice(ops), rd=rng.randrange(10, 24), ra=rng.randrange(24), **imm)]

    def chained(self) -> list[int]:
        rng, index = self.rng, self.rng.randrange(1, self.config.vector_chains + 1)
        chain = random_chain(self.config, rng)
        flags = chain_flags(self.config, rng, chain)
        words = list(chain.words())
        if rng.random() < 0.1:
            words[rng.randrange(3)] ^= 1 << rng.randrange(32)
        sets = [
            encode(
                Op.SET,
                param=CHAIN_PARAM + WORDS_KEPT * index + k,
                unit=Unit.VECTOR,
                use_imm=1,
                imm=word - (word >> 31 << 32),
            )
            for k, word in enumerate(words)
        ]
        registers = {
            "ra": rng.randrange(10, 15),
            "rb": rng.randrange(10, 15),
            "use_imm": 1,
            "imm": rng.choice([1, 3, 9, 20]),
        }
        return [*sets, encode(Op.VECTOR, chain=index, **registers, **flags)]


def show(config: ChipConfig) -> list[int]:
    """Writes both local memories out."""
    lines = ["set store.mem_stride, #0", "add r12, r0, #1"]
    place = RESULT
    for space, rows, size in (
        ("scratchpad", config.scratchpad_rows, config.row_bytes),
        ("accumulator", config.accumulator_rows, config.accumulator_row_bytes),
    ):
        lines += [
            f"add r10, r0, #{place}",
            f"set store.run_bytes, #{min(rows * size, 16384)}",
            f"store r10, r0, r12 space={space}",
        ]
        place += min(rows * size, 16384)
    return assemble("\n".join([*lines, "end"]))


@pytest.mark.parametrize("name", CONFIGS)
def test_random_programs(name: str) -> None:
    """Results, counts, the fault and its place, in blocks that follow each other in one core."""
    config = CONFIGS[name]
    chips, faults = pair(config, 5), 0
    for seed in range(BLOCKS):
        writer = Writer(config, seed)
        plain, compiled = chips.run(writer.program())
        assert compiled == plain, seed
        if (isinstance(plain, tuple) and isinstance(plain[0], FaultCode)) or plain == "no end":
            faults += 1
            chips = pair(config, seed)  # what a fault leaves behind is not defined
            continue
        plain, compiled = chips.run(show(config))
        assert compiled == plain, seed
        first, second = (chip.memory.data for chip in chips.chips)
        assert (first == second).all(), (seed, np.flatnonzero(first != second)[:8])
    assert BLOCKS // 10 < faults < BLOCKS * 9 // 10
