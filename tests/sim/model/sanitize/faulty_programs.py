"""Small programs without faults, and faults to plant in them: a line that is replaced, and what must be reported."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from sley.abi.asm import assemble
from sley.abi.vector.chains import Chain
from sley.abi.vector.operations import Reduction
from sley.runtime.device.program import Program
from sley.sim.model.sanitize.kinds import Finding

CHIP = "base"
ROWS, ROW_BYTES, SUM_BYTES = 16, 32, 64
"""Of a tile, of a scratchpad row, of an accumulator row of the chip."""

PRODUCT = """
    set load.run_bytes, #32
    set load.mem_stride, #32
    set load.local_stride, #1
    set store.run_bytes, #32
    set store.mem_stride, #32
    set store.local_stride, #1
    add r12, r0, #64
    add r13, r0, #128
    load r8, r0, #16 signal=0
    load r9, r12, #16 signal=1
    weights r12, #16 wait=1
    matmul r0, r0, #16 wait=0 signal=2
    vector r0, r13, #16 a_space=accumulator out=int8 wait=2 signal=3
    vector r0, r13, #16 a_space=accumulator out=int8 out_half=1 signal=3
    store r10, r13, #0 wait=3
    store r10, r13, #16 wait=3
    end
"""
"""A tile of A times a tile of B, as int8 in both halves of scratchpad rows."""

STREAM = """
    set load.run_bytes, #32
    set load.mem_stride, #32
    set load.local_stride, #1
    set store.run_bytes, #64
    set store.mem_stride, #64
    set store.local_stride, #1
    sync signal=0
    sync signal=0
    add r12, r0, #0
    add r16, r0, #32
    add r20, r0, #512
    add r21, r0, #1024
    loop r11, last
    load r8, r12, #16 wait=0 signal=1
    vector r12, r12, #16 a_space=scratchpad a_type=int8 wait=1 signal=2
    store r10, r12, #16 space=accumulator wait=2 signal=0
    add r8, r8, r20
    add r10, r10, r21
    last: sub r12, r16, r12
    load r0, r0, #0 wait=0
    load r0, r0, #0 wait=0
    end
"""
"""Tiles through two slots, at rows 0 and 32: to the accumulators as words, and away. Rows 16 of a tile."""

REGISTERS = """
    set load.run_bytes, #64
    set load.mem_stride, #64
    set load.local_stride, #1
    set store.run_bytes, #64
    set store.mem_stride, #64
    set store.local_stride, #1
    add r12, r0, #32
    load r8, r0, #16 space=accumulator signal=0
    load r9, r12, #1 space=accumulator signal=1
    vrow r12 row=bias wait=1
    vector r0, r0, #16 a_space=accumulator bias=1 wait=0 signal=2
    store r10, r0, #16 space=accumulator wait=2
    end
"""
"""A row added to each row, through a row register."""

SUM = """
    set load.run_bytes, #64
    set load.mem_stride, #64
    set load.local_stride, #1
    set store.run_bytes, #64
    set store.mem_stride, #64
    set store.local_stride, #1
    set vector.b_row, #32
    set vector.b_stride, #1
    add r12, r0, #32
    add r13, r0, #64
    load r8, r0, #16 space=accumulator
    load r9, r12, #16 space=accumulator signal=0
    vector r0, r13, #16 a_space=accumulator b_space=accumulator b_op=add wait=0 signal=1
    store r10, r13, #16 space=accumulator wait=1
    end
"""
"""The sum of two tiles of words."""

COPY = """
    set load.run_bytes, #32
    set load.mem_stride, #32
    set load.local_stride, #1
    set store.run_bytes, #32
    set store.mem_stride, #32
    set store.local_stride, #1
    load r8, r0, #16 signal=0
    store r10, r0, #16 wait=0
    end
"""
"""A tile from memory to memory."""

BLOCKS = """
    mul r12, r1, #512
    add r8, r8, r12
    add r10, r10, r12
    add r13, r0, #64
    set load.run_bytes, #32
    set load.mem_stride, #32
    set load.local_stride, #1
    set store.run_bytes, #32
    set store.mem_stride, #32
    set store.local_stride, #1
    load r8, r0, #16 signal=0
    store r10, r0, #16 wait=0
    end
"""
"""A tile for each block of a grid, from memory to memory."""

_FRONT, _TAIL, _OPERANDS = Chain(reduce=Reduction.SUM, register=2, silent=True).words()[:3]

REDUCTION = f"""
    set load.run_bytes, #64
    set load.mem_stride, #64
    set load.local_stride, #1
    set vector.chain1_front, #{_FRONT}
    set vector.chain1_tail, #{_TAIL}
    set vector.chain1_operands, #{_OPERANDS}
    load r8, r0, #16 space=accumulator signal=0
    vector r0, r0, #16 a_space=accumulator dtype=fp32 out=fp32 chain=1 wait=0
    vfold row=row2 reduce=sum
    end
"""
"""The sum of rows of fp32, into a row register."""

PROGRAMS = {
    "product": PRODUCT,
    "stream": STREAM,
    "registers": REGISTERS,
    "sum": SUM,
    "copy": COPY,
    "blocks": BLOCKS,
    "reduction": REDUCTION,
}


@dataclass(frozen=True)
class Fault:
    """What is replaced in a program by what; ``finding``: what must be reported, with these words in it."""

    program: str
    name: str
    old: str
    new: str
    finding: Finding
    words: str = ""

    def __str__(self) -> str:
        return f"{self.program}: {self.name}"

    @property
    def text(self) -> str:
        """The program with the fault."""
        text = PROGRAMS[self.program]
        assert text.count(self.old) == 1, (self.old, text.count(self.old))
        return text.replace(self.old, self.new)


def program(name: str, text: str) -> Program:
    """A program of three arrays and a count."""
    return Program(name, tuple(assemble(text)), ("first", "second", "out", "count"))


FAULTS = [
    Fault(**entry | {"finding": Finding[entry["finding"]]})
    for entry in tomllib.loads(Path(__file__).with_name("faults.toml").read_text())["fault"]
]
