import threading

import numpy as np
import pytest

from sley.abi.instructions import ARG_REGISTER
from sley.driver import BadRequest, Driver, NoCycleCounts, QueueFault
from sley.runtime import Device, Program, ShapeMismatch, blas


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
    assert later.time > event.time
    if device.driver.has_cycles:
        assert later.since(event) > 0
    else:
        with pytest.raises(NoCycleCounts):
            later.since(event)
    assert (array.numpy() == 2).all()


def test_timed(device: Device) -> None:
    array = device.empty(64, np.uint8)
    cycles = []
    for count in (0, 1, 8, 1):
        with device.stream.timed() as timing:
            for _ in range(count):
                device.stream.fill(array, 1)
        if not device.driver.has_cycles:
            with pytest.raises(NoCycleCounts):
                _ = timing.cycles
            return
        cycles.append(timing.cycles)
    nothing, one, eight, again = cycles
    assert 0 < nothing < one == again < eight < device.driver.time


def test_memory_statistics(device: Device) -> None:
    before = device.memory
    array = device.empty(1000, np.int8)
    assert device.memory.used == before.used + 1024
    assert device.memory.allocations == before.allocations + 1
    array.free()
    assert device.memory.used == before.used
    assert device.memory.peak >= before.used + 1024


def test_freed_memory_is_kept_at_hand(device: Device) -> None:
    before = device.memory
    for _ in range(5):
        array = device.empty(5000, np.int8)
        place = array.address
        device.stream.fill(array, 1)
        device.synchronize()
        array.free()
        device.context.driver.wait(lambda: not device.context.deferred, timeout=1000)
    after = device.memory
    assert device.empty(5000, np.int8).address == place
    assert after.reserved == before.reserved
    assert (after.hits, after.misses) == (before.hits + 5, before.misses)


def test_memory_freed_in_flight_is_not_given_away(device: Device) -> None:
    gate = device.array(np.zeros(8, np.uint8))
    array = device.array(np.full(64, 3, np.uint8))
    result = device.empty(64, np.uint8)
    device.stream.queue.wait(gate.address, 1)
    device.stream.copy(result, array)
    array.free()
    others = [device.array(np.full(64, 9, np.uint8)) for _ in range(10)]
    device.context.signal(gate.address, 1)
    assert (result.numpy() == 3).all()
    assert all((other.numpy() == 9).all() for other in others)


def test_callbacks_run_between_what_is_before_and_behind(device: Device) -> None:
    array = device.array(np.zeros(64, np.uint8))
    seen: list[int] = []
    for value in (1, 2, 3):
        device.stream.fill(array, value)
        device.stream.callback(lambda: seen.append(device.context.space.read(array.address, 1)[0]))
    device.synchronize()
    assert seen == [1, 2, 3]


def test_threads_with_a_stream_each(device: Device) -> None:
    failed: list[str] = []

    def work(number: int) -> None:
        random = np.random.default_rng(number)
        for _ in range(6):
            m, n, k = random.integers(1, 20, 3)
            a, b = random.integers(-128, 128, (m, k), np.int8), random.integers(-128, 128, (k, n), np.int8)
            stream = device.streams[number % 2]
            result = blas.gemm(device.array(a), device.array(b), stream=stream).numpy()
            if not np.array_equal(result, a.astype(np.int32) @ b):
                failed.append(f"{number}: {m} x {n} x {k}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert not failed
    assert not device.context.events


def test_two_clients_on_one_driver() -> None:
    with Driver.open("model:quad?memory=4M") as driver, Device(driver, queues=3) as first, Device(driver) as second:
        assert (len(first.streams), len(second.streams)) == (3, 5)
        values = np.random.default_rng(0).integers(-128, 128, (7, 7), np.int8)
        first.stream.launch(Program("junk", (0x77,)))
        for device in (second, first):
            product = blas.gemm(device.array(values), device.array(values))
            assert np.array_equal(product.numpy(), values.astype(np.int32) @ values)
            if device is second:
                with pytest.raises(QueueFault):
                    first.synchronize()
        with pytest.raises(BadRequest, match="needs at least one: 0 are free"):
            Device(driver)


def test_argument_registers_follow_the_contract() -> None:
    assert f"r{ARG_REGISTER} x" in str(Program("p", (1,), ("x",)))
