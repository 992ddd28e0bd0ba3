"""Small programs without faults, and faults to plant in them: a line that is replaced, and what must be reported."""

from dataclasses import dataclass

from sley.abi.asm import assemble
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

PROGRAMS = {
    "product": PRODUCT,
    "stream": STREAM,
    "registers": REGISTERS,
    "sum": SUM,
    "copy": COPY,
    "blocks": BLOCKS,
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


_F = Finding
FAULTS = [
    # No wait, or no signal, between two units.
    Fault("product", "no wait for the activations", "r0, #16 wait=0 signal=2", "r0, #16 signal=2", _F.LEFTOVER),
    Fault("product", "waits the other way round", "wait=1\n    matmul r0, r0, #16 wait=0", "wait=0\n    matmul r0, r0, #16 wait=1", _F.ROW_RACE, "LOAD"),
    Fault("product", "no wait for the weights", "r12, #16 wait=1", "r12, #16", _F.ROW_RACE, "LOAD"),
    Fault("product", "no wait for the sums", "out=int8 wait=2 signal=3", "out=int8 signal=3", _F.ROW_RACE, "accumulator"),
    Fault("product", "no wait for the results", "store r10, r13, #16 wait=3", "store r10, r13, #16", _F.ROW_RACE),
    Fault("product", "a wait for another semaphore", "r0, #16 wait=0 signal=2", "r0, #16 wait=1 signal=2", _F.STUCK),
    Fault("product", "a signal before the last access", "    store r10, r13, #0 wait=3\n", "", _F.ROW_RACE, "STORE"),
    Fault("product", "activations loaded while they are used", "wait=0 signal=2\n", "wait=0 signal=2\n    load r8, r0, #16\n", _F.ROW_RACE, "scratchpad row 0"),
    Fault("product", "weights loaded while they are taken", "r12, #16 wait=1\n", "r12, #16 wait=1\n    load r9, r12, #16\n", _F.ROW_RACE, "scratchpad row 64"),
    Fault("product", "WEIGHTS for MATMUL", "wait=0 signal=2\n", "wait=0 signal=2\n    weights r12, #16 signal=4\n    load r8, r0, #16 wait=4\n", _F.ROW_RACE, "which MATRIX"),
    Fault("stream", "no wait for a slot", "r12, #16 wait=0 signal=1", "r12, #16 signal=1", _F.ROW_RACE, "LOAD"),
    Fault("stream", "no wait for a tile", "a_type=int8 wait=1", "a_type=int8", _F.ROW_RACE),
    Fault("stream", "no wait for the words", "accumulator wait=2 signal=0", "accumulator signal=0", _F.ROW_RACE),
    Fault("stream", "three tokens for two slots", "sync signal=0\n    add r12", "sync signal=0\n    sync signal=0\n    add r12", _F.ROW_RACE),
    Fault("stream", "one slot for two", "last: sub r12, r16, r12", "last: add r12, r12, r0", _F.ROW_RACE),
    Fault("stream", "slots that overlap", "add r16, r0, #32", "add r16, r0, #15", _F.ROW_RACE),
    Fault("stream", "freed by the unit before", "wait=1 signal=2\n    store r10, r12, #16 space=accumulator wait=2 signal=0", "wait=1 signal=0,2\n    store r10, r12, #16 space=accumulator wait=2", _F.ROW_RACE),
    Fault("registers", "no wait for the tile", "bias=1 wait=0 signal=2", "bias=1 signal=2", _F.LEFTOVER, "semaphore 0"),
    Fault("registers", "no wait for the row", "row=bias wait=1", "row=bias", _F.ROW_RACE, "VECTOR reads accumulator row 32"),
    Fault("registers", "no wait for the sums", "accumulator wait=2", "accumulator", _F.ROW_RACE),
    Fault("sum", "no wait for both tiles", "b_op=add wait=0", "b_op=add", _F.ROW_RACE),
    Fault("sum", "signalled after the first tile", "space=accumulator\n    load r9, r12, #16 space=accumulator signal=0", "space=accumulator signal=0\n    load r9, r12, #16 space=accumulator", _F.ROW_RACE, "accumulator row 32"),
    Fault("copy", "no wait for the load", "#16 wait=0", "#16", _F.ROW_RACE, "STORE reads scratchpad row 0"),
    # Rows and registers that nobody wrote.
    Fault("product", "fewer activations than products", "load r8, r0, #16", "load r8, r0, #15", _F.UNWRITTEN_ROW, "row 15"),
    Fault("product", "fewer weights than the array takes", "load r9, r12, #16", "load r9, r12, #15", _F.UNWRITTEN_WEIGHTS, "row 79"),
    Fault("product", "sums that begin with nothing", "r0, #16 wait=0 signal=2", "r0, #16 accumulate=1 wait=0 signal=2", _F.UNWRITTEN_ROW, "accumulator row 0"),
    Fault("product", "half of the results", "out_half=1 signal=3", "signal=3", _F.UNWRITTEN_ROW, "byte 16"),
    Fault("product", "results of rows not computed", "r0, #16 wait=0 signal=2", "r0, #12 wait=0 signal=2", _F.DERIVED_ROW, "VECTOR"),
    Fault("product", "more rows stored than computed", "store r10, r13, #16", "store r10, r13, #17", _F.UNWRITTEN_ROW, "row 144"),
    Fault("registers", "no register written", "vrow r12 row=bias wait=1", "vector r12, r12, #0 wait=1", _F.UNWRITTEN_REGISTER, "register 0"),
    Fault("registers", "a register of a row not loaded", "load r9, r12, #1 ", "load r9, r12, #0 ", _F.UNWRITTEN_ROW, "accumulator row 32"),
    Fault("registers", "the other register", "row=bias wait=1", "row=scale wait=1", _F.UNWRITTEN_REGISTER),
    Fault("sum", "B at another row", "set vector.b_row, #32", "set vector.b_row, #40", _F.DERIVED_ROW),
    Fault("sum", "A of the other memory", "a_space=accumulator b_space", "a_space=scratchpad a_type=int8 b_space", _F.DERIVED_ROW),
    Fault("copy", "fewer rows loaded than stored", "load r8, r0, #16", "load r8, r0, #12", _F.UNWRITTEN_ROW, "row 12"),
    Fault("sum", "a stride of 2", "set vector.b_stride, #1", "set vector.b_stride, #2", _F.DERIVED_ROW),
    # Device memory.
    Fault("copy", "a row too many loaded", "load r8, r0, #16", "load r8, r0, #17", _F.OUTSIDE, "LOAD reads"),
    Fault("copy", "a wider stride in memory", "set store.mem_stride, #32", "set store.mem_stride, #33", _F.OUTSIDE, "STORE writes"),
    Fault("copy", "a byte too many of each run", "set load.run_bytes, #32", "set load.chunks, #2\n    set load.run_bytes, #33", _F.OUTSIDE, "0 bytes behind the end"),
    Fault("copy", "from the row before", "load r8, r0, #16", "add r8, r8, #-32\n    load r8, r0, #16", _F.OUTSIDE),
    Fault("stream", "a tile too many", "loop r11, last", "add r11, r11, #1\n    loop r11, last", _F.OUTSIDE),
    Fault("stream", "backwards", "add r20, r0, #512", "add r20, r0, #-512", _F.OUTSIDE),
    # Semaphores.
    Fault("product", "nobody signals", "load r8, r0, #16 signal=0", "load r8, r0, #16", _F.STUCK, "semaphore 0"),
    Fault("product", "a signal that nobody takes", "load r8, r0, #16 signal=0", "load r8, r0, #16 signal=0,5", _F.LEFTOVER, "semaphore 5"),
    Fault("stream", "no slot to begin with", "sync signal=0\n    sync signal=0\n", "", _F.STUCK, "LOAD at pc"),
    Fault("stream", "a slot that is not freed", "wait=2 signal=0", "wait=2", _F.STUCK),
    Fault("stream", "one wait too few at the end", "load r0, r0, #0 wait=0\n    end", "end", _F.LEFTOVER, "semaphore 0"),
    Fault("copy", "more signals than a semaphore holds", "load r8, r0, #16 signal=0", "loop #16, more\n    more: sync signal=1\n    load r8, r0, #16 signal=0", _F.STUCK, "full at 15"),
    Fault("copy", "the sequencer waits for itself", "load r8, r0, #16 signal=0", "sync wait=1\n    sync signal=1\n    load r8, r0, #16 signal=0", _F.STUCK, "SEQUENCER"),
    # Device memory that two blocks, or two units, use at a time.
    Fault("blocks", "all write the first tile", "    add r10, r10, r12\n", "", _F.MEMORY_RACE, "STORE writes"),
    Fault("blocks", "tiles that overlap by a byte", "store.run_bytes, #32", "store.run_bytes, #33", _F.MEMORY_RACE),
    Fault("blocks", "results among operands", "add r8, r8, r12\n    add r10, r10, r12", "add r10, r8, r12", _F.MEMORY_RACE),
    Fault("blocks", "read back without a wait", "wait=0\n", "wait=0\n    load r10, r13, #16 signal=1\n    sync wait=1\n", _F.MEMORY_RACE),
]  # fmt: skip
