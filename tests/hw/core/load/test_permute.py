"""Loads that interleave or transpose rows: their time, their faults, and what comes around them."""

import pytest
from dma_bench import CONFIGS, EDGE, MEMORY, NANO, FaultCase, check, check_faults

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.abi.instructions import INTERLEAVE_CHUNKS, TRANSPOSE_CHUNKS, Op
from sley.abi.parameters import Param
from sley.abi.timing import TRANSPOSER_SMALL
from sley.hw.testing.dma.program import Program

EDGE_SLOW = pytest.mark.parametrize("config", [NANO, pytest.param(EDGE, marks=pytest.mark.slow)], ids=["nano", "edge"])


def kinds(config: ChipConfig) -> list[dict[str, int]]:
    """The ways to permute that a chip has."""
    found = [{"interleave": 0, "transpose": 1}]
    if config.lane_elements() == 2:
        found += [{"interleave": 1, "transpose": 0}, {"interleave": 1, "transpose": 1}]
    return found


@CONFIGS
def test_permuted_rows_take_a_cycle_each(config: ChipConfig) -> None:
    """From unit to unit and from load to load; a SET between takes one too. The first row comes a unit later."""
    for flags in kinds(config):
        pair, block = 1 + flags["interleave"], config.array if flags["transpose"] else 1
        chunks, units, loads = 2, 3, 2
        program = Program(Unit.LOAD)
        program.sets(
            run_bytes=config.row_bytes * chunks,
            chunks=chunks,
            mem_stride=config.row_bytes * chunks,
            chunk_stride=block,
            local_stride=0,
        )
        for _ in range(loads):
            program.sets(mem_stride2=3)
            program.move(0, 0, units * pair * block, **flags)
        bench, commands, signals = check(config, program, latency=(3, 3))
        unit = pair * block * chunks
        sets_between = loads - 1
        assert len(bench.grants) == loads * units * unit
        assert bench.grants[-1] - bench.grants[0] == loads * units * unit - 1 + sets_between
        first_load = next(cycle for cycle, c in zip(commands.cycles, program.commands, strict=True) if c.op is Op.LOAD)
        both = pair > 1 and block > 1
        plain = 2 + 3 + 1  # command to run, run to beat, beat to write
        permuting = unit + (1 if block <= TRANSPOSER_SMALL else 2) + both * (pair * chunks + 1)
        assert bench.grants[0] - first_load == plain + permuting
        assert signals.cycles[-1] - bench.grants[-1] == 1


@CONFIGS
def test_permuting_loads_of_different_width_follow_one_another(config: ChipConfig) -> None:
    for flags in kinds(config):
        program = Program(Unit.LOAD)
        for chunks in (4, 1, 3, 2):
            program.sets(run_bytes=config.row_bytes * chunks, chunks=chunks, mem_stride=9, chunk_stride=config.array)
            program.move(chunks, chunks, 2 * config.array, **flags)
        check(config, program)


@EDGE_SLOW
def test_other_commands_come_when_a_permuting_load_ends(config: ChipConfig) -> None:
    """A SET, which passes through it or past it, and right behind a load that waits for nothing: in every cycle."""
    for flags in kinds(config):
        program, gaps = Program(Unit.LOAD), {}
        for gap in range(12 + 4 * config.array):
            gaps[len(program.commands)] = 12
            program.set(Param.RUN_BYTES, config.row_bytes)
            program.move(gap, 0, 1, **flags)
            gaps[len(program.commands)] = gap
            program.set(Param.RUN_BYTES, 0)
            program.move(0, 2 * config.array + 2 * gap, 2, signal=1)
        check(config, program, gaps=gaps)


@EDGE_SLOW
def test_permuting_faults(config: ChipConfig) -> None:
    """Each kind of fault, with the units before it complete; the loads around it run, also those in flight."""
    bus, n, rows = config.row_bytes, config.array, config.scratchpad_rows
    limit = 1 << config.addr_bits
    for flags in kinds(config):
        pair, block = 1 + flags["interleave"], n if flags["transpose"] else 1
        unit = pair * block
        most = TRANSPOSE_CHUNKS // pair if flags["transpose"] else INTERLEAVE_CHUNKS
        cases: list[FaultCase] = [
            ({}, (0, 0, 0x10000), FaultCode.BAD_PARAMETER, 0x10000),
            ({"run_bytes": bus + 1}, (0, 0, 1), FaultCode.BAD_PARAMETER, bus + 1),
            ({"chunks": most + 1}, (0, 0, 1), FaultCode.BAD_PARAMETER, most + 1),
            ({"local_stride": -1}, (0, 1, 3 * unit), FaultCode.LOCAL_ADDRESS, -1),
            ({"local_stride": block}, (0, rows - 2 * block, 9 * unit), FaultCode.LOCAL_ADDRESS, rows),
            ({"run_bytes": 0, "local_stride": 1}, (0, rows - block, 2 * unit), FaultCode.LOCAL_ADDRESS, rows),
            ({"mem_stride": bus}, (limit - 3 * unit * bus, 0, 9 * unit), FaultCode.BUS_ERROR, limit - 3 * unit * bus),
            ({"mem_stride": bus}, (MEMORY - unit * bus, 0, 9 * unit), FaultCode.BUS_ERROR, MEMORY),
            ({"mem_stride": 1 - bus}, (bus - 1, 0, 5), FaultCode.BAD_ADDRESS, 1 - bus),
            ({"mem_stride": 1}, (limit - bus - 1, 0, 3 * unit), FaultCode.BUS_ERROR, limit - bus - 1),
        ]
        check_faults(
            config,
            Unit.LOAD,
            cases,
            base={"run_bytes": bus, "chunk_stride": 0},
            good={"mem_stride": 1, "local_stride": 2},
            before=(11, 3, unit + 1),
            behind=[((37, 1, unit), flags), ((37, 1, 3), {})],
            flags=flags,
        )


@CONFIGS
def test_an_error_right_behind_a_complete_unit(config: ChipConfig) -> None:
    """Nothing else is here, and beats come without a gap: the units before the error are written all the same."""
    for flags in kinds(config):
        unit = (1 + flags["interleave"]) * (config.array if flags["transpose"] else 1)
        program, gaps = Program(Unit.LOAD), {}
        program.sets(run_bytes=config.row_bytes, mem_stride=config.row_bytes, chunk_stride=0, local_stride=config.array)
        for units in range(3):
            gaps[len(program.commands)] = 8 * unit + 20
            row = 4 * config.array * units
            program.move(MEMORY - units * unit * config.row_bytes, row, 4 * unit, signal=1, **flags)
        bench, _, _ = check(config, program, gaps=gaps)
        assert len(bench.faults) == 3


@CONFIGS
def test_right_behind_a_plain_load_with_an_error(config: ChipConfig) -> None:
    """The error is in the only beat: the load completes a cycle later, and the one behind it begins with that."""
    for flags in kinds(config):
        program = Program(Unit.LOAD)
        program.sets(run_bytes=config.row_bytes, chunk_stride=config.array)
        for k in range(3):
            program.move(MEMORY, 0, 1, signal=1)
            program.move(16 * k, 4 * config.array, 1, signal=2, **flags)
        bench, _, _ = check(config, program)
        assert [code for code, _, _ in bench.faults] == [FaultCode.BUS_ERROR] * 3
