import numpy as np
import pytest

from sley.abi.functions.table import Function
from sley.abi.types import ElementType
from sley.abi.vector.chains import Chain, Operand
from sley.abi.vector.operations import BinaryOp
from sley.sim.golden import float32
from sley.sim.golden.chain import ChainInputs, RowRegisters, chain_rows, convert
from sley.sim.golden.vector import source_words, vector_op


def words(*values: int) -> np.ndarray:
    return np.array([values], np.int64).astype(np.uint32)


def test_requantisation():
    """int32 sums, bias, fp32 scale, relu, int8: what a quantised layer does."""
    rng = np.random.default_rng(1)
    sums = rng.integers(-(1 << 20), 1 << 20, (50, 8)).astype(np.int32)
    bias = rng.integers(-(1 << 16), 1 << 16, 8).astype(np.int32)
    scale = rng.uniform(1e-5, 2e-4, 8).astype(np.float32)
    got = vector_op(sums, bias=bias, scale=float32.to_bits(scale), relu=True, out=ElementType.INT8)
    expected = np.clip(np.rint(np.maximum((sums + bias).astype(np.float32) * scale, 0)), -128, 127).astype(np.int8)
    assert got.dtype == np.int8
    assert np.array_equal(got, expected)


def test_integer_steps_wrap_and_compare_signed():
    top, bottom = 0x7FFFFFFF, 0x80000000
    assert vector_op(words(top), words(1), b_op=BinaryOp.ADD).tolist() == [[bottom]]
    assert vector_op(words(top), words(bottom), b_op=BinaryOp.MAX).tolist() == [[top]]
    assert vector_op(words(bottom), bias=np.array([-1], np.int32)).tolist() == [[top]]
    assert vector_op(words(bottom, 5), relu=True).tolist() == [[0, 5]]
    assert vector_op(words(-200, 200), out=ElementType.INT8).tolist() == [[-128, 127]]
    assert vector_op(words(-200, 200), out=ElementType.INT32).tolist() == words(-200, 200).tolist()


def test_int8_sources():
    a, b = np.array([[-128, 127]], np.int8), np.array([[-1, 1]], np.int8)
    assert vector_op(a).tolist() == words(-128, 127).tolist()
    assert vector_op(a, b, b_op=BinaryOp.ADD).tolist() == words(-129, 128).tolist()
    got = vector_op(a, b, b_op=BinaryOp.ADD, dtype=ElementType.FP32)
    assert float32.to_float(got).tolist() == [[-129.0, 128.0]]


def test_float_steps():
    one, nan, subnormal = 0x3F800000, 0x7F812345, 0x00000001
    fp32 = ElementType.FP32
    assert vector_op(words(nan, subnormal), dtype=fp32).tolist() == [[nan, subnormal]]  # a plain copy
    assert vector_op(words(nan, subnormal), dtype=fp32, relu=True).tolist() == [[0x7FC00000, 0]]
    assert vector_op(words(one), bias=np.array([one]).astype(np.uint32), dtype=fp32).tolist() == [[0x40000000]]
    assert vector_op(words(3), scale=words(one)[0]).tolist() == [[0x40400000]]
    half = float32.to_bits([[2.5, -2.5]])
    assert vector_op(half, dtype=fp32, out=ElementType.INT32).tolist() == words(2, -2).tolist()
    assert vector_op(words(nan), dtype=fp32, out=ElementType.INT8).tolist() == [[0]]


def test_bf16():
    fp32, bf16 = ElementType.FP32, ElementType.BF16
    a = np.array([[0x3F80, 0x0001, 0xFF81, 0x8040]], np.uint16)  # 1, subnormal, NaN, -subnormal
    b = np.array([[0x3F80, 0x4000, 0x3F80, 0x8000]], np.uint16)
    assert vector_op(a, dtype=fp32).tolist() == [[0x3F800000, 0, 0xFF810000, 0x80000000]]
    assert vector_op(a, dtype=fp32, out=bf16).tolist() == [[0x3F80, 0, 0x7FC0, 0x8000]]
    assert vector_op(a, b, b_op=BinaryOp.ADD, dtype=fp32, out=bf16).tolist() == [[0x4000, 0x4000, 0x7FC0, 0x8000]]
    assert vector_op(words(0x3F808000, 0x3F818000), dtype=fp32, out=bf16).tolist() == [[0x3F80, 0x3F82]]
    # An integer is rounded to fp32 first, then to bf16; relu makes no -0.
    assert vector_op(words(1, -3, 0x1010001), out=bf16).tolist() == [[0x3F80, 0xC040, 0x4B80]]
    got = vector_op(words(-3), words(2), b_op=BinaryOp.ADD, relu=True, out=bf16)
    assert (got.dtype, got.tolist()) == (np.uint16, [[0]])
    with pytest.raises(ValueError, match="INT32"):
        vector_op(a)


def test_uint8_and_fp16():
    fp32, uint8, fp16 = ElementType.FP32, ElementType.UINT8, ElementType.FP16
    a = np.array([[0, 127, 128, 255]], np.uint8)
    assert vector_op(a).tolist() == words(0, 127, 128, 255).tolist()
    assert float32.to_float(vector_op(a, dtype=fp32)).tolist() == [[0.0, 127.0, 128.0, 255.0]]
    assert vector_op(words(-1, 255, 256), out=uint8).tolist() == [[0, 255, 255]]
    got = vector_op(float32.to_bits([[-0.6, 2.5, 255.5, np.inf, np.nan]]), dtype=fp32, out=uint8)
    assert (got.dtype, got.tolist()) == (np.uint8, [[0, 2, 255, 255, 0]])
    b = np.array([[0x0001, 0x83FF, 0x7C01, 0x7BFF]], np.uint16)  # subnormal numbers, NaN, the largest
    assert vector_op(b.view(np.float16), dtype=fp32).tolist() == [[0x33800000, 0xB87FC000, 0x7F802000, 0x477FE000]]
    assert vector_op(b.view(np.float16), dtype=fp32, out=fp16).tolist() == [[0x0001, 0x83FF, 0x7E00, 0x7BFF]]
    assert vector_op(words(65519, 65520, -3), out=fp16).tolist() == [[0x7BFF, 0x7C00, 0xC200]]
    with pytest.raises(ValueError, match="fp16 rows need dtype FP32, not INT32"):
        vector_op(b.view(np.float16))


@pytest.mark.parametrize(("out", "low", "high"), [(ElementType.INT8, -128, 127), (ElementType.UINT8, 0, 255)])
@pytest.mark.parametrize("zero_point", [-7, 0, 3, 128])
def test_zero_points(out, low, high, zero_point):
    """Quantisation, round(x s) + z saturated, and its inverse, (q - z) s, are a chain each."""
    rng = np.random.default_rng(1)
    sums = rng.integers(-(1 << 14), 1 << 14, (50, 8)).astype(np.int32)
    sums[0] = [1, 3, 5, -1, -3, 2**31 - 1, -(2**31), 0]
    factor = np.float32(0.5 if zero_point == 3 else 0.0173)  # with 0.5 half of all are ties
    quantise = Chain(
        multiply=Operand.SPLAT0, function=Function.ROUND, binary2=BinaryOp.ADD, binary2_operand=Operand.SPLAT1
    )
    splats = (int(float32.to_bits(factor)), int(float32.to_bits(zero_point)), zero_point, 0)
    registers = RowRegisters(8)

    def run(chain: Chain, rows: np.ndarray, to: ElementType) -> np.ndarray:
        inputs = ChainInputs(source_words(rows, ElementType.INT32), None, None, splats, (0, 0, 0), 0)
        return convert(*chain_rows(chain, inputs, registers, dtype=ElementType.INT32, out=to), to)

    got = run(quantise, sums, out)
    rounded = np.rint(sums.astype(np.float32) * factor).astype(np.float64)
    assert np.array_equal(got, np.clip(rounded + zero_point, low, high))

    restore = Chain(binary=BinaryOp.SUB, binary_operand=Operand.SPLAT2, multiply=Operand.SPLAT0)
    back = float32.to_float(run(restore, got, ElementType.FP32))
    assert np.array_equal(back, (got.astype(np.int32) - zero_point).astype(np.float32) * factor)


def test_bad_arguments():
    with pytest.raises(ValueError, match="b_op is ADD"):
        vector_op(words(1), b_op=BinaryOp.ADD)
    with pytest.raises(TypeError, match="int64"):
        vector_op(np.array([[1]]))
    with pytest.raises(ValueError, match="3"):
        vector_op(words(1), words(1), b_op=3)
