"""Instructions of the units: what each call emits without options, and with all of them."""

import numpy as np
import pytest

from sley.abi.asm import disassemble
from sley.abi.config import preset
from sley.abi.faults import Unit
from sley.abi.instructions import Share, Space, VectorRow
from sley.abi.types import ElementType
from sley.abi.vector.operations import BinaryOp
from sley.runtime import ZERO, Device, KernelBuilder, KernelError

BF16, FP32 = ElementType.BF16, ElementType.FP32


def test_every_option_is_in_the_instruction() -> None:
    k = KernelBuilder("all", preset("base"))
    a, b, n, s = (k.reg(name) for name in "abns")
    first, second = k.semaphore("first"), k.semaphore("second")
    k.load(a, b, n)
    far = {"space": Space.ACCUMULATOR, "step": s}
    k.load(a, b, 3, interleave=True, transpose=True, share=Share.ROW, wait=first, signal=second, **far)
    k.load(a, b, n, by_list=True)
    k.store(a, b, n)
    k.store(a, b, n, by_list=True)
    k.store(a, b, 3, wait=second, signal=first, **far)
    k.weights(a, n)
    k.weights(a, 4, dtype=BF16, step=s, wait=first, signal=second)
    k.matmul(a, b, n)
    k.matmul(a, b, 4, accumulate=True, dtype=BF16, step=s, wait=(first, second), signal=first)
    k.vector(a, b, n)
    source = {"a_space": Space.SCRATCHPAD, "a_half": 1, "a_type": BF16}
    other = {"b_space": Space.SCRATCHPAD, "b_half": 1, "b_type": BF16}
    steps = {"dtype": FP32, "bias": True, "scale": True, "relu": True, "out": BF16, "out_half": 1}
    k.vector(a, b, 4, b_op=BinaryOp.ADD, step=s, wait=first, signal=second, **source, **other, **steps)
    k.vector(a, b, n, **other)
    k.vrow(VectorRow.BIAS, a)
    k.vrow(VectorRow.SCALE, a, splat=True, step=s, wait=second, signal=first)
    k.vrow(VectorRow.BIAS, 7, splat=True)
    k.set(Unit.LOAD, run_bytes=a)
    k.set(Unit.VECTOR, a_stride=5, b_row=n)
    k.set(Unit.LOAD, fill=0xFF800000)
    k.end()
    assert disassemble(k.build().words).split("\n") == [
        "    " + line
        for line in (
            "load    r31, r30, r29",
            "load    r31, r30, #3 step=r28 space=accumulator interleave=1 transpose=1 share=row wait=0 signal=1",
            "load    r31, r30, r29 by_list=1",
            "store   r31, r30, r29",
            "store   r31, r30, r29 by_list=1",
            "store   r31, r30, #3 step=r28 space=accumulator wait=1 signal=0",
            "weights r31, r29",
            "weights r31, #4 step=r28 dtype=bf16 wait=0 signal=1",
            "matmul  r31, r30, r29",
            "matmul  r31, r30, #4 step=r28 accumulate=1 dtype=bf16 wait=0,1 signal=0",
            "vector  r31, r30, r29 a_space=accumulator",
            "vector  r31, r30, #4 step=r28 a_half=1 b_op=add b_half=1 dtype=fp32 bias=1 scale=1 relu=1 out=bf16 "
            "out_half=1 a_type=bf16 b_type=bf16 wait=0 signal=1",
            "vector  r31, r30, r29 a_space=accumulator",
            "vrow    r31",
            "vrow    r31 step=r28 row=scale splat=1 wait=1 signal=0",
            "vrow    #7 splat=1",
            "set     load.run_bytes, r31",
            "set     vector.a_stride, #5",
            "set     vector.b_row, r29",
            "set     load.fill, #-8388608",
            "end",
        )
    ] + [""]


def test_a_chip_without_lists() -> None:
    k = KernelBuilder("lists", preset("nano"))
    for move in (k.load, k.store):
        with pytest.raises(KernelError, match="by_list needs lists; the chip nano has none: its gather is off"):
            move(k.reg("a"), 0, 1, by_list=True)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, ""),
        ({"scale": True}, " scale=1 out=fp32"),
        ({"dtype": FP32}, " dtype=fp32 out=fp32"),
        ({"bias": True}, " bias=1"),
        ({"relu": True}, " relu=1"),
        ({"scale": True, "out": ElementType.INT8}, " scale=1 out=int8"),
    ],
)
def test_what_a_vector_leaves_by_default(options: dict[str, object], text: str) -> None:
    k = KernelBuilder("one", preset("base"))
    k.vector(0, 0, 1, **options)  # type: ignore[arg-type]
    k.end()
    assert disassemble(k.build().words).split("\n")[0] == f"    vector  r0, r0, #1 a_space=accumulator{text}"


def test_operands_that_must_be_registers() -> None:
    k = KernelBuilder("bad", preset("base"))
    for call in (lambda: k.load(3, 0, 1), lambda: k.store(0, 4, 1), lambda: k.weights(5, 1)):  # type: ignore[arg-type]
        with pytest.raises(KernelError, match=r"operand r[ab] is [345]; it must be a register"):
            call()


@pytest.mark.parametrize("space", list(Space))
def test_a_load_fills_what_has_no_bytes(device: Device, space: Space) -> None:
    """Behind a run's bytes, in its further chunks, and in runs of padding."""
    config, fill = device.config, 0x81C3A57E
    size = config.accumulator_row_bytes if space else config.row_bytes
    k = KernelBuilder("fill", config)
    x, out, loaded = k.arg("x"), k.arg("out"), k.semaphore("loaded")
    k.set(Unit.LOAD, fill=fill, run_bytes=size + 3, chunks=3, mem_stride=size + 3, local_stride=3, pad_runs=1)
    k.load(x, ZERO, 2, space=space, signal=loaded)
    k.set(Unit.STORE, run_bytes=9 * size)
    k.store(out, ZERO, 1, space=space, wait=loaded)
    k.end()
    values = np.random.default_rng(0).integers(0, 256, (2, size + 3), np.uint8)
    found = device.array(np.zeros((3, 3 * size), np.uint8))
    device.stream.launch(k.build(), [device.array(values), found])
    expected = np.tile(np.frombuffer(fill.to_bytes(4, "little"), np.uint8), (3, 3 * size // 4))
    expected[:2, : size + 3] = values
    assert np.array_equal(found.numpy(), expected)
