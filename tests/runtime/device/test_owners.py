"""Every entry that takes an array checks whose it is and whether it lives; a refused call touches nothing."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from sley.driver import BadRequest, BufferFreed, ContextClosed, SleyError
from sley.runtime import Buffer, Device, Program, UnsupportedType, blas

URL = "model:nano?memory=1M"
Call = Callable[[Device, Buffer], object]
NOTHING = Program("nothing", (), ("x", "y"))


def _ones(device: Device) -> Buffer:
    return device.array(np.ones((4, 4), np.int8))


def _update(device: Device, array: Buffer) -> None:
    with device.stream.capture() as graph:
        blas.gemm(_ones(device), _ones(device))
    graph.update(0, {"a": array})


CALLS: dict[str, Call] = {
    "fill": lambda device, array: device.stream.fill(array, 7),
    "copy to": lambda device, array: device.stream.copy(array, _ones(device)),
    "copy from": lambda device, array: device.stream.copy(_ones(device), array),
    "launch": lambda device, array: device.stream.launch(NOTHING, [0, array]),
    "launch by name": lambda device, array: device.stream.launch(NOTHING, {"x": array, "y": 1}),
    "update": _update,
    "gemm a": lambda device, array: blas.gemm(array, _ones(device), stream=device.stream),
    "gemm b": lambda device, array: blas.gemm(_ones(device), array),
    "gemm bias": lambda device, array: blas.gemm(_ones(device), _ones(device), array, 1.0),
    "gemm out": lambda device, array: blas.gemm(_ones(device), _ones(device), scale=1.0, out=array),
}


@pytest.fixture
def device() -> Iterator[Device]:
    with Device.open(URL) as opened:
        yield opened


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_arrays_of_another_device(device: Device, call: Call) -> None:
    """Their addresses are the same as those of arrays here, which stay as they are."""
    with Device.open(URL) as other:
        mine = [device.array(np.full((4, 4), number, np.int8)) for number in range(9)]
        theirs = [other.array(np.full((4, 4), 40 + number, np.int8)) for number in range(9)]
        assert [a.address for a in mine] == [b.address for b in theirs]
        submitted = [queue.head for queue in device.queues]
        for array in (theirs[3], theirs[4][:, :]):
            with pytest.raises(BadRequest, match="another device"):
                call(device, array)
        assert [queue.head for queue in device.queues] == submitted
        for number in range(9):
            assert (mine[number].numpy() == number).all()
            assert (theirs[number].numpy() == 40 + number).all()


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_freed_arrays(device: Device, call: Call) -> None:
    array = _ones(device)
    view = array[:, :]
    array.free()
    for freed in (array, view):
        with pytest.raises(BufferFreed, match="was freed"):
            call(device, freed)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_arrays_of_a_closed_device(call: Call) -> None:
    with Device.open(URL) as device:
        array = _ones(device)
    with pytest.raises(ContextClosed, match="was closed"):
        call(device, array)


def test_a_graph_checks_its_arrays_when_it_is_launched(device: Device) -> None:
    """Their memory may be others' by then."""
    a, b, c = (_ones(device) for _ in range(3))
    with device.stream.capture() as graph:
        device.stream.fill(a, 1)
        blas.gemm(b, c, out=device.empty((4, 4), np.int32))
    graph.launch()
    device.synchronize()
    submitted = [queue.head for queue in device.queues]
    c.free()
    with pytest.raises(BufferFreed, match="was freed"):
        graph.launch()
    assert [queue.head for queue in device.queues] == submitted
    graph.update(0, {"b": b})
    graph.launch()
    a.free()
    with pytest.raises(BufferFreed, match="was freed"):
        graph.launch()


def test_events_graphs_and_streams_of_another_device(device: Device) -> None:
    with Device.open(URL) as other:
        with other.stream.capture() as graph:
            other.stream.fill(_ones(other), 1)
        calls: list[Callable[[], object]] = [
            lambda: device.stream.wait(other.stream.record()),
            lambda: graph.launch(device.stream),
            lambda: device.stream.queue.submit(graph._recording),
            lambda: blas.gemm(_ones(device), _ones(device), stream=other.stream),
        ]
        for call in calls:
            with pytest.raises(BadRequest, match=r"of another (device|context)|on another device"):
                call()


def test_what_is_no_array(device: Device) -> None:
    for value in (np.ones((4, 4), np.int8), 3, None):
        with pytest.raises(UnsupportedType, match=r"is no array of the device; device.array\(values\) makes one"):
            device.stream.fill(value, 7)  # type: ignore[arg-type]
        with pytest.raises(UnsupportedType, match="is no array of the device"):
            device.stream.copy(_ones(device), value)  # type: ignore[arg-type]


def test_a_closed_device_says_so_on_every_call() -> None:
    with Device.open(URL) as device:
        array, event = _ones(device), device.stream.record()
        with device.stream.capture() as graph:
            device.stream.fill(array, 1)
    calls: list[Callable[[], object]] = [
        lambda: device.array(np.ones(3)),
        lambda: device.empty(3, np.int8),
        lambda: device.memory,
        device.synchronize,
        device.stream.synchronize,
        device.stream.record,
        lambda: device.stream.wait(event),
        lambda: device.stream.callback(print),
        lambda: device.stream.timed().__enter__(),
        lambda: device.stream.counted().__enter__(),
        graph.launch,
        array.numpy,
        array.free,
        lambda: array.write(np.ones((4, 4), np.int8)),
    ]
    for call in calls:
        with pytest.raises(ContextClosed, match="context 0 of the chip nano was closed; open another one"):
            call()
    assert issubclass(ContextClosed, SleyError)
    device.close()
