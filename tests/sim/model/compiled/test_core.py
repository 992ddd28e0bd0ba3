"""The compiled core against the one of numpy: random instructions, most of them legal, in blocks of random programs."""

from dataclasses import dataclass

import numpy as np
import pytest
from program_writer import Writer

from sley.abi.asm import assemble, words_to_bytes
from sley.abi.config import PRESETS, ChipConfig
from sley.abi.faults import FaultCode
from sley.abi.functions.table import Function
from sley.abi.pages import AddressMode
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
