# amaranth: UnusedElaboratable=no
"""The matrix unit on the memories of a core."""

import random
from typing import Any

import numpy as np
import pytest
from amaranth import Module
from amaranth.lib import wiring
from matrix_programs import Program, random_program

from sley.abi.config import PRESETS, ChipConfig
from sley.abi.faults import Unit
from sley.abi.timing import SRAM_READ
from sley.abi.types import ElementType
from sley.hw.core.matrix.unit import MatrixUnit
from sley.hw.core.sram.sram import BankedSram
from sley.hw.testing.streams import StreamBench
from sley.sim.model.memory import ModelMemory
from sley.sim.model.state import LocalState
from sley.sim.model.units import execute

NANO = PRESETS["nano"].replace(scratchpad_rows=64, accumulator_rows=32)
WIDE = NANO.replace(operand_types=("int8", "bf16"))
CONFIGS = pytest.mark.parametrize("config", [NANO, WIDE], ids=["nano", "wide"])


@CONFIGS
def test_with_real_memories(config: ChipConfig) -> None:
    """Weights and activations sometimes meet in a bank; results become visible before the signal."""
    state = LocalState(config, ModelMemory(64, config.addr_bits))
    state.scratchpad[:] = np.random.default_rng(1).integers(0, 256, state.scratchpad.shape)
    program = Program(NANO)
    program.weights(0)
    program.matmul(config.scratchpad_rows // 2, 0, config.accumulator_rows)  # the accumulators start unknown
    for command in random_program(
        config, random.Random(5), 5, "any" if config.has(ElementType.BF16) else "int8"
    ).commands:
        command.pc = len(program.commands)
        program.commands.append(command)
    for command in program.commands:
        execute(state, Unit.MATRIX, command)
    c = config
    m = Module()
    m.submodules.unit = unit = MatrixUnit(c)
    m.submodules.scratchpad = scratchpad = BankedSram(
        c.scratchpad_rows, 8 * c.row_bytes, c.scratchpad_banks, c.lane_elements(), (1, 1), 1
    )
    m.submodules.accumulators = accumulators = BankedSram(
        c.accumulator_rows,
        8 * c.accumulator_row_bytes,
        c.accumulator_banks,
        c.beats_per_accumulator_row,
        readers=(1, 1),
        writers=1,
        zeros=not c.has(ElementType.BF16),
    )
    wiring.connect(m, unit.activations, scratchpad.read[0])
    wiring.connect(m, unit.weights, scratchpad.read[1])
    wiring.connect(m, unit.accumulate_read, accumulators.read[0])
    wiring.connect(m, unit.accumulate_write, accumulators.write[0])
    m.watched = unit, scratchpad, accumulators
    bench = StreamBench(m, timeout=8_000)
    got = [bench.receive(unit.signal[k], len(program.signals(k))) for k in range(2)]

    async def process(ctx: Any) -> None:
        port = scratchpad.write[0]
        for row, content in enumerate(state.scratchpad):
            ctx.set(port.row, row)
            ctx.set(port.data, int.from_bytes(content.tobytes(), "little"))
            ctx.set(port.enable, -1)
            ctx.set(port.valid, 1)
            await ctx.tick()
        ctx.set(port.valid, 0)
        command = unit.command
        for payload in program.payloads():
            ctx.set(command.payload, payload)
            ctx.set(command.valid, 1)
            await ctx.tick().until(command.ready)
        ctx.set(command.valid, 0)
        while not got[1].done:
            await ctx.tick()
        reader = accumulators.read[1]
        ctx.set(reader.valid, 1)
        for row, content in enumerate(state.accumulator):
            ctx.set(reader.row, row)
            await ctx.tick().repeat(SRAM_READ)
            assert ctx.get(reader.data) == int.from_bytes(content.tobytes(), "little")

    bench.add(process, wait=True)
    bench.run()
