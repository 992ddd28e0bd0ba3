"""The sequencer against an interpreter of the instruction set, and its cycle counts."""

import random

import pytest

from sley.abi.config import ChipConfig, preset
from sley.abi.faults import FaultCode, Unit
from sley.abi.instructions import MAX_ARGS, REGISTERS, Op, encode
from sley.abi.packets import INLINE_ARGS
from sley.abi.parameters import Param
from sley.hw.core.sequencer import fetch
from sley.hw.testing.sequencer.bench import SequencerBench
from sley.hw.testing.sequencer.block import Block
from sley.hw.testing.sequencer.reference import interpret

NANO = preset("nano")
WIDTHS = [
    NANO,
    pytest.param(NANO.replace(array=8), marks=pytest.mark.slow),  # between one word and the size of an instruction
    preset("edge"),
    preset("base"),
]
"""Buses of 4, 8, 16 and 32 bytes."""
END = encode(Op.END)
UNIT = encode(Op.LOAD, ra=8)
ALU = [Op.ADD, Op.SUB, Op.MUL, Op.MIN, Op.MAX, Op.AND, Op.OR, Op.SHL, Op.SHR, Op.SAR]
BRANCHES = [Op.BEQ, Op.BNE, Op.BLT, Op.BGE]
EXTREMES = [0, 1, 2, 31, 32, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFF, 0x10000]


class Generator:
    """Random programs that end: loops, branches forward, counted branches back, and a dump of all registers."""

    def __init__(self, seed: int, size: int) -> None:
        self.rng = random.Random(seed)
        self.words: list[int] = []
        self.size = size
        self._body(0)
        for register in range(0, REGISTERS, 3):
            chosen = {n: min(register + k, 31) for k, n in enumerate(("ra", "rb", "rc"))}
            self.words.append(encode(self.rng.choice([Op.LOAD, Op.STORE, Op.MATMUL, Op.VECTOR]), **chosen))
        self.words.append(END)

    def _register(self, low: int = 0) -> int:
        return self.rng.randrange(low, 24)  # the others count loops

    def _simple(self) -> None:
        rng = self.rng
        registers = {"rd": self._register(), "ra": self._register()}
        masks = {"wait": rng.getrandbits(16), "signal": rng.getrandbits(16)}
        kind = rng.random()
        if kind < 0.5:
            op = rng.choice(ALU)
            if rng.random() < 0.5:
                imm = rng.choice([*EXTREMES, rng.getrandbits(32)])
                self.words.append(encode(op, **registers, use_imm=1, imm=imm - (imm >> 31 << 32)))
            else:
                self.words.append(encode(op, **registers, rb=self._register()))
        elif kind < 0.6:
            set_to = {"param": rng.choice(list(Param)), "unit": rng.randint(1, 4)}
            if rng.random() < 0.5:
                self.words.append(encode(Op.SET, ra=self._register(), **set_to))
            else:
                self.words.append(encode(Op.SET, use_imm=1, imm=-rng.getrandbits(20), **set_to))
        elif kind < 0.7:
            masks["dtype"] = rng.getrandbits(4)
            if rng.random() < 0.5:
                self.words.append(encode(Op.WEIGHTS, **registers, **masks, rc=self._register()))
            else:
                self.words.append(encode(Op.WEIGHTS, **registers, **masks, use_imm=1, imm=rng.randrange(1, 17)))
        elif kind < 0.8:
            self.words.append(encode(Op.VROW, **registers, **masks, use_imm=1, imm=rng.getrandbits(31), splat=1))
        else:
            op = rng.choice([Op.LOAD, Op.STORE, Op.MATMUL, Op.VECTOR])
            self.words.append(encode(op, **registers, rb=self._register(), rc=self._register(), **masks))

    def _body(self, level: int) -> None:
        rng = self.rng
        for _ in range(rng.randint(1, 6) if level else self.size):
            if len(self.words) >= self.size:
                break
            kind = rng.random()
            at = len(self.words)
            if kind < 0.55:
                self._simple()
            elif kind < 0.75 and level < 4:
                self.words.append(0)
                self._body(level + 1)
                target = len(self.words) - 1
                count = rng.choice([0, 1, 1, 2, 3])
                if rng.random() < 0.7:
                    self.words[at] = encode(Op.LOOP, use_imm=1, imm=count, target=target)
                else:  # a grid size below 4
                    self.words[at] = encode(Op.LOOP, ra=rng.randint(29, 31), target=target)
                self._simple()
            elif kind < 0.9:
                self.words.append(0)
                for _ in range(rng.randint(0, 3)):
                    self._simple()
                self.words[at] = encode(
                    rng.choice(BRANCHES), ra=self._register(), rb=self._register(), target=len(self.words)
                )
                self._simple()
            else:
                counter = 24 + level
                self.words.append(encode(Op.ADD, rd=counter, use_imm=1, imm=rng.randint(1, 3)))
                self._simple()
                self.words.append(encode(Op.SUB, rd=counter, ra=counter, use_imm=1, imm=1))
                self.words.append(encode(Op.BLT, ra=0, rb=counter, target=at + 1))
                self._simple()
        self._simple()


def random_block(seed: int, size: int = 70) -> Block:
    rng = random.Random(seed)
    args = [rng.choice([*EXTREMES, rng.getrandbits(32)]) for _ in range(21)] + [rng.randint(0, 3) for _ in range(3)]
    index, grid = ((*(rng.getrandbits(32) for _ in range(3)),) for _ in range(2))
    return Block(Generator(seed, size).words, args, index, grid)


def check(block: Block) -> None:
    expected = interpret(block)
    assert block.status == expected.status
    assert block.commands == expected.commands


@pytest.mark.some(3)
@pytest.mark.parametrize("config", WIDTHS, ids=lambda c: f"{c.bus_bytes} bytes")
@pytest.mark.parametrize(("idle", "pause"), [(0, 0), (0.3, 0.3)])
def test_random_programs(config: ChipConfig, idle: float, pause: float) -> None:
    blocks = [random_block(100 * config.bus_bytes + int(idle * 10) + k) for k in range(2)]
    bench = SequencerBench(config, blocks, seed=1, idle=idle, pause=pause, latency=int(idle * 50), work=5)
    bench.run()
    for block in blocks:
        check(block)
        assert block.core == 0


@pytest.mark.some(2)
@pytest.mark.parametrize("config", WIDTHS, ids=lambda c: f"{c.bus_bytes} bytes")
def test_sizes(config: ChipConfig) -> None:
    """Every count of arguments and odd lengths of programs; other registers are zero, whatever was before."""
    dump = [encode(Op.LOAD, ra=r, rb=r + 1, rc=r + 2) for r in range(0, 30, 3)] + [encode(Op.LOAD, ra=30, rb=31)]
    dirty = [encode(Op.SUB, rd=r, use_imm=1, imm=1 + r) for r in range(0, REGISTERS, 3)] + [END]
    rng = random.Random(5)
    blocks = []
    for count in (0, 1, 3, 4, 6, 7, 8, 9, 17, MAX_ARGS):
        blocks.append(Block(dirty[rng.randrange(8) :]))
        blocks.append(Block([*dump, END], [rng.getrandbits(32) for _ in range(count)], (1, 2, 3), (4, 5, 6)))
    bench = SequencerBench(config, blocks, seed=2, latency=0)
    bench.run()
    for block in blocks:
        check(block)
        argument_runs = [(0x100, 4 * len(block.args))] if len(block.args) > INLINE_ARGS else []
        assert block.runs == [*argument_runs, (0x1000, 16 * len(block.program))]


def test_operands_just_written() -> None:
    """What one instruction computes is an operand of one of the next three, in every place."""
    words = []
    for distance in range(3):
        for place in ("ra", "rb", "rc", "rd"):
            words += [encode(Op.ADD, rd=9, ra=9, use_imm=1, imm=0x1001)]
            words += [encode(Op.ADD, rd=10, ra=10, use_imm=1, imm=1)] * distance
            words += [encode(Op.LOAD, **{"ra": 11, place: 9}), encode(Op.STORE, ra=11, rb=9, rc=10)]
    # The second block's program is here, and does not wait for instructions.
    blocks = [Block([*words, END], [3, 5, 7, 9], tag=1) for _ in range(2)]
    SequencerBench(NANO, blocks).run()
    for block in blocks:
        check(block)


def test_shortest_program() -> None:
    blocks = [Block([END]), Block([END], [7])]
    bench = SequencerBench(NANO.replace(cores_x=3), blocks, core_index=2)
    bench.run()
    assert [b.status for b in blocks] == [(FaultCode.NONE, Unit.SEQUENCER, 0, 0)] * 2
    assert [b.core for b in blocks] == [2, 2]


@pytest.mark.some(2)
@pytest.mark.parametrize("config", WIDTHS, ids=lambda c: f"{c.bus_bytes} bytes")
def test_held_program(config: ChipConfig) -> None:
    first = random_block(11, 25)
    first.tag = 0xFFFF_FFFF
    again = Block(first.program, [r ^ 5 for r in first.args], (9, 8, 7), (6, 5, 4), tag=first.tag)
    bare = Block(first.program, tag=first.tag)
    bench = SequencerBench(config, [first, again, bare], latency=20)
    bench.run()
    for block in (first, again, bare):
        check(block)
    assert again.runs == [(0x100, 96)]
    assert bare.runs == []


def test_what_is_not_held() -> None:
    """Another tag, address or length, no tag, and anything after a fault are fetched."""
    program = [UNIT, END]
    fetched = [(0x1000, 32)]
    chain = [
        (Block(program, tag=1), fetched),
        (Block(program, tag=1), []),
        (Block(program, tag=2), fetched),
        (Block(program, tag=1 << 31 | 2), fetched),
        (Block(program, tag=1 << 31 | 2, program_address=0x2000), [(0x2000, 32)]),
        (Block(program, tag=1 << 31 | 2), fetched),
        (Block([UNIT, UNIT, END], tag=1 << 31 | 2), [(0x1000, 48)]),
        (Block(program), fetched),
        (Block(program), fetched),
        (Block(program, tag=1 << 31 | 2), fetched),
        (Block([0x77, END], tag=5), fetched),
        (Block([0x77, END], tag=5), fetched),
        (Block(program, tag=6), fetched),
        (Block(program, tag=6), []),
    ]
    SequencerBench(NANO, [block for block, _ in chain], latency=3).run()
    for block, runs in chain:
        check(block)
        assert block.runs == runs


@pytest.mark.slow
def test_random_launches() -> None:
    """With and without arguments in the message, tags equal and different."""
    rng = random.Random(21)
    programs = [random_block(300 + k, 12).program for k in range(3)]
    blocks: list[Block] = []
    held, fetched = (0, -1), []
    for _ in range(30):
        which, tag = rng.randrange(3), rng.randrange(2)
        args = [rng.getrandbits(32) for _ in range(rng.choice([0, 2, 5, 6, 7, 12]))]
        index, grid = ((*(rng.randrange(4) for _ in range(3)),) for _ in range(2))
        tag *= which + 1
        blocks.append(Block(programs[which], args, index, grid, tag=tag, program_address=0x1000 * (which + 1)))
        fetched.append(not tag or held != (tag, which))
        held = (tag, which)
        if interpret(blocks[-1]).code is not FaultCode.NONE:
            held = (0, -1)
    SequencerBench(preset("edge"), blocks, seed=4, idle=0.2, pause=0.2, latency=9, work=3).run()
    assert not all(fetched)
    for block, fetches in zip(blocks, fetched, strict=True):
        check(block)
        assert len(block.runs) == fetches + (len(block.args) > INLINE_ARGS)


@pytest.mark.some(2)
@pytest.mark.usefixtures("compiled_anew")
@pytest.mark.parametrize("config", WIDTHS, ids=lambda c: f"{c.bus_bytes} bytes")
def test_split_of_a_program(config: ChipConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "SPLIT_BYTES", 64)
    blocks = [Block([*[UNIT] * (words - 1), END], range(7)) for words in (4, 5, 8, 9)]
    SequencerBench(config, blocks).run()
    for block in blocks:
        check(block)
        starts = range(0, 16 * len(block.program), 64)
        assert block.runs[1:] == [(0x1000 + at, min(64, 16 * len(block.program) - at)) for at in starts]


@pytest.mark.slow
def test_program_longer_than_a_run() -> None:
    """4096 instructions are 65536 bytes; the end is reached by a branch that waits for it."""
    config = preset("base").replace(program_words=4096)
    program = [encode(Op.BEQ, target=4093)] + [0] * 4092 + [UNIT, encode(Op.STORE, ra=8), END]
    block = Block(program, [0xABCD] * 7)
    SequencerBench(config, [block], timeout=6000).run()
    assert block.runs == [(0x100, 28), (0x1000, 32768), (0x9000, 32768)]
    check(block)


def test_runs_ahead_of_the_fetch() -> None:
    """Instructions execute while later ones are still on their way."""
    program = [encode(Op.LOAD, ra=8)] * 8 + [END]
    block = Block(program, [3])
    bench = SequencerBench(NANO, [block])
    bench.run()
    assert [after - before for before, after in zip(block.issued, block.issued[1:], strict=False)] == [4] * 7
    check(block)


COSTS = {
    "unit": ([UNIT], 2),
    "set": ([encode(Op.SET, param=Param.RUN_BYTES, unit=Unit.LOAD)], 2),
    "alu": ([encode(Op.ADD, rd=9, ra=8, rb=8)], 2),
    "mul": ([encode(Op.MUL, rd=9, ra=8, rb=8)], 3),
    "not taken": ([encode(Op.BNE, target=0)], 2),
    "taken": ([encode(Op.BEQ, target=4)], 3),
    "sync without masks": ([encode(Op.SYNC)], 2),
    "signal": ([encode(Op.SYNC, signal=1)], 3),
    "signal and wait": ([encode(Op.SYNC, signal=1), encode(Op.SYNC, wait=1)], 6),
    "wait and signal": ([encode(Op.SYNC, signal=1), encode(Op.SYNC, wait=1, signal=2)], 7),
    "loop": ([encode(Op.LOOP, use_imm=1, imm=1, target=4), encode(Op.ADD)], 5),
    "loop of 5 passes": ([encode(Op.LOOP, use_imm=1, imm=5, target=4), encode(Op.ADD)], 3 + 5 * 2),
    "skipped loop": ([encode(Op.LOOP, use_imm=1, imm=0, target=4), encode(Op.ADD)], 4),
    "nested loops": (
        [
            encode(Op.LOOP, use_imm=1, imm=3, target=6),
            encode(Op.LOOP, use_imm=1, imm=4, target=5),
            encode(Op.ADD),
            encode(Op.ADD),
        ],
        3 + 3 * (3 + 4 * 2 + 2),
    ),
}


def test_cycles() -> None:
    """Cycles between two commands with something in between, on a program that is there."""
    blocks = []
    left = {"signal": 1, "wait and signal": 2}
    for name, (words, _) in COSTS.items():
        program = [UNIT, encode(Op.ADD), UNIT, *words, UNIT, encode(Op.SYNC, wait=left.get(name, 0)), END]
        tag = 1 + len(blocks)
        blocks += [Block(program, [1], tag=tag), Block(program, [1], tag=tag)]
    SequencerBench(NANO, blocks).run()
    for (name, (_, cost)), block in zip(COSTS.items(), blocks[1::2], strict=True):
        assert block.code is FaultCode.NONE
        assert block.runs == []
        assert block.issued[1] - block.issued[0] == 4
        assert (name, block.issued[-1] - block.issued[1]) == (name, 2 + cost)


@pytest.mark.some(2)
@pytest.mark.parametrize("config", WIDTHS, ids=lambda c: f"{c.bus_bytes} bytes")
def test_cycles_of_a_block(config: ChipConfig) -> None:
    """From the launch to the first command and from the last command to the report."""
    program = [UNIT, END]
    first, held, inline, bare, plain = blocks = [
        Block(program, range(9), tag=1),
        Block(program, range(9), tag=1),
        Block(program, range(6), tag=1),
        Block(program, tag=1),
        Block(program),
    ]
    SequencerBench(config, blocks, latency=60).run()
    for block in blocks:
        ordered = block.launched - 6 - (len(block.args) if len(block.args) <= INLINE_ARGS else 0)
        assert block.asked == [ordered + 2 + k for k in range(len(block.runs))]
    assert held.issued[0] == held.beats[0] + 9 + 4
    for block in (inline, bare):
        assert block.issued[0] == block.launched + 4
        assert block.runs == []
    assert plain.issued[0] == plain.beats[max(16 // config.bus_bytes, 1) - 1] + 5
    argument_beats = -(-4 * 9 // config.bus_bytes)
    assert first.issued[0] <= max(first.beats[0] + 9 + 4, first.beats[argument_beats] + 5 + 3)
    for block in (held, inline, bare):
        assert block.reported == block.issued[0] + 3
