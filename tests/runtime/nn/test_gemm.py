"""What users get wrong with products: each a clear exception, and the device multiplies correctly afterwards."""

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from sley.abi.types import ElementType
from sley.driver import BadRequest
from sley.runtime import Buffer, Device, ShapeMismatch, UnsupportedType, blas
from sley.runtime.kernels.gemm.limits import MAX_K

Ones = Callable[..., Buffer]
Usable = Callable[[], None]


def test_wrong_type(device: Device, ones: Ones, usable: Usable) -> None:
    with pytest.raises(UnsupportedType, match=r"b is float32; gemm multiplies int8 or bfloat16: .* astype"):
        blas.gemm(ones(2, 3), ones(3, 2, dtype=np.float32))
    with pytest.raises(UnsupportedType, match=r"a is uint8; .* astype"):
        blas.gemm(ones(2, 3, dtype=np.uint8), ones(3, 2))
    with pytest.raises(UnsupportedType, match=r"a is int8 and b bfloat16; both .* use astype"):
        blas.gemm(ones(2, 3), ones(3, 2, dtype=ml_dtypes.bfloat16))
    with pytest.raises(UnsupportedType, match="bias is float64; it must be int32"):
        blas.gemm(ones(2, 3), ones(3, 2), np.ones(2), 1.0)
    with pytest.raises(UnsupportedType, match="not object"):
        device.array([None])
    with pytest.raises(UnsupportedType, match=r"int32 .* astype"):
        ones(2).write(np.ones(2, np.int32))
    usable()


def test_wrong_type_of_the_result(device: Device, ones: Ones, usable: Usable) -> None:
    a, b = ones(2, 3), ones(3, 2)
    with pytest.raises(
        UnsupportedType, match="the result is float64; gemm makes int32, float32, int8, uint8, bfloat16"
    ):
        blas.gemm(a, b, dtype=np.float64)
    with pytest.raises(UnsupportedType, match="the result is float16; gemm makes"):
        blas.gemm(a, b, out=device.empty((2, 2), np.float16))
    with pytest.raises(UnsupportedType, match=r"the result is int32; .* ask for float32"):
        blas.gemm(a, b, scale=0.5, dtype=np.int32)
    with pytest.raises(ShapeMismatch, match=r"out is .*int8.*; the result is int32"):
        blas.gemm(a, b, dtype=np.int32, out=device.empty((2, 2), np.int8))
    usable()


def test_bf16_on_a_chip(device: Device, ones: Ones, usable: Usable) -> None:
    a, b = (ones(*shape, dtype=ml_dtypes.bfloat16) for shape in ((2, 3), (3, 2)))
    if not device.config.has(ElementType.BF16):
        with pytest.raises(UnsupportedType, match=r"the operands are bfloat16; the chip \w+ multiplies int8 only"):
            blas.gemm(a, b)
        with pytest.raises(UnsupportedType, match=r"the result is bfloat16; the chip \w+ has no bf16: ask for float32"):
            blas.gemm(ones(2, 3), ones(3, 2), dtype=ml_dtypes.bfloat16)
    else:
        with pytest.raises(UnsupportedType, match=r"the result is int32; .* ask for float32"):
            blas.gemm(a, b, dtype=np.int32)
        with pytest.raises(UnsupportedType, match="bias is int32; it must be float32"):
            blas.gemm(a, b, np.ones(2, np.int32))
    usable()


def test_wrong_shape(device: Device, ones: Ones, usable: Usable) -> None:
    with pytest.raises(ShapeMismatch, match="3 columns against 4 rows"):
        blas.gemm(ones(2, 3), ones(4, 2))
    with pytest.raises(ShapeMismatch, match=r"a has shape \(3,\); .* or three dim.*: a vector .* a.reshape\(1, -1\)"):
        blas.gemm(ones(3), ones(3, 2))
    with pytest.raises(ShapeMismatch, match=r"b has shape \(3,\); .* or three dim.*b.reshape\(-1, 1\)"):
        blas.gemm(ones(2, 3), ones(3))
    with pytest.raises(ShapeMismatch, match=r"b has shape \(1, 1, 3, 2\); gemm needs two or three dimensions"):
        blas.gemm(ones(2, 3), ones(1, 1, 3, 2))
    for a, b in (((0, 3), (3, 2)), ((2, 0), (0, 2)), ((0, 2, 3), (3, 2))):
        with pytest.raises(ShapeMismatch, match="each at least 1"):
            blas.gemm(ones(*a), ones(*b))
    with pytest.raises(ShapeMismatch, match=r"bias has shape \(3,\); the result has 2 columns"):
        blas.gemm(ones(2, 3), ones(3, 2), np.ones(3, np.int32), 1.0)
    with pytest.raises(ShapeMismatch, match=r"the result is int32 of shape \(2, 2\)"):
        blas.gemm(ones(2, 3), ones(3, 2), out=ones(2, 2), dtype=np.int32)
    with pytest.raises(ShapeMismatch, match="do not fit"):
        ones(2).write(np.ones(3, np.int8))
    with pytest.raises(ShapeMismatch, match="2 bytes against 3"):
        device.stream.copy(ones(3), ones(2))
    usable()


def test_wrong_shape_of_a_transposed_operand(device: Device, ones: Ones, usable: Usable) -> None:
    with pytest.raises(ShapeMismatch, match=r"a has shape \(2, 3\) \(transposed\) and b \(3, 2\): 2 .* against 3"):
        blas.gemm(ones(2, 3), ones(3, 2), trans_a=True)
    with pytest.raises(ShapeMismatch, match=r"and b \(3, 2\) \(transposed\): 3 columns against 2 rows"):
        blas.gemm(ones(2, 3), ones(3, 2), trans_b=True)
    with pytest.raises(ShapeMismatch, match=r"bias has shape \(2,\); the result has 5 columns"):
        blas.gemm(ones(2, 3), ones(5, 3), np.ones(2, np.int32), 1.0, trans_b=True)
    usable()


def test_wrong_batch(device: Device, ones: Ones, usable: Usable) -> None:
    with pytest.raises(ShapeMismatch, match=r"a has shape \(2, 2, 3\) and b \(4, 3, 2\): batches of 2 and 4"):
        blas.gemm(ones(2, 2, 3), ones(4, 3, 2))
    with pytest.raises(ShapeMismatch, match="batches of 1 and 4"):
        blas.gemm(ones(1, 2, 3), ones(4, 3, 2))
    with pytest.raises(ShapeMismatch, match=r"the result is int32 of shape \(4, 2, 2\)"):
        blas.gemm(ones(2, 3), ones(4, 3, 2), out=device.empty((2, 2), np.int32))
    usable()


def test_sums_that_could_wrap(device: Device, ones: Ones, usable: Usable) -> None:
    deep = MAX_K + 1
    with pytest.raises(ShapeMismatch, match=f"K is {deep}; above {MAX_K} .*: split K"):
        blas.gemm(device.empty((1, deep), np.int8), device.empty((deep, 1), np.int8))
    with pytest.raises(BadRequest, match="could wrap"):
        blas.gemm(ones(1, 1), ones(1, 1), np.array([2**31 - 1], np.int32), 1.0)
    usable()


BOUND = 2**31 - 1 - 3 * 128 * 128  # of a bias with K = 3


def biased(device: Device, ones: Ones, bias: object) -> np.ndarray:
    return blas.gemm(ones(2, 3), ones(3, 2), bias, 1.0, dtype=np.float32).numpy()  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [-(2**31), 2**31 - 1, BOUND + 1, -BOUND - 1])
def test_no_bias_lets_a_sum_wrap(device: Device, ones: Ones, value: int) -> None:
    """From the host, from an array, from a view, and from an array that the device wrote."""
    host = np.array([5, value], np.int32)
    wrong = rf"bias of gemm_2x2x3 holds {abs(value)}, beyond {BOUND}: its sum could wrap in int32"
    array = device.array(np.array([1, 2, 5, value], np.int32))
    copied, written = device.empty(2, np.int32), device.array(np.zeros(2, np.int32))
    device.stream.copy(copied, device.array(host))
    for bias in (host, device.array(host), array[2:], copied):
        with pytest.raises(BadRequest, match=wrong):
            biased(device, ones, bias)
    assert (biased(device, ones, written) == 3).all()
    written.write(host)
    with pytest.raises(BadRequest, match=wrong):
        biased(device, ones, written)
    written[1:].write(np.array([4], np.int32))
    assert biased(device, ones, written)[1].tolist() == [8, 7]
    assert biased(device, ones, array[:2])[1].tolist() == [4, 5]  # the rest of the array is not part of the bias


def test_the_largest_bias(device: Device, ones: Ones) -> None:
    for value in (BOUND, -BOUND):
        bias = np.array([value, 0], np.int32)
        expected = (bias + 3).astype(np.float32)
        copied = device.empty(2, np.int32)
        device.stream.copy(copied, device.array(bias))
        for given in (bias, device.array(bias), copied):
            assert np.array_equal(biased(device, ones, given), [expected, expected])


def test_values_from_the_host_are_not_read_back(device: Device, ones: Ones) -> None:
    bias, copied = device.array(np.array([1, 2], np.int32)), device.empty(2, np.int32)
    device.stream.copy(copied, bias)
    biased(device, ones, copied)
    read = device.context.space.read
    reads = []
    device.context.space.read = lambda address, length: reads.append(address) or read(address, length)  # type: ignore
    for given in (bias, bias[:], copied):
        blas.gemm(ones(2, 3), ones(3, 2), given, 1.0)
    assert not reads
    device.stream.fill(bias, 0)
    blas.gemm(ones(2, 3), ones(3, 2), bias, 1.0)
    assert reads == [bias.address]


def test_a_graph_checks_its_bias_whenever_it_is_launched(device: Device, ones: Ones, usable: Usable) -> None:
    bias, other = (device.array(np.array([1, 2], np.int32)) for _ in range(2))
    out = device.empty((2, 2), np.float32)
    with device.stream.capture() as graph:
        blas.gemm(ones(2, 3), ones(3, 2), bias, 1.0, out=out)
        device.stream.copy(bias, device.array(np.array([0, -(2**31)], np.int32)))
    graph.launch()
    assert out.numpy()[0].tolist() == [4, 5]
    with pytest.raises(BadRequest, match=rf"bias of gemm_2x2x3 holds {1 << 31}, beyond {BOUND}"):
        graph.launch()
    graph.update(0, {"bias": other})
    graph.launch()
    other.write(np.array([0, -(2**31)], np.int32))
    with pytest.raises(BadRequest, match="could wrap in int32"):
        graph.launch()
    with device.stream.capture():
        device.stream.fill(bias, 0)
        with pytest.raises(BadRequest, match="the graph writes bias of gemm_2x2x3"):
            blas.gemm(ones(2, 3), ones(3, 2), bias, 1.0, out=out)
    usable()


def test_options_of_another_type(device: Device, ones: Ones, usable: Usable) -> None:
    a = ones(2, 2)
    for name, values in (("scale", ("x", "1.5")), ("beta", ("x", "1.5", [1]))):
        for value in values:
            with pytest.raises(BadRequest, match=rf"{name} is .*; it must be a number"):
                blas.gemm(a, a, **{name: value})  # type: ignore[arg-type]
    with pytest.raises(UnsupportedType, match=r"out is ndarray; .* device.empty makes one"):
        blas.gemm(a, a, out=np.zeros((2, 2), np.int32))  # type: ignore[arg-type]
    with pytest.raises(UnsupportedType, match=r"stream is 3; give one of device.streams"):
        blas.gemm(a, a, stream=3)  # type: ignore[arg-type]
    assert (blas.gemm(a, a, scale=np.float64(0.5)).numpy() == 1).all()
    usable()


def test_wrong_rows_of_factors(device: Device, ones: Ones, usable: Usable) -> None:
    a, b = ones(2, 3), ones(3, 4)
    with pytest.raises(UnsupportedType, match=r"scale is float64; it must be float32: .* astype"):
        blas.gemm(a, b, scale=np.ones(4))
    for wrong in (np.ones(3, np.float32), np.ones((1, 4), np.float32)):
        with pytest.raises(ShapeMismatch, match=r"scale has shape .*; the result has 4 columns: give \(4,\)"):
            blas.gemm(a, b, scale=wrong)
    with pytest.raises(BadRequest, match="argument scale of gemm_2x4x3 takes arrays whose elements are contiguous"):
        blas.gemm(a, b, scale=ones(4, 2, dtype=np.float32)[:, 0])
    row = ones(8, dtype=np.float32)
    with pytest.raises(BadRequest, match="out shares memory with scale"):
        blas.gemm(a, b, scale=row[:4], out=row.reshape(2, 4), dtype=np.float32)
    with pytest.raises(UnsupportedType, match=r"the result is int32; .* ask for float32"):
        blas.gemm(a, b, scale=row[:4], dtype=np.int32)
    usable()


def test_epilogue_without_scale(device: Device, ones: Ones, usable: Usable) -> None:
    for options in ({"relu": True}, {"bias": np.ones(1, np.int32)}, {"relu": True, "dtype": np.int8}):
        with pytest.raises(BadRequest, match=r"need a scale: .* give scale=1.0"):
            blas.gemm(ones(1, 1), ones(1, 1), **options)
    usable()


def test_beta_without_something_to_add_to(device: Device, ones: Ones, usable: Usable) -> None:
    a, b = ones(2, 2), ones(2, 2)
    with pytest.raises(BadRequest, match=r"beta is 0.5, the result float32; it needs an array out of float32"):
        blas.gemm(a, b, beta=0.5, dtype=np.float32)
    for kind in (np.int8, np.int32):
        with pytest.raises(BadRequest, match=rf"beta is 2.0, the result {np.dtype(kind)}; it needs an array out"):
            blas.gemm(a, b, beta=2, out=device.empty((2, 2), kind))
    usable()


@pytest.mark.parametrize("beta", [0.0, -0.0, 0, 1e-60])
def test_beta_of_zero_does_not_read_the_result(device: Device, ones: Ones, beta: float) -> None:
    out = device.array(np.full((5, 6), np.nan, np.float32))
    blas.gemm(ones(5, 7), ones(7, 6), scale=0.5, beta=beta, out=out)
    assert (out.numpy() == 3.5).all()
    with pytest.raises(BadRequest, match="it needs an array out of float32"):
        blas.gemm(ones(5, 7), ones(7, 6), beta=beta, dtype=np.float32)


def test_array_of_another_device(device: Device, ones: Ones, usable: Usable) -> None:
    with Device.open("model:nano?memory=256K") as other, pytest.raises(BadRequest, match="lives on another device"):
        blas.gemm(ones(2, 2), other.array(np.ones((2, 2), np.int8)))
    usable()


def test_result_over_an_operand(device: Device, ones: Ones, usable: Usable) -> None:
    a = ones(4, 4)
    with pytest.raises(BadRequest, match="out shares memory with a"):
        blas.gemm(a, ones(4, 4), scale=1.0, out=a)
    usable()


def test_result_over_part_of_an_operand(device: Device, ones: Ones, usable: Usable) -> None:
    x, w = ones(8, 12), ones(4, 4)
    with pytest.raises(BadRequest, match="out shares memory with a, which is still read"):
        blas.gemm(x[:, :4], w, scale=1.0, out=x[:, 3:7])
    with pytest.raises(BadRequest, match="out shares memory with b, which is still read"):
        blas.gemm(x[:, :4], x[4:, 4:8], scale=1.0, out=x[:, 7:11])
    if device.config.has(ElementType.BF16):
        y, v = ones(5, 4, dtype=np.float32), ones(4, 4, dtype=ml_dtypes.bfloat16)
        with pytest.raises(BadRequest, match="out shares memory with bias"):
            blas.gemm(v, v, y[1], out=y[:4])
        blas.gemm(v, v, y[4], out=y[:4])
        assert (y[:4].numpy() == 5).all()
    usable()


def test_views_that_a_product_does_not_take(device: Device, ones: Ones, usable: Usable) -> None:
    x, w = ones(8, 12), ones(4, 4)
    heads = x.reshape(4, 6, 4).transpose(2, 0, 1)  # what lies side by side is the batch
    for a, b, name in ((x[:4, ::3], w, "a"), (w, x[::2, ::2].T[:4], "b"), (heads, x[:6], "a")):
        with pytest.raises(BadRequest, match=rf"{name} is .*strides=.* side by side, a stride of 1 .*: give a copy"):
            blas.gemm(a, b)
    out = device.empty((8, 8), np.int32)
    for view in (out[:4, ::2], out[:4, :4].T):
        with pytest.raises(
            BadRequest, match=r"out is .*; gemm writes rows whose elements lie side by side, a stride of 4"
        ):
            blas.gemm(w, w, out=view)
    with pytest.raises(BadRequest, match="argument bias of gemm_4x4x4 takes arrays whose elements are contiguous"):
        blas.gemm(w, w, ones(4, 2, dtype=np.int32)[:, 0], 1.0)
    with pytest.raises(ShapeMismatch, match=r"the result is int32 of shape \(4, 4\)"):
        blas.gemm(w, w, out=out[:4])
    with pytest.raises(ShapeMismatch, match="4 columns against 12 rows"):
        blas.gemm(w, x.T)
    usable()


def test_factor_beyond_fp32_is_infinite(device: Device, ones: Ones, usable: Usable) -> None:
    result = blas.gemm(ones(2, 3), ones(3, 2), scale=1e39, dtype=np.float32)
    assert np.isposinf(result.numpy()).all()
    usable()
