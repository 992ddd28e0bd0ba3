"""Views of arrays, against numpy's."""

import gc
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sley.driver import BadRequest, BufferFreed
from sley.runtime import BadIndex, Buffer, Device, KernelBuilder, ShapeMismatch, UnsupportedType
from sley.runtime.device.layout import Layout

TYPES = [np.int8, np.bool_, np.int16, ml_dtypes.bfloat16, np.float32, np.int64]
FROM = 0x1000


@pytest.fixture(scope="module")
def model() -> Iterator[Device]:
    with Device.open("model:nano?memory=1M", hang_cycles=5_000) as opened:
        yield opened


def values(shape: tuple[int, ...], dtype: Any = np.int16) -> np.ndarray:
    """Different ones, as far as the type has them."""
    return np.arange(1, 1 + int(np.prod(shape)), dtype=np.int64).reshape(shape).astype(dtype)


def assert_same(view: Buffer, host: np.ndarray) -> None:
    assert view.shape == host.shape
    assert view.strides == host.strides or not host.size  # numpy has several for nothing
    assert (view.dtype, view.nbytes) == (host.dtype, host.nbytes)
    assert view.contiguous == host.flags.c_contiguous
    assert np.array_equal(view.numpy(), host)


@st.composite
def indices(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Numbers from both ends, slices with steps, a new axis, an Ellipsis in the place of some axes."""
    key: list[Any] = []
    for side in shape:
        ends = st.none() | st.integers(-side - 1, side + 1)
        slices = st.builds(slice, st.none() | st.integers(0, 1), ends, st.sampled_from([None, 1, 2, 2, 3]))
        key.append(draw(slices | slices | st.integers(-side, side - 1) if side else slices))
    if draw(st.booleans()):
        first = draw(st.integers(0, len(key)))
        key[first : draw(st.integers(first, len(key)))] = [Ellipsis]
    if draw(st.integers(0, 3)) == 0:
        key.insert(draw(st.integers(0, len(key))), None)
    return tuple(key)


@st.composite
def steps(draw: st.DrawFn, host: np.ndarray) -> list[tuple[str, tuple[Any, ...]]]:
    """Up to three ways to make a view of a view."""
    found = []
    for _ in range(draw(st.integers(1, 3))):
        names = ["index", "transpose", "T", *(["mT"] if host.ndim > 1 else []), *(["flat"] if host.size else [])]
        name = draw(st.sampled_from(names))
        args: tuple[Any, ...] = ()
        if name == "index":
            args = (draw(indices(host.shape)),)
            host = follow(host, [(name, args)])
        elif name == "transpose":
            args = tuple(draw(st.permutations(range(host.ndim))))
            host = host.transpose(args)
        elif name == "T":
            host = host.T
        elif name == "mT":
            host = host.swapaxes(-1, -2)
        elif not host.flags.c_contiguous:
            continue
        else:
            host = host.reshape(-1)
        found.append((name, args))
    return found


def follow(array: Any, names: list[tuple[str, tuple[Any, ...]]]) -> Any:
    for name, args in names:
        if name == "index":
            (key,) = args
            # numpy makes a number of an element, unless told to stay with arrays.
            array = array[key] if isinstance(array, Buffer) or Ellipsis in key else array[(*key, ...)]
        elif name == "flat":
            array = array.reshape(-1)
        elif name == "mT":
            array = array.mT if isinstance(array, Buffer) else array.swapaxes(-1, -2)
        else:
            array = array.T if name == "T" else array.transpose(*args)
    return array


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_random_views(model: Device, data: st.DataObject) -> None:
    """Shape, strides and contents are numpy's; what is written goes there and nowhere else."""
    shape = tuple(data.draw(st.lists(st.sampled_from([0, 1, 2, 3, 4, 5, 6, 7]), max_size=4)))
    host = values(shape, data.draw(st.sampled_from(TYPES)))
    whole = model.array(host)
    names = data.draw(steps(host))
    view, part = follow(whole, names), follow(host, names)
    assert_same(view, part)
    if part.size:
        start = part.__array_interface__["data"][0] - host.__array_interface__["data"][0]
        assert view.address == whole.address + start
    more = values(part.shape, np.int64)[..., ::-1] if part.ndim else values(())
    part[...] = more.astype(host.dtype)
    view.write(part.copy())
    assert np.array_equal(whole.numpy(), host)
    whole.free()


def test_a_view_is_written_in_the_longest_pieces() -> None:
    """So many bytes at a time as lie side by side, in any order of the axes."""
    whole = Layout.dense(FROM, (4, 6, 8), 2)
    data = values((4, 6, 8))

    def pieces(key: Any, *axes: int) -> list[tuple[int, int]]:
        order = axes or (0, 1, 2)
        layout = whole.transposed(*order).part(key)
        return [(at - FROM, len(piece)) for at, piece in layout.runs(data.transpose(order)[key])]

    assert pieces(...) == [(0, 384)]
    assert pieces(..., 2, 0, 1) == [(0, 384)]
    assert pieces(slice(1, 3)) == [(96, 192)]
    assert pieces((slice(1, 3), slice(2, 4))) == [(128, 32), (224, 32)]
    assert pieces((slice(None, None, 2), 3, slice(1, 4))) == [(50, 6), (242, 6)]
    assert pieces((slice(0, 1), slice(0, 2), slice(3, 4))) == [(6, 2), (22, 2)]
    assert pieces((0, slice(5, 5))) == []
    assert pieces((3, 5, slice(0, 6, 2))) == [(368, 2), (372, 2), (376, 2)]


def test_numpy_idioms(device: Device) -> None:
    host = values((4, 6, 8))
    array = device.array(host)
    for view, part in (
        (array[-1], host[-1]),
        (array[np.int64(2), 1:-1], host[2, 1:-1]),
        (array[..., 3], host[..., 3]),
        (array[:, None, ::2, 2:], host[:, None, ::2, 2:]),
        (array[1:3, ::2, 1:][1], host[1:3, ::2, 1:][1]),
        (array[9:], host[9:]),
        (array.T, host.T),
        (array.mT, host.swapaxes(1, 2)),
        (array.transpose(1, 0, 2), host.transpose(1, 0, 2)),
        (array.transpose((1, 0, 2)), host.transpose(1, 0, 2)),
        (array.transpose(-1, 0, 1), host.transpose(-1, 0, 1)),
        (array.reshape(24, 8), host.reshape(24, 8)),
        (array.reshape((2, -1)), host.reshape(2, -1)),
        (array[1:3].reshape(2, 2, 3, 8), host[1:3].reshape(2, 2, 3, 8)),
    ):
        assert_same(view, part)
        assert view.base is array
    for row, part in zip(array, host, strict=True):
        assert_same(row, part)
    assert array.base is None
    assert repr(array[:, 0]) == f"Buffer(shape=(4, 8), dtype=int16, strides=(96, 2), address={array.address:#x}, view)"


def test_a_view_keeps_its_array(device: Device) -> None:
    """Memory is given back with the last view."""
    host = values((16, 16))
    before = device.memory.used
    view = device.array(host)[3:5, 2:4].T
    gc.collect()
    others = [device.array(np.zeros((16, 16), np.int16)) for _ in range(3)]
    assert np.array_equal(view.numpy(), host[3:5, 2:4].T)
    del view, others
    gc.collect()
    assert device.memory.used == before


def test_a_view_of_a_freed_array(device: Device) -> None:
    array = device.array(values((4, 4)))
    view = array[1:, :2][1:]
    array.free()
    for use in (view.numpy, lambda: view.address, lambda: view.write(np.zeros((2, 2), np.int16))):
        with pytest.raises(BufferFreed, match=r"shape=\(2, 2\).* is a view of an array that was freed"):
            use()
    assert view.shape == (2, 2)


def test_a_view_is_not_freed(device: Device) -> None:
    array = device.array(values((4, 4)))
    for view in (array[1:], array[:], array[1:][1:], array.T):
        with pytest.raises(BadRequest, match=r"is a view; free the array that it is part of, its base: .*\(4, 4\)"):
            view.free()
    assert np.array_equal(array.numpy(), values((4, 4)))


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (4, r"\[4\] selects no part of shape \(4, 6\): index 4 is out of bounds for axis 0 with size 4"),
        ((0, -7), "index -7 is out of bounds for axis 1 with size 6"),
        ((0, 0, 0), r"\[0, 0, 0\] selects no part of shape \(4, 6\): too many indices"),
        ((..., ...), "single ellipsis"),
        (slice(None, None, -1), r"\[::-1\] goes backwards; steps of a view are 1 or more: reverse what numpy"),
        ((0, slice(5, 1, -2)), r"\[0, 5:1:-2\] goes backwards"),
        (slice(None, None, 0), "step cannot be zero"),
        (slice("a", None), "slice indices must be integers"),
        ([0, 1], r"an index is list; a view takes integers, slices, .* index what numpy\(\) returns"),
        (np.array([0, 1]), "an index is ndarray"),
        (np.array(1), "an index is ndarray"),
        ((slice(None), True), "an index is bool"),
        (np.bool_(True), "an index is bool"),
        (1.0, "an index is float"),
        ("x", "an index is str"),
    ],
    ids=str,
)
def test_what_is_no_view(model: Device, key: Any, message: str) -> None:
    with pytest.raises(BadIndex, match=message):
        model.array(values((4, 6)))[key]


def test_wrong_shapes_and_types(model: Device) -> None:
    array = model.array(values((4, 6)))
    with pytest.raises(ShapeMismatch, match=r"axes \(0, 2\) of shape \(4, 6\): .*each of its 2 axes comes once"):
        array.transpose(0, 2)
    with pytest.raises(ShapeMismatch, match=r"axes \(0, 0\)"):
        array.transpose(0, 0)
    with pytest.raises(ShapeMismatch, match=r"mT of shape \(6,\); a matrix has two axes or more"):
        array[0].mT  # noqa: B018
    with pytest.raises(ShapeMismatch, match=r"shape \(4, 6\) cannot become \(5, -1\)"):
        array.reshape(5, -1)
    for view in (array[:, 1:], array.T):
        with pytest.raises(
            BadRequest, match="not contiguous: reshape the array that it is part of, then take the part"
        ):
            view.reshape(-1)
    with pytest.raises(ShapeMismatch, match=r"values of shape \(6, 4\) do not fit"):
        array[:, 1:].write(values((6, 4)))
    with pytest.raises(UnsupportedType, match="values of type int8 do not fit"):
        array[1:].write(values((3, 6), np.int8))
    assert np.array_equal(array.numpy(), values((4, 6)))


def test_streams_take_views_whose_elements_are_contiguous(device: Device) -> None:
    host = values((6, 8))
    array, other = device.array(host), device.array(host)
    device.stream.copy(array[1:3], other[4:])
    device.stream.fill(array[5, 2:6], 0)
    host[1:3] = host[4:]
    host[5, 2:6] = 0
    assert np.array_equal(array.numpy(), host)
    with pytest.raises(BadRequest, match="overlap"):
        device.stream.copy(array[1:3], array[2:4])
    gaps = array[:, 1:]
    for use in (
        lambda: device.stream.fill(gaps, 0),
        lambda: device.stream.copy(gaps, other.reshape(-1)[:42]),
        lambda: device.stream.copy(other[:, 1:], device.empty((6, 7), np.int16)),
    ):
        with pytest.raises(BadRequest, match=r"(fill|copy) takes arrays whose elements are contiguous, not .*strides="):
            use()
    assert np.array_equal(array.numpy(), host)


def test_kernels_take_views_whose_strides_they_know(device: Device) -> None:
    array = device.array(values((6, 8)))
    k = KernelBuilder("reader", device.config)
    k.arg("x"), k.arg("y", strided=True)
    k.end()
    program = k.build()
    assert program.strided == {"y"}
    device.stream.launch(program, [array[2:], array[:, 2:]])
    with pytest.raises(BadRequest, match="argument x of reader takes arrays whose elements are contiguous"):
        device.stream.launch(program, [array[:, 2:], array])
    device.synchronize()


@pytest.mark.parametrize("seed", range(4))
def test_overlaps(seed: int) -> None:
    """Exactly those that have a byte in common."""
    rng = np.random.default_rng(seed)
    seen = set()
    for _ in range(200):
        parts = []
        for _ in range(2):
            shape = tuple(int(x) for x in rng.integers(1, 6, 3))
            parts.append(
                Layout.dense(FROM + int(rng.integers(0, 60)), shape, int(rng.choice([1, 2, 4])))
                .part(tuple(slice(int(rng.integers(0, side)), None, int(rng.integers(1, 4))) for side in shape))
                .transposed(*rng.permutation(3))
            )
        one, other = (
            {
                part.address + int(np.dot(place, part.strides)) + i
                for place in np.ndindex(part.shape)
                for i in range(part.itemsize)
            }
            for part in parts
        )
        assert parts[0].overlaps(parts[1]) == parts[1].overlaps(parts[0]) == bool(one & other), parts
        inside = max(one) >= min(other) and max(other) >= min(one)
        seen.add((inside, bool(one & other)))
    assert seen == {(True, True), (True, False), (False, False)}
