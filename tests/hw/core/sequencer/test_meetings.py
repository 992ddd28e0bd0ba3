"""What meets in the sequencer: each kind of instruction right behind each kind, and operands that were just written."""

import random
from collections.abc import Callable, Sequence
from itertools import pairwise, product

from sley.abi.config import preset
from sley.abi.instructions import FORMATS, Op, decode, encode
from sley.abi.parameters import Param
from sley.hw.testing.coverage import Coverage
from sley.hw.testing.sequencer.bench import SequencerBench
from sley.hw.testing.sequencer.block import Block
from sley.hw.testing.sequencer.reference import interpret

BASE = preset("base").replace(program_words=1024)
KINDS = ["alu", "multiply", "taken", "not taken", "loop", "skipped loop", "set", "unit", "signal", "wait"]
PLACES = ["ra", "rb", "rc", "rd"]
DISTANCES = ["last", "last but one", "last but two"]
COVERAGE = Coverage(
    "sequencer: what meets",
    {
        # In time: the last instruction of a loop comes before its first one, a branch before its target.
        "behind": list(product(KINDS, KINDS)),
        "operand written by the": list(product(DISTANCES, PLACES)),
        "behind the last pass of a loop": KINDS,
    },
)


class Pairs:
    """A program in which each kind comes right behind each kind, in a random order, in a loop or not."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.words: list[int] = []
        self.written: list[int] = []
        pairs = list(product(KINDS, KINDS))
        for earlier, later in rng.sample(pairs, len(pairs)):
            mask = 1 << rng.randrange(16)
            waits = (earlier == "wait") + (later == "wait") * (2 if earlier == "loop" else 1) - (earlier == "signal")
            self.words += [encode(Op.SYNC, signal=mask)] * waits
            self._put(earlier, mask, [(later, mask)])
        for kind in KINDS:
            self.words += [encode(Op.SYNC, signal=1)] * (kind == "wait")
            self._put("loop", 1, [])
            self._put(kind, 1, [])
        for kind in rng.choices(["alu", "multiply", "unit"], k=30):
            self._put(kind, 1, [])
            self._put("unit", 1, [])
        for register in range(8, 14, 3):
            self.words.append(encode(Op.LOAD, ra=register, rb=register + 1, rc=register + 2))
        self.words.append(encode(Op.END))

    def _put(self, kind: str, mask: int, behind: Sequence[tuple[str, int]]) -> None:
        """An instruction of this kind, and right behind it, in time, one of each of the others."""
        rng, at = self.rng, len(self.words)
        names = {n: rng.randrange(8, 14) for n in ("rd", "ra", "rb", "rc")}
        alu = {n: names[n] for n in ("rd", "ra", "rb")}
        # What a unit is given was computed just before more often than not.
        if kind == "unit":
            names |= {n: rng.choice([*self.written[-3:], name]) for n, name in names.items()}
        self.written += [names["ra"]] * (kind == "unit") + [names["rd"]] * (kind in ("alu", "multiply"))

        def rest() -> None:
            for other, its_mask in behind[:1]:
                self._put(other, its_mask, behind[1:])
            if kind == "signal" and not any(other == "wait" for other, _ in behind):
                self.words.append(encode(Op.SYNC, wait=mask))

        def filler() -> None:
            self.words.append(encode(rng.choice([Op.ADD, Op.MUL]), **alu))

        if kind in ("taken", "skipped loop"):
            self.words.append(0)
            filler()
            end = len(self.words)
            self.words[at] = (
                encode(Op.BEQ, target=end) if kind == "taken" else encode(Op.LOOP, use_imm=1, imm=0, target=end - 1)
            )
            rest()
        elif kind == "loop":
            self.words.append(0)
            rest()
            filler()
            self.words[at] = encode(Op.LOOP, use_imm=1, imm=2, target=len(self.words) - 1)
        else:
            self.words.append(
                {
                    "alu": lambda: encode(rng.choice([Op.ADD, Op.SUB, Op.AND, Op.OR, Op.SHR]), **alu),
                    "multiply": lambda: encode(Op.MUL, **alu),
                    "not taken": lambda: encode(Op.BNE, target=max(0, at - 1)),
                    "set": lambda: encode(Op.SET, ra=names["ra"], param=Param.RUN_BYTES, unit=1),
                    "unit": lambda: encode(rng.choice([Op.LOAD, Op.STORE, Op.MATMUL, Op.VECTOR]), **names),
                    "signal": lambda: encode(Op.SYNC, signal=mask),
                    "wait": lambda: encode(Op.SYNC, wait=mask),
                }[kind]()
            )
            rest()


def count(block: Block) -> None:
    """What executed behind what."""
    kinds: list[str] = []
    written: list[int | None] = []
    loops = {fields["target"]: pc for pc, (op, fields) in enumerate(map(decode, block.program)) if op is Op.LOOP}
    ended = False
    for pc, behind in pairwise(interpret(block).path):
        op, fields = decode(block.program[pc])
        kind = {Op.MUL: "multiply", Op.LOOP: "loop", Op.SET: "set"}.get(op, "unit" if FORMATS[op].unit else "alu")
        if op in (Op.BEQ, Op.BNE):
            kind = "not taken" if behind == pc + 1 else "taken"
        elif op is Op.LOOP and behind == fields["target"] + 1:
            kind = "skipped loop"
        elif op is Op.SYNC:
            kind = "wait" if fields["wait"] else "signal"
        for distance, register in zip(DISTANCES, reversed(written), strict=False):
            for place in PLACES:
                if register and fields.get(place) == register and (place != "rd" or kind == "unit"):
                    COVERAGE.hit("operand written by the", (distance, place))
        written.append(fields["rd"] if kind in ("alu", "multiply") else fields["ra"] if kind == "unit" else None)
        if ended:
            COVERAGE.hit("behind the last pass of a loop", kind)
        ended = pc in loops and behind == pc + 1
        kinds.append(kind)
    for pair in pairwise(kinds):
        COVERAGE.hit("behind", pair)


def test_meetings() -> None:
    """On a bus that brings two instructions a cycle: none is waited for."""
    rng = random.Random(1)
    block = Block(Pairs(rng).words, [rng.getrandbits(32) for _ in range(16)])
    SequencerBench(BASE, [block], latency=3).run()
    expected = interpret(block)
    assert block.status == expected.status
    assert block.commands == expected.commands
    count(block)


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)
