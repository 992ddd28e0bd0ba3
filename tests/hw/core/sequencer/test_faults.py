"""Every way a block can stop early: the exact record, and the next block runs as if nothing had been."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from sley.abi.config import preset
from sley.abi.faults import FaultCode, Unit, UnitState
from sley.abi.instructions import FORMATS, LOOP_DEPTH, SEMAPHORE_MAX, Op, encode
from sley.abi.parameters import Param
from sley.hw.testing.coverage import Coverage
from sley.hw.testing.sequencer.bench import SequencerBench, UnitFault
from sley.hw.testing.sequencer.block import Block, Command
from sley.hw.testing.sequencer.reference import interpret

NANO = preset("nano")
OWN = ["BUS_ERROR", "BAD_ADDRESS", "ILLEGAL_INSTRUCTION", "PC_OUT_OF_RANGE", "LOOP_OVERFLOW", "BRANCH_OUT_OF_LOOP"]
OWN += ["SEMAPHORE_LEFTOVER", "WATCHDOG", "ABORTED"]
OF_UNITS = [Unit.LOAD, Unit.STORE, Unit.MATRIX, Unit.VECTOR]
COVERAGE = Coverage(
    "sequencer's faults",
    {
        "block": ["NONE", *OWN],
        "unit": [unit.name for unit in OF_UNITS],
        "next block after": ["NONE", *OWN, *(unit.name for unit in OF_UNITS)],
    },
)
END = encode(Op.END)
NOP = encode(Op.ADD)
UNIT = encode(Op.LOAD, ra=8, rb=1)
JUMP = {"ra": 0, "rb": 0}
SEQUENCER = Unit.SEQUENCER


def loop(count: int, target: int) -> int:
    return encode(Op.LOOP, use_imm=1, imm=count, target=target)


def jump(target: int) -> int:
    return encode(Op.BEQ, target=target)


def low(word: int) -> int:
    return word & 0xFFFFFFFF


def _reserved_bits() -> dict[str, list[int]]:
    rng = random.Random(1)
    programs = {}
    for op, form in FORMATS.items():
        bit = rng.choice([bit for bit in range(128) if not form.layout.mask >> bit & 1])
        programs[f"{op.name} bit {bit}"] = [NOP, encode(op) | 1 << bit, END]
    return programs


ILLEGAL = {
    "zeros": [NOP, 0, END],
    "ones": [NOP, (1 << 128) - 1, END],
    **{f"op {op:#x}": [NOP, op, END] for op in (0x03, 0x1A, 0x24, 0x29, 0x31, 0x81)},
    **{f"SET unit {u}": [NOP, encode(Op.SET, unit=u, param=Param.CHUNKS), END] for u in (0, 5, 6, 7)},
    **_reserved_bits(),
    **{f"{op.name} by_list, without gather": [NOP, encode(op, by_list=1), END] for op in (Op.LOAD, Op.STORE)},
}

LEVELS = [loop(2, 2 * LOOP_DEPTH + 3 - k) for k in range(LOOP_DEPTH)]
CONTROL = {
    # name: program, code, pc, address
    "falls off the end": ([NOP, UNIT], FaultCode.PC_OUT_OF_RANGE, 2, 2),
    "no program": ([], FaultCode.PC_OUT_OF_RANGE, 0, 0),
    "branch to the end": ([NOP, jump(3), END], FaultCode.PC_OUT_OF_RANGE, 1, 3),
    "branch far out": ([NOP, jump(0xFFFF), END], FaultCode.PC_OUT_OF_RANGE, 1, 0xFFFF),
    "branch far out of a loop": ([loop(1, 2), jump(4), NOP, END], FaultCode.PC_OUT_OF_RANGE, 1, 4),
    "branch not taken": ([NOP, encode(Op.BNE, target=0xFFFF), END], FaultCode.NONE, 2, 0),
    "loop ends at itself": ([NOP, loop(1, 1), END], FaultCode.PC_OUT_OF_RANGE, 1, 1),
    "loop ends before itself": ([NOP, NOP, loop(0, 1), END], FaultCode.PC_OUT_OF_RANGE, 2, 1),
    "loop ends behind the program": ([loop(1, 3), NOP, END], FaultCode.PC_OUT_OF_RANGE, 0, 3),
    "loop ends far out": ([loop(1, 0xFFFF), NOP, END], FaultCode.PC_OUT_OF_RANGE, 0, 0xFFFF),
    "loop skipped to nowhere": ([loop(0, 2), NOP, NOP], FaultCode.PC_OUT_OF_RANGE, 0, 2),
    "loop skipped to the end": ([loop(0, 1), 0, END], FaultCode.NONE, 2, 0),
    "deepest nest": ([*LEVELS, UNIT, NOP, NOP, NOP, NOP, NOP, NOP, NOP, END], FaultCode.NONE, 12, 0),
    "too deep": ([*LEVELS, loop(1, 5), UNIT, NOP, NOP, NOP, NOP, NOP, NOP, END], FaultCode.LOOP_OVERFLOW, 4, 5),
    "too deep but skipped": ([*LEVELS, loop(0, 5), 0, NOP, NOP, NOP, NOP, NOP, NOP, END], FaultCode.NONE, 12, 0),
    "branch behind the loop": ([loop(3, 2), jump(3), NOP, END], FaultCode.BRANCH_OUT_OF_LOOP, 1, 3),
    "branch to the loop": ([loop(3, 2), jump(0), NOP, END], FaultCode.BRANCH_OUT_OF_LOOP, 1, 0),
    "branch to the first": (
        [
            loop(2, 4),
            UNIT,
            encode(Op.ADD, rd=9, ra=9, use_imm=1, imm=1),
            encode(Op.BLT, ra=9, rb=1, target=1),
            NOP,
            END,
        ],
        FaultCode.NONE,
        5,
        0,
    ),
    "branch to the last": ([loop(3, 3), jump(3), 0, UNIT, END], FaultCode.NONE, 4, 0),
    "branch behind the loop, later": ([loop(3, 2), NOP, NOP, jump(5), 0, END], FaultCode.NONE, 5, 0),
    "branch out of the inner loop": (
        [loop(2, 4), loop(2, 3), jump(4), NOP, NOP, END],
        FaultCode.BRANCH_OUT_OF_LOOP,
        2,
        4,
    ),
    "branch at the end": ([loop(2, 2), NOP, jump(1), END], FaultCode.ILLEGAL_INSTRUCTION, 2, low(jump(1))),
    "branch at the end, not taken": (
        [loop(2, 1), encode(Op.BNE, target=1), END],
        FaultCode.ILLEGAL_INSTRUCTION,
        1,
        low(encode(Op.BNE, target=1)),
    ),
    "loop at the end": ([loop(2, 1), loop(2, 2), NOP, END], FaultCode.ILLEGAL_INSTRUCTION, 1, low(loop(2, 2))),
    "END at the end": ([loop(2, 1), END], FaultCode.ILLEGAL_INSTRUCTION, 1, low(END)),
    "END in a loop": ([loop(2, 2), END, NOP], FaultCode.NONE, 1, 0),
    "loops with one end": ([loop(2, 2), loop(2, 2), NOP, END], FaultCode.BRANCH_OUT_OF_LOOP, 1, 2),
    "loop across an end": ([loop(2, 2), loop(0, 3), NOP, NOP, END], FaultCode.BRANCH_OUT_OF_LOOP, 1, 3),
    "illegal at the end": ([loop(2, 1), 0x77, END], FaultCode.ILLEGAL_INSTRUCTION, 1, 0x77),
}

GOOD = [encode(Op.STORE, ra=8, rb=9, rc=1), encode(Op.STORE, ra=10, rb=11, rc=31), END]


def ended(blocks: Sequence[Block]) -> None:
    """How blocks that ran one after another ended, and after what."""
    before = None
    for block in blocks:
        assert block.code is not None
        assert block.unit is not None
        own = block.unit is SEQUENCER
        COVERAGE.hit("block" if own else "unit", block.code.name if own else block.unit.name)
        if before is not None:
            COVERAGE.hit("next block after", before)
        before = block.code.name if own else block.unit.name


def run_all(blocks: Sequence[Block], **options: Any) -> None:
    """Runs the blocks with good ones among and behind them, which must not notice."""
    chain: list[Block] = []
    good: list[Block] = []
    for first in range(0, len(blocks), 5):
        good.append(Block(GOOD, [1, 2], (3, 0, 0)))
        chain += [*blocks[first : first + 5], good[-1]]
    SequencerBench(NANO, chain, **options).run()
    ended(chain)
    expected = interpret(good[0])
    for block in good:
        assert block.status == expected.status
        assert block.commands == expected.commands


def test_illegal_instructions() -> None:
    blocks = [Block(program, [9]) for program in ILLEGAL.values()]
    run_all(blocks)
    for name, block in zip(ILLEGAL, blocks, strict=True):
        assert block.status == (FaultCode.ILLEGAL_INSTRUCTION, SEQUENCER, 1, low(block.program[1])), name


@pytest.mark.parametrize(("idle", "pause"), [(0, 0), (0.3, 0.3)])
def test_control(idle: float, pause: float) -> None:
    blocks = [Block(program, [9]) for program, *_ in CONTROL.values()]
    run_all(blocks, idle=idle, pause=pause, work=4)
    for (name, (_, *expected)), block in zip(CONTROL.items(), blocks, strict=True):
        assert block.status == (expected[0], SEQUENCER, *expected[1:]), name
        reference = interpret(block)
        assert (name, reference.status, reference.commands) == (name, block.status, block.commands)


def test_semaphores_left_over() -> None:
    masks = [1, 0x8000, 0xA5A5, 0xFFFF]
    blocks = [Block([NOP, encode(Op.SYNC, signal=mask), encode(Op.SYNC, signal=mask), END]) for mask in masks]
    balanced = Block([encode(Op.SYNC, signal=0xFF), encode(Op.SYNC, wait=0xFF), END])
    run_all([*blocks, balanced])
    for mask, block in zip(masks, blocks, strict=True):
        assert block.status == (FaultCode.SEMAPHORE_LEFTOVER, SEQUENCER, 3, mask)
    assert balanced.code is FaultCode.NONE


@pytest.mark.parametrize("pause", [0, 0.4])
def test_bus_error(pause: float) -> None:
    waits = [encode(Op.SYNC, wait=1)] * 15 + [END]
    early = [END, *[NOP] * 15]  # ends before the last ones are here
    cases = []
    for k, (program, offset) in enumerate([(p, o) for p in (waits, early) for o in (0, 15, 0x100, 0x1FF)]):
        where = 0x2000 + 0x400 * k
        block = Block(program, range(7), args_address=where, program_address=where + 0x100)
        cases.append((block, where + offset, where + (offset & 0x100)))
    bad = {wrong for _, wrong, _ in cases}
    run_all([block for block, *_ in cases], bad=bad, pause=pause, idle=pause)
    for block, _, address in cases:
        assert block.status == (FaultCode.BUS_ERROR, SEQUENCER, 0, address)


def test_bad_address() -> None:
    top = 1 << 20
    cases = [
        ({"program_address": top - 16}, FaultCode.BAD_ADDRESS, top - 16),
        ({"args_address": top - 24}, FaultCode.BAD_ADDRESS, top - 24),
        ({"args_address": 0xFFFFFFFC}, FaultCode.BAD_ADDRESS, 0xFFFFFFFC),
        ({"program_address": 0xFFFFFFF0, "args_address": top}, FaultCode.BAD_ADDRESS, top),
        ({"program_address": top - 32, "args_address": top - 60}, FaultCode.NONE, 0),
    ]
    blocks = [Block([UNIT, END], range(7), **where) for where, _, _ in cases]  # type: ignore[arg-type]
    bench = SequencerBench(NANO.replace(addr_bits=20), blocks)
    bench.run()
    ended(blocks)
    for block, (_, code, address) in zip(blocks, cases, strict=True):
        assert block.status == (code, SEQUENCER, block.pc if code is FaultCode.NONE else 0, address)
        assert bool(block.commands[Unit.LOAD]) == (code is FaultCode.NONE)
    full = Block([UNIT, END], [5], program_address=(1 << 32) - 32)
    SequencerBench(NANO, [full]).run()
    assert full.code is FaultCode.NONE


OPS = {Unit.LOAD: Op.LOAD, Unit.STORE: Op.STORE, Unit.MATRIX: Op.WEIGHTS, Unit.VECTOR: Op.VROW}


def test_unit_fault() -> None:
    """The sequencer may be anywhere; it goes on to hand out commands until it sees the fault."""
    faulty = 0x8000
    places = {"waits": [encode(Op.SYNC, wait=1)], "runs": [loop(1000, 4), UNIT, NOP]}
    blocks = {
        (unit, place): Block([NOP, encode(op, signal=faulty), *after, END])
        for unit, op in OPS.items()
        for place, after in places.items()
    }

    def fails(unit: Unit, command: Command) -> UnitFault | None:
        return (FaultCode.LOCAL_ADDRESS, 0xDEADBEEF, 20) if command["signal"] == faulty else None

    run_all(list(blocks.values()), on_command=fails, work=30)
    for (unit, place), block in blocks.items():
        assert block.status == (FaultCode.LOCAL_ADDRESS, unit, 1, 0xDEADBEEF)
        assert block.reported - block.issued[0] >= 30
        assert (len(block.issued) > 1) == (place == "runs")


@pytest.mark.parametrize("pause", [0, 0.5])
def test_unit_fault_among_commands(pause: float) -> None:
    """Idle units: the abort lasts as long as commands are on their way, and no longer."""

    def fails(unit: Unit, command: Command) -> UnitFault | None:
        return (FaultCode.LOCAL_ADDRESS, 3, command["a"]) if command["pc"] == 0 and command["a"] else None

    program = [UNIT, *[encode(Op.STORE)] * 3, END]
    blocks = [Block(program, [delay]) for delay in range(8)]
    SequencerBench(NANO, blocks, on_command=fails, pause=pause).run()
    assert blocks[0].code is FaultCode.NONE
    for block in blocks[1:]:
        assert block.status == (FaultCode.LOCAL_ADDRESS, Unit.LOAD, 0, 3)


@pytest.mark.parametrize("gap", [-2, -1, 0, 1, 2])
def test_first_unit_fault_wins(gap: int) -> None:
    """STORE is accepted two cycles after LOAD; ``gap`` is by how much its fault comes later."""

    def fails(at: Unit, command: Command) -> UnitFault | None:
        delay = {Unit.LOAD: 8, Unit.STORE: 6 + gap}
        return (FaultCode.BUS_ERROR, at, delay[at]) if at in delay and command["pc"] < 2 and command["c"] else None

    program = [encode(Op.LOAD, rc=8), encode(Op.STORE, rc=8), loop(30, 4), NOP, NOP, END]
    block = Block(program, [1], tag=1)
    bench = SequencerBench(NANO, [Block(program, [0], tag=1), block], on_command=fails)
    bench.run()
    first = Unit.STORE if gap < 0 else Unit.LOAD
    assert block.status == (FaultCode.BUS_ERROR, first, 0 if first is Unit.LOAD else 1, first)


@pytest.mark.parametrize("delay", [1, 2, 3])
def test_own_fault_against_unit_fault(delay: int) -> None:
    """The faulty instruction behind the command executes one cycle after the acceptance of the command; that it is a
    branch that is taken is known one cycle later. Of faults in one cycle that of the sequencer counts."""

    def fails(unit: Unit, command: Command) -> UnitFault | None:
        return (FaultCode.BUS_ERROR, 7, delay) if command["a"] else None

    program = [UNIT, encode(Op.BNE, ra=8, target=0x77), END]
    good, bad = Block(program, [0], tag=1), Block(program, [1], tag=1)
    SequencerBench(NANO, [good, bad], on_command=fails).run()
    assert good.code is FaultCode.NONE
    own = (FaultCode.PC_OUT_OF_RANGE, SEQUENCER, 1, 0x77)
    assert bad.status == (own if delay > 1 else (FaultCode.BUS_ERROR, Unit.LOAD, 0, 7))


def test_end_waits_for_the_units() -> None:
    block = Block([UNIT, encode(Op.STORE), END], [1])
    bench = SequencerBench(NANO, [block], work=100)
    bench.run()
    assert block.code is FaultCode.NONE
    assert block.reported - block.issued[-1] == 102


def test_sync_with_others() -> None:
    """The sequencer waits for semaphores that others give, and for room in full ones; its state says so."""
    program = [
        UNIT,
        encode(Op.SYNC, wait=0x0006),
        UNIT,
        loop(SEMAPHORE_MAX, 5),
        NOP,
        encode(Op.SYNC, signal=0x0008),
        encode(Op.SYNC, signal=0x0018),
        UNIT,
        loop(SEMAPHORE_MAX + 1, 10),
        NOP,
        encode(Op.SYNC, wait=0x0008),
        END,
    ]
    block = Block(program)
    bench = SequencerBench(NANO, [block], timeout=2000)
    semaphores = bench.harness.semaphores
    other_wait, other_signal = semaphores.wait[1], semaphores.signal[1]
    dut = bench.dut

    async def other(ctx: Any) -> None:
        async def settle(state: UnitState, pc: int) -> None:
            while (ctx.get(dut.state), ctx.get(dut.pc)) != (state, pc):
                await ctx.tick()
            for _ in range(20):
                await ctx.tick()
                assert (ctx.get(dut.state), ctx.get(dut.pc)) == (state, pc)

        async def exchange(port: Any, mask: int) -> None:
            ctx.set(port.valid, 1)
            ctx.set(port.payload, mask)
            while not (await ctx.tick().sample(port.ready))[-1]:
                pass
            ctx.set(port.valid, 0)

        assert ctx.get(dut.state) == UnitState.IDLE
        await settle(UnitState.WAIT, 1)
        await exchange(other_signal, 0x0002)
        await settle(UnitState.WAIT, 1)
        await exchange(other_signal, 0x0004)
        await settle(UnitState.SIGNAL, 6)
        assert len(block.issued) == 2
        await exchange(other_wait, 0x0008)
        await exchange(other_wait, 0x0010)
        # 15 are there and the loop takes 16.
        while (ctx.get(dut.pc), ctx.get(dut.state), ctx.get(semaphores.values)[3]) != (10, UnitState.WAIT, 0):
            await ctx.tick()
        await settle(UnitState.WAIT, 10)
        await exchange(other_signal, 0x0008)
        while ctx.get(dut.running):
            await ctx.tick()
        assert ctx.get(dut.state) == UnitState.IDLE

    bench.bench.add(other, wait=True)
    bench.run()
    assert block.status == (FaultCode.NONE, SEQUENCER, 11, 0)
    assert len(block.issued) == 3


@pytest.mark.parametrize("stuck", ["wait", "signal"])
def test_abort_of_a_sync(stuck: str) -> None:
    fill = [loop(SEMAPHORE_MAX, 2), NOP, encode(Op.SYNC, signal=1)]
    middle = [encode(Op.SYNC, wait=1)] if stuck == "wait" else [*fill, encode(Op.SYNC, signal=1)]
    block = Block([*middle, END])
    if stuck == "signal":
        block.program.insert(3, UNIT)
    else:
        block.program.insert(0, UNIT)

    def fails(unit: Unit, command: Command) -> UnitFault | None:
        return (FaultCode.BAD_PARAMETER, 1, 30) if unit is Unit.LOAD else None

    run_all([block], on_command=fails)
    assert block.status == (FaultCode.BAD_PARAMETER, Unit.LOAD, 3 if stuck == "signal" else 0, 1)


STUCK = {
    # name: program, pc at which it hangs
    "wait": ([NOP, UNIT, encode(Op.SYNC, wait=8), END], 2),
    "branch": ([NOP, jump(1), END], 1),
    "signal": ([loop(SEMAPHORE_MAX, 2), NOP, encode(Op.SYNC, signal=1), encode(Op.SYNC, signal=1), END], 3),
}


@pytest.mark.parametrize("name", STUCK)
def test_watchdog(name: str) -> None:
    """So many cycles after the launch message, at the instruction that hangs; the next block is not affected."""
    program, pc = STUCK[name]
    blocks = [Block(program, watchdog=limit) for limit in (100, 101, 357)]
    run_all(blocks)
    took = [block.reported - block.launched for block in blocks]
    assert [t - took[0] for t in took] == [0, 1, 257]
    assert 100 < took[0] < 110
    for block in blocks:
        assert block.status == (FaultCode.WATCHDOG, SEQUENCER, pc, 0)


def test_watchdog_of_a_block_that_ends() -> None:
    blocks = [Block([NOP, UNIT, END], watchdog=limit) for limit in (0, 60, 200)]
    run_all(blocks, work=40)
    for block in blocks:
        assert block.status == (FaultCode.NONE, SEQUENCER, 2, 0)


@pytest.mark.parametrize("at", [0, 5, 9, 12, 30, 90, 200])
def test_cancel(at: int) -> None:
    """Before the launch message, in its middle, behind it; a block of another queue does not notice."""
    block = Block([NOP, UNIT, encode(Op.SYNC, wait=8), END], queue=1)
    before, after = Block(GOOD, [1, 2], (3, 0, 0)), Block(GOOD, [1, 2], (3, 0, 0))
    bench = SequencerBench(NANO, [before, block, after], work=3)

    async def cancel(ctx: Any) -> None:
        while not before.reported and at:
            await ctx.tick()
        await ctx.tick().repeat(at + 1)
        ctx.set(bench.dut.cancel, 0b10)
        while not block.reported:  # where it waited, for whoever looks
            assert at < 90 or ctx.get(bench.dut.pc) == 2
            await ctx.tick()

    bench.bench.add(cancel)
    bench.run()
    ended([before, block, after])
    assert (block.code, block.unit, block.address) == (FaultCode.ABORTED, SEQUENCER, 0)
    assert block.pc == 2 or at < 90
    assert before.status == after.status == interpret(before).status


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)
