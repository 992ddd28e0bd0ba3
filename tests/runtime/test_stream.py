import numpy as np
import pytest

from sley.abi.instructions import ARG_REGISTER
from sley.runtime.device import Device
from sley.runtime.errors import ShapeMismatch


def test_arrays_come_back_as_they_were(device: Device) -> None:
    random = np.random.default_rng(0)
    for values in (
        random.integers(-128, 128, (3, 5), np.int8),
        random.standard_normal((2, 3, 4)).astype(np.float32),
        np.array(7, np.int32),
        np.zeros((0, 4), np.int16),
        np.asfortranarray(random.integers(0, 9, (4, 6))),
        np.array([True, False]),
    ):
        array = device.array(values)
        assert (array.shape, array.dtype, array.nbytes) == (values.shape, values.dtype, values.nbytes)
        assert np.array_equal(array.numpy(), values)
        array.write(values + values if values.dtype != bool else values)
        array.free()
    with pytest.raises(ShapeMismatch, match="negative"):
        device.empty((-1,), np.int8)


def test_copies_and_fills_are_in_order(device: Device) -> None:
    a, b = device.array(np.arange(100, dtype=np.uint8)), device.empty(100, np.uint8)
    device.stream.copy(b, a)
    device.stream.fill(a, 7)
    assert np.array_equal(b.numpy(), np.arange(100))
    assert (a.numpy() == 7).all()


def test_events_order_streams_and_measure(device: Device) -> None:
    first, second = device.streams[:2]
    gate, array = device.array(np.zeros(8, np.uint8)), device.array(np.zeros(64, np.uint8))
    first.queue.wait(gate.address, 1)
    first.fill(array, 1)
    event = first.record()
    second.wait(event)
    second.fill(array, 2)
    assert not event.done
    device.context.signal(gate.address, 1)
    later = second.record()
    later.wait()
    assert event.done
    assert later.since(event) > 0
    assert (array.numpy() == 2).all()


def test_timed(device: Device) -> None:
    array = device.empty(64, np.uint8)
    with device.stream.timed() as timing:
        device.stream.fill(array, 1)
    assert timing.cycles > 0


def test_memory_statistics(device: Device) -> None:
    before = device.memory
    array = device.empty(1000, np.int8)
    assert device.memory.used == before.used + 1024
    assert device.memory.allocations == before.allocations + 1
    array.free()
    assert device.memory.used == before.used
    assert device.memory.peak >= before.used + 1024


def test_argument_registers_follow_the_contract() -> None:
    from sley.runtime.program import Program

    assert f"r{ARG_REGISTER} x" in str(Program("p", (1,), ("x",)))
