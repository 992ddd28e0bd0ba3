"""What arrays have of numpy's, what they refuse, and how objects print themselves."""

import copy
import pickle
from collections.abc import Iterator

import ml_dtypes
import numpy as np
import pytest

from sley.driver import BadRequest, ContextClosed
from sley.runtime import Device, Program, ShapeMismatch, UnsupportedType, blas

RNG = np.random.default_rng(5)
A, B = RNG.integers(-128, 128, (5, 7), np.int8), RNG.integers(-128, 128, (7, 3), np.int8)
PRODUCT = A.astype(np.int32) @ B.astype(np.int32)


@pytest.fixture
def device() -> Iterator[Device]:
    with Device.open("model:edge?memory=1M") as opened:
        yield opened


def test_host_arrays_are_operands(device: Device) -> None:
    a, b = device.array(A), device.array(B)
    bias = np.array([3, -4, 5], np.int32)
    for left, right in ((a, B), (A, b), (a, b)):
        assert np.array_equal(blas.gemm(left, right).numpy(), PRODUCT)
        assert np.array_equal(blas.gemm(left, right, bias, 1.0, dtype=np.float32).numpy(), PRODUCT + bias)
    assert np.array_equal(blas.gemm(A, B, stream=device.stream).numpy(), PRODUCT)
    out = device.empty((5, 3), np.int32)
    assert blas.gemm(A, B, out=out) is out
    assert np.array_equal(out, PRODUCT)
    with pytest.raises(UnsupportedType, match=r"a and b are host arrays; .* device.array\(values\)"):
        blas.gemm(A, B)
    with pytest.raises(UnsupportedType, match=r"a is int64; .* astype"):
        blas.gemm([[1, 2]], device.array(A))
    with pytest.raises(BadRequest, match="lives on another device"), Device.open("model:edge?memory=1M") as other:
        blas.gemm(a, B, stream=other.stream)


def test_the_operator(device: Device) -> None:
    a, b = device.array(A), device.array(B)
    for product in (a @ b, a @ B, A @ b):
        assert product.dtype == np.int32
        assert np.array_equal(product.numpy(), PRODUCT)
    batch = RNG.integers(-9, 9, (4, 5, 7), np.int8)
    assert np.array_equal((device.array(batch) @ b).numpy(), batch.astype(np.int32) @ B)
    low = A.astype(ml_dtypes.bfloat16), B.astype(ml_dtypes.bfloat16)
    product = device.array(low[0]) @ low[1]
    assert product.dtype == np.float32
    assert np.array_equal(product.numpy(), PRODUCT)
    with pytest.raises(ShapeMismatch, match=r"a has shape \(7,\)"):
        a[0] @ b


def test_size_and_conversions(device: Device) -> None:
    a = device.array(A)
    assert (a.size, a.ndim, len(a), a.T.shape) == (35, 2, 5, (7, 5))
    assert (device.array(np.int8(3)).size, device.array(np.int8(3)).ndim) == (1, 0)
    with pytest.raises(TypeError, match="has no axis"):
        len(device.array(np.int8(3)))
    for got, expected in (
        (np.asarray(a), A),
        (np.asarray(a.T), A.T),
        (np.array(a, np.float32), A.astype(np.float32)),
        (a.copy().numpy(), A),
        (a.T.copy().numpy(), A.T),
        (a.astype(np.float32).numpy(), A.astype(np.float32)),
        (a[1:3, ::2].astype(np.int32).numpy(), A[1:3, ::2].astype(np.int32)),
        (device.zeros((2, 3), np.int8).numpy(), np.zeros((2, 3), np.int8)),
        (device.zeros(4, np.float32).numpy(), np.zeros(4, np.float32)),
        (device.full((2, 2), -7, np.int32).numpy(), np.full((2, 2), -7, np.int32)),
        (np.stack([row.numpy() for row in a]), A),
    ):
        assert got.dtype == expected.dtype
        assert np.array_equal(got, expected)
    assert a.T.copy().contiguous
    copied = a.copy()
    copied.write(np.zeros_like(A))
    assert np.array_equal(a.numpy(), A)
    with pytest.raises(ValueError, match="copy=False is not possible"):
        np.asarray(a, copy=False)


def test_what_python_would_get_wrong_is_refused(device: Device) -> None:
    a = device.array(A)
    for call in (
        lambda: a == a,
        lambda: a != device.array(A),
        lambda: a == A,
        lambda: a == A,
        lambda: a == None,  # noqa: E711
        lambda: bool(a),
    ):
        with pytest.raises(TypeError, match=r"numpy\(\)"):
            call()
    for call in (lambda: np.add(a, 1), lambda: A + a):
        with pytest.raises(TypeError):
            call()
    for call in (lambda: pickle.dumps(a), lambda: copy.deepcopy(a), lambda: copy.copy(a)):
        with pytest.raises(TypeError, match=r"cannot be pickled or copied by Python: take array.numpy\(\), or"):
            call()
    assert {a: 1}[a] == 1
    assert a in [a]
    assert len({a, a, device.array(A)}) == 2


@pytest.mark.parametrize("shape", [(2, 2.5), 2.5, "23", None, (2, None)])
def test_shapes_that_are_none(device: Device, shape: object) -> None:
    for make in (lambda: device.empty(shape, np.int8), lambda: device.zeros(shape, np.int8)):  # type: ignore[arg-type]
        with pytest.raises(ShapeMismatch, match=r"shape is .*; it must be an integer or a tuple of integers, each 0"):
            make()
    assert device.empty(np.int64(3), np.int8).shape == device.empty([3], np.int8).shape == (3,)


def test_objects_print_themselves() -> None:
    with Device.open("model:nano?memory=1M") as device:
        a = device.array(A)
        view = a[:, 1:3]
        at = f"{a.address:#x}"
        event = device.stream.record()
        with device.stream.capture() as graph:
            device.stream.fill(a, 0)
            device.stream.launch(Program("nothing", (0,)))
        assert repr(a) == f"Buffer(shape=(5, 7), dtype=int8, address={at})"
        assert "strides=(7, 1)" in repr(view)
        assert repr(view).endswith(", view)")
        streams, used = len(device.streams), device.memory.used
        assert repr(device) == f"Device(nano, context 0, {streams} streams, {used:,} bytes in arrays)"
        assert repr(device.stream).startswith("Stream(Queue(0 of context 0, 1 packets submitted, ")
        assert repr(event) == "Event(Fence(1 of queue 0, not known to have passed))"
        assert repr(event.fence) == "Fence(1 of queue 0, not known to have passed)"
        event.wait()
        device.synchronize()
        assert device.queues[0].pending == 0
        assert repr(event) == "Event(Fence(1 of queue 0, passed))"
        assert repr(graph) == "Graph(2 packets, 1 of them launches)"
        graph.free()
        assert "freed" in repr(graph)
        assert repr(device.context).startswith("Context(0 of the chip nano, queues [0, ")
        assert repr(device.driver).startswith("Driver(nano, 1,048,576 bytes of memory, 1 contexts, ")
        kept = device.array(A)
        a.free()
        assert "freed" in repr(a)
        assert "freed" in repr(view)
    assert "device closed" in repr(kept)
    assert repr(device) == "Device(nano, context 0, closed)"
    assert repr(device.context) == "Context(0 of the chip nano, closed)"
    assert repr(device.driver) == "Driver(nano, 1,048,576 bytes of memory, closed)"


def test_closing_the_driver_closes_its_devices() -> None:
    device = Device.open("model:nano?memory=1M")
    a = device.array(A)
    device.driver.close()
    for call in (device.synchronize, a.numpy, lambda: a @ B, lambda: device.zeros(3, np.int8)):
        with pytest.raises(ContextClosed, match="context 0 of the chip nano was closed"):
            call()
    device.close()
