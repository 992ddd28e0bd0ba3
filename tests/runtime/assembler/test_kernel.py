"""Kernels as a whole: what they are given, what is refused, what comes out."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sley.abi.asm import disassemble
from sley.abi.config import preset
from sley.abi.faults import Unit
from sley.abi.instructions import Op
from sley.runtime import ZERO, Device, KernelBuilder, KernelError

NANO = preset("nano")
Reporting = Callable[[], Any]


def test_block_and_grid_registers(device: Device, reporting: Reporting) -> None:
    kernel = reporting()
    k, out = kernel.k, kernel.out
    pitch = k.arg("pitch")
    offset, number = k.reg("offset"), k.reg("number")
    x, y, z = k.block
    k.mul(number, z, k.grid[1])
    k.add(number, number, y)
    k.mul(number, number, k.grid[0])
    k.add(number, number, x)
    k.mul(offset, number, pitch)
    k.add(out, out, offset)
    kernel.report(number)
    array = device.array(np.full(12, -1, np.int32))
    device.stream.launch(k.build(), {"out": array, "pitch": 4}, (2, 3, 2))
    assert array.numpy().tolist() == list(range(12))


def test_errors_name_the_cure() -> None:
    k = KernelBuilder("bad", NANO)
    x = k.reg("x")
    with pytest.raises(KernelError, match=r"operand rb is 5; it must be a register"):
        k.matmul(0, 5, 0)
    with pytest.raises(KernelError, match="no parameter 'speed'; there are RUN_BYTES"):
        k.set(Unit.LOAD, speed=1)
    with pytest.raises(KernelError, match="no relation '>'"), k.if_(x, ">", 0):
        pass
    with pytest.raises(KernelError, match="starts at 16"):
        k.semaphore("much", 16)
    with pytest.raises(KernelError, match="empty"), k.loop(3):
        pass
    with pytest.raises(KernelError, match="is no branch"):
        k.branch(Op.ADD, x, x, k.label())
    label = k.label("here")
    k.place(label)
    with pytest.raises(KernelError, match="'here' is placed twice"):
        k.place(label)
    for _ in range(16):
        k.semaphore("s")
    with pytest.raises(KernelError, match="one too many; a core has 16"):
        k.semaphore("s")


def test_build_refuses_what_no_core_can_run() -> None:
    k = KernelBuilder("lost", NANO)
    k.jump(k.label("nowhere"))
    with pytest.raises(KernelError, match="'nowhere' is not placed"):
        k.build()
    k = KernelBuilder("long", NANO)
    for _ in range(NANO.program_words):
        k.mov(ZERO, 0)
    k.end()
    with pytest.raises(KernelError, match="257 instructions; a core holds 256"):
        k.build()
    k = KernelBuilder("wide", NANO)
    k.add(ZERO, ZERO, 1 << 40)
    with pytest.raises(KernelError, match="instruction 0: field 'imm'"):
        k.build()


def test_program_text() -> None:
    k = KernelBuilder("small", NANO)
    k.add(k.arg("x"), ZERO, 0xFFFFFFFF)
    k.end()
    program = k.build()
    assert str(program).startswith("; small(r8 x)\n")
    assert disassemble(program.words).split() == ["add", "r8,", "r0,", "#-1", "end"]
    assert len(program.code) == 32
