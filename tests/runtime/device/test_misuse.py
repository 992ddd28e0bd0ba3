"""What users get wrong with memory, launches and kernels, and what the device finds: each a clear exception, and the
device multiplies correctly afterwards."""

from collections.abc import Callable

import numpy as np
import pytest

from sley.abi.config import preset
from sley.abi.faults import FaultCode, Unit, UnitState
from sley.driver import BadRequest, BufferFreed, ContextHang, OutOfDeviceMemory, QueueFault, QueueFull
from sley.runtime import Buffer, Device, KernelBuilder, KernelError, Program, UnsupportedType, blas
from sley.sim.engines.options import default_engine

ENGINES = ["model:nano?memory=1M", *(["fast:nano?memory=1M"] if default_engine() == "fast" else [])]
Ones = Callable[..., Buffer]
Usable = Callable[[], None]


def test_out_of_device_memory(device: Device, usable: Usable) -> None:
    with pytest.raises(OutOfDeviceMemory, match="free buffers"):
        device.empty(1 << 40, np.int8)
    usable()


def test_dropped_arrays_make_room(device: Device, usable: Usable) -> None:
    size = device.memory.largest_free * 2 // 3
    for _ in range(3):
        array = device.empty(size, np.uint8)
        device.stream.fill(array, 1)
        del array
    usable()


def test_freed_array(device: Device, ones: Ones, usable: Usable) -> None:
    array = ones(2, 2)
    array.free()
    for use in (
        array.free,
        array.numpy,
        lambda: array.write(np.ones((2, 2), np.int8)),
        lambda: blas.gemm(array, ones(2, 2)),
        lambda: blas.gemm(ones(2, 2), ones(2, 2), out=array),
        lambda: device.stream.fill(array, 0),
    ):
        with pytest.raises(BufferFreed, match=r"shape=\(2, 2\).* was freed"):
            use()
    usable()


def test_queue_full(device: Device, ones: Ones, usable: Usable) -> None:
    first, second = device.streams[:2]
    gate = device.array(np.zeros(8, np.uint8))
    first.queue.wait(gate.address, 1)
    first.queue.full_timeout = 0
    array = ones(8)
    for _ in range(63):
        first.fill(array, 0)
    with pytest.raises(QueueFull, match="all 64 slots"):
        first.fill(array, 0)
    first.queue.full_timeout = None
    second.queue.signal(gate.address, 1)
    for _ in range(100):
        first.fill(array, 3)
    assert (array.numpy() == 3).all()
    usable()


def test_unknown_packet(device: Device, usable: Usable) -> None:
    device.stream.queue.raw(b"\xff" * 64)
    with pytest.raises(QueueFault, match="BAD_PACKET"):
        device.synchronize()
    usable()


def test_unknown_instruction(device: Device, usable: Usable) -> None:
    device.stream.launch(Program("junk", (0x77,)))
    with pytest.raises(QueueFault, match="ILLEGAL_INSTRUCTION in the sequencer unit of core 0, instruction 0"):
        device.synchronize()
    usable()


@pytest.mark.parametrize("row", [-1, 1 << 15])
def test_local_address_out_of_range(device: Device, usable: Usable, row: int) -> None:
    k = KernelBuilder("far", device.config)
    k.add(k.reg("pad"), k.arg("x"), 0)
    at = k.reg("at", row)
    k.weights(at, 1)
    k.end()
    device.stream.launch(k.build(), {"x": 1})
    with pytest.raises(QueueFault, match=rf"row that does not exist \(row {row}\)") as caught:
        device.synchronize()
    assert (caught.value.code, caught.value.unit, caught.value.pc) == (FaultCode.LOCAL_ADDRESS, Unit.MATRIX, 2)
    usable()


def test_memory_address_out_of_range(device: Device, usable: Usable) -> None:
    k = KernelBuilder("beyond", device.config)
    at, one = k.reg("at", 0x7FFFFF00), k.reg("one", 1)
    k.set(Unit.LOAD, run_bytes=device.config.row_bytes)
    k.load(at, 0, one)
    k.end()
    device.stream.launch(k.build())
    with pytest.raises(QueueFault, match="PAGE_FAULT in the load unit"):
        device.synchronize()
    usable()


def test_semaphore_deadlock_names_the_unit_states(device: Device, ones: Ones, usable: Usable) -> None:
    k = KernelBuilder("deadlock", device.config)
    never = k.semaphore("never")
    raised = k.semaphore("raised")
    k.sync(signal=raised)
    k.matmul(0, 0, 0, wait=never)
    k.sync(wait=never)
    k.end()
    array = ones(4)
    device.stream.launch(k.build())
    device.stream.fill(array, 9)
    with pytest.raises(ContextHang, match=r"sequencer WAIT, .*matrix WAIT, .*semaphores 1=1") as caught:
        device.synchronize()
    core = caught.value.dump.cores[0]
    assert core.running
    assert core.units[Unit.MATRIX] is core.units[Unit.SEQUENCER] is UnitState.WAIT
    assert core.units[Unit.LOAD] is UnitState.IDLE
    assert (array.numpy() == 1).all()
    usable()


@pytest.mark.parametrize("url", ENGINES)
def test_the_watchdog_ends_a_block_that_stands_still(url: str) -> None:
    """The other stream is busy all the time, so that there is always progress."""
    k = KernelBuilder("deadlock", preset("nano"))
    k.sync(wait=k.semaphore("never"))
    k.end()
    with Device.open(url, watchdog=2_000) as device:
        array = device.array(np.ones(4096, np.int8))
        device.stream.launch(k.build())
        for value in range(60):
            device.streams[1].fill(array, value)
        with pytest.raises(QueueFault, match="WATCHDOG in the sequencer unit of core 0, instruction 0"):
            device.stream.synchronize()
        device.synchronize()
        assert (array.numpy() == 59).all()


def test_a_failed_launch_takes_the_work_behind_it_along(device: Device, ones: Ones, usable: Usable) -> None:
    array = ones(4)
    before = device.stream.record()
    device.stream.launch(Program("junk", (0x77,)))
    device.stream.fill(array, 9)
    after = device.stream.record()
    with pytest.raises(QueueFault):
        after.wait()
    before.wait()
    assert (array.numpy() == 1).all()
    usable()


def test_launch_arguments(device: Device, usable: Usable) -> None:
    k = KernelBuilder("two", device.config)
    k.arg("x"), k.arg("y")
    k.end()
    program = k.build()
    with pytest.raises(KernelError, match="takes 2 arguments; given were 1"):
        device.stream.launch(program, [1])
    with pytest.raises(KernelError, match="takes the arguments x, y; given were x, z"):
        device.stream.launch(program, {"x": 1, "z": 2})
    with pytest.raises(BadRequest, match="argument 1 is"):
        device.stream.launch(program, [1, 1 << 33])
    with pytest.raises(BadRequest, match="grid is"):
        device.stream.launch(program, [1, 2], (1, 1, 1, 1))
    for grid in (4, 4.5, None, ()):
        with pytest.raises(BadRequest, match=r"grid is .*; give a tuple of one to three sides, such as \(4,\)"):
            device.stream.launch(program, [1, 2], grid)  # type: ignore[arg-type]
    with pytest.raises(BadRequest, match=r"grid is \(65536, 1, 1\); every side must be in 1..65535"):
        device.stream.launch(program, [1, 2], grid=(65536,))
    for value in (None, "5", [1]):
        with pytest.raises(BadRequest, match=r"argument 1 of two is .*; it must be a device array, an integer of 32"):
            device.stream.launch(program, [1, value])  # type: ignore[list-item]
    with pytest.raises(UnsupportedType, match=r"3 is no event; record\(\) of another stream makes one"):
        device.stream.wait(3)  # type: ignore[arg-type]
    with pytest.raises(KernelError, match="built for another chip"):
        device.stream.launch(Program("other", program.words, config_hash=1))
    usable()


def test_views_of_a_freed_array(device: Device, ones: Ones, usable: Usable) -> None:
    x, w = ones(8, 12), ones(4, 4)
    part = x[:4, :4]
    x.free()
    for use in (
        lambda: blas.gemm(part, w),
        lambda: blas.gemm(w, part.T),
        lambda: blas.gemm(w, w, scale=1.0, out=part),
        lambda: device.stream.copy(part[0], w[0]),
        lambda: device.stream.fill(part[0], 0),
    ):
        with pytest.raises(BufferFreed, match="is a view of an array that was freed"):
            use()
    usable()
