"""What users get wrong: each a clear exception, and the device multiplies correctly afterwards."""

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from sley.abi.config import preset
from sley.abi.faults import FaultCode, Unit, UnitState
from sley.driver.errors import (
    BadRequest,
    BufferFreed,
    ContextHang,
    OutOfDeviceMemory,
    QueueFault,
    QueueFull,
)
from sley.runtime import Device, KernelBuilder, KernelError, Program, ShapeMismatch, UnsupportedType, blas
from sley.sim.engines.options import default_engine

Usable = Callable[[], None]

ENGINES = ["model:nano?memory=1M", *(["fast:nano?memory=1M"] if default_engine() == "fast" else [])]


def ones(device: Device, *shape: int, dtype: type = np.int8):
    return device.array(np.ones(shape, dtype))


def test_wrong_type(device: Device, usable: Usable) -> None:
    with pytest.raises(UnsupportedType, match=r"b is float32; gemm multiplies int8 or bfloat16: .* astype"):
        blas.gemm(ones(device, 2, 3), ones(device, 3, 2, dtype=np.float32))
    with pytest.raises(UnsupportedType, match=r"a is uint8; .* astype"):
        blas.gemm(ones(device, 2, 3, dtype=np.uint8), ones(device, 3, 2))
    with pytest.raises(UnsupportedType, match=r"a is int8 and b bfloat16; both .* use astype"):
        blas.gemm(ones(device, 2, 3), ones(device, 3, 2, dtype=ml_dtypes.bfloat16))
    with pytest.raises(UnsupportedType, match="bias is float64; it must be int32"):
        blas.gemm(ones(device, 2, 3), ones(device, 3, 2), np.ones(2), 1.0)
    with pytest.raises(UnsupportedType, match="not object"):
        device.array([None])
    with pytest.raises(UnsupportedType, match=r"int32 .* astype"):
        ones(device, 2).write(np.ones(2, np.int32))
    usable()


def test_wrong_type_of_the_result(device: Device, usable: Usable) -> None:
    a, b = ones(device, 2, 3), ones(device, 3, 2)
    with pytest.raises(UnsupportedType, match="dtype is float64; gemm makes int32, float32, int8, bfloat16"):
        blas.gemm(a, b, dtype=np.float64)
    with pytest.raises(UnsupportedType, match="dtype is uint8; gemm makes"):
        blas.gemm(a, b, out=device.empty((2, 2), np.uint8))
    with pytest.raises(UnsupportedType, match=r"dtype is int32; .* ask for float32"):
        blas.gemm(a, b, scale=0.5, dtype=np.int32)
    with pytest.raises(ShapeMismatch, match=r"out is .*int8.*; the result is int32"):
        blas.gemm(a, b, dtype=np.int32, out=device.empty((2, 2), np.int8))
    usable()


def test_bf16_on_a_chip(device: Device, usable: Usable) -> None:
    a, b = (ones(device, *shape, dtype=ml_dtypes.bfloat16) for shape in ((2, 3), (3, 2)))
    if not device.config.bf16:
        with pytest.raises(UnsupportedType, match="a is bfloat16; the chip nano multiplies int8 only"):
            blas.gemm(a, b)
        with pytest.raises(UnsupportedType, match="dtype is bfloat16; the chip nano has no bf16: ask for float32"):
            blas.gemm(ones(device, 2, 3), ones(device, 3, 2), dtype=ml_dtypes.bfloat16)
    else:
        with pytest.raises(UnsupportedType, match=r"dtype is int32; .* ask for float32"):
            blas.gemm(a, b, dtype=np.int32)
        with pytest.raises(UnsupportedType, match="bias is int32; it must be float32"):
            blas.gemm(a, b, np.ones(2, np.int32))
    usable()


def test_wrong_shape(device: Device, usable: Usable) -> None:
    with pytest.raises(ShapeMismatch, match="3 columns against 4 rows"):
        blas.gemm(ones(device, 2, 3), ones(device, 4, 2))
    with pytest.raises(ShapeMismatch, match=r"a has shape \(3,\)"):
        blas.gemm(ones(device, 3), ones(device, 3, 2))
    with pytest.raises(ShapeMismatch, match=r"b has shape \(1, 1, 3, 2\); gemm needs two or three dimensions"):
        blas.gemm(ones(device, 2, 3), ones(device, 1, 1, 3, 2))
    for a, b in (((0, 3), (3, 2)), ((2, 0), (0, 2)), ((0, 2, 3), (3, 2))):
        with pytest.raises(ShapeMismatch, match="each at least 1"):
            blas.gemm(ones(device, *a), ones(device, *b))
    with pytest.raises(ShapeMismatch, match=r"bias has shape \(3,\); b has 2 columns"):
        blas.gemm(ones(device, 2, 3), ones(device, 3, 2), np.ones(3, np.int32), 1.0)
    with pytest.raises(ShapeMismatch, match=r"the result is int32 of shape \(2, 2\)"):
        blas.gemm(ones(device, 2, 3), ones(device, 3, 2), out=ones(device, 2, 2), dtype=np.int32)
    with pytest.raises(ShapeMismatch, match="do not fit"):
        ones(device, 2).write(np.ones(3, np.int8))
    with pytest.raises(ShapeMismatch, match="2 bytes against 3"):
        device.stream.copy(ones(device, 3), ones(device, 2))
    usable()


def test_wrong_shape_of_a_transposed_operand(device: Device, usable: Usable) -> None:
    with pytest.raises(ShapeMismatch, match=r"a has shape \(2, 3\) \(transposed\) and b \(3, 2\): 2 .* against 3"):
        blas.gemm(ones(device, 2, 3), ones(device, 3, 2), trans_a=True)
    with pytest.raises(ShapeMismatch, match=r"and b \(3, 2\) \(transposed\): 3 columns against 2 rows"):
        blas.gemm(ones(device, 2, 3), ones(device, 3, 2), trans_b=True)
    with pytest.raises(ShapeMismatch, match=r"bias has shape \(2,\); b has 5 columns"):
        blas.gemm(ones(device, 2, 3), ones(device, 5, 3), np.ones(2, np.int32), 1.0, trans_b=True)
    usable()


def test_wrong_batch(device: Device, usable: Usable) -> None:
    with pytest.raises(ShapeMismatch, match=r"a has shape \(2, 2, 3\) and b \(4, 3, 2\): batches of 2 and 4"):
        blas.gemm(ones(device, 2, 2, 3), ones(device, 4, 3, 2))
    with pytest.raises(ShapeMismatch, match="batches of 1 and 4"):
        blas.gemm(ones(device, 1, 2, 3), ones(device, 4, 3, 2))
    with pytest.raises(ShapeMismatch, match=r"the result is int32 of shape \(4, 2, 2\)"):
        blas.gemm(ones(device, 2, 3), ones(device, 4, 3, 2), out=device.empty((2, 2), np.int32))
    usable()


def test_sums_that_could_wrap(device: Device, usable: Usable) -> None:
    deep = blas.MAX_K + 1
    with pytest.raises(ShapeMismatch, match=f"K is {deep}; above {blas.MAX_K} .*: split K"):
        blas.gemm(device.empty((1, deep), np.int8), device.empty((deep, 1), np.int8))
    with pytest.raises(BadRequest, match="could wrap"):
        blas.gemm(ones(device, 1, 1), ones(device, 1, 1), np.array([2**31 - 1], np.int32), 1.0)
    usable()


def test_epilogue_without_scale(device: Device, usable: Usable) -> None:
    for options in ({"relu": True}, {"bias": np.ones(1, np.int32)}, {"relu": True, "dtype": np.int8}):
        with pytest.raises(BadRequest, match=r"need a scale: .* give scale=1.0"):
            blas.gemm(ones(device, 1, 1), ones(device, 1, 1), **options)
    usable()


def test_beta_without_something_to_add_to(device: Device, usable: Usable) -> None:
    a, b = ones(device, 2, 2), ones(device, 2, 2)
    with pytest.raises(BadRequest, match=r"beta is 0.5, the result float32; it needs an array out of float32"):
        blas.gemm(a, b, beta=0.5, dtype=np.float32)
    for kind in (np.int8, np.int32):
        with pytest.raises(BadRequest, match=rf"beta is 2, the result {np.dtype(kind)}; it needs an array out"):
            blas.gemm(a, b, beta=2, out=device.empty((2, 2), kind))
    usable()


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


def test_freed_array(device: Device, usable: Usable) -> None:
    array = ones(device, 2, 2)
    array.free()
    for use in (
        array.free,
        array.numpy,
        lambda: array.write(np.ones((2, 2), np.int8)),
        lambda: blas.gemm(array, ones(device, 2, 2)),
        lambda: blas.gemm(ones(device, 2, 2), ones(device, 2, 2), out=array),
        lambda: device.stream.fill(array, 0),
    ):
        with pytest.raises(BufferFreed, match=r"shape=\(2, 2\).* was freed"):
            use()
    usable()


def test_array_of_another_device(device: Device, usable: Usable) -> None:
    with Device.open("model:nano?memory=256K") as other, pytest.raises(BadRequest, match="lives on another device"):
        blas.gemm(ones(device, 2, 2), ones(other, 2, 2))
    usable()


def test_queue_full(device: Device, usable: Usable) -> None:
    first, second = device.streams[:2]
    gate = device.array(np.zeros(8, np.uint8))
    first.queue.wait(gate.address, 1)
    first.queue.full_timeout = 0
    array = ones(device, 8)
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


def test_semaphore_deadlock_names_the_unit_states(device: Device, usable: Usable) -> None:
    k = KernelBuilder("deadlock", device.config)
    never = k.semaphore("never")
    raised = k.semaphore("raised")
    k.sync(signal=raised)
    k.matmul(0, 0, 0, wait=never)
    k.sync(wait=never)
    k.end()
    array = ones(device, 4)
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
        array = ones(device, 4096)
        device.stream.launch(k.build())
        for value in range(60):
            device.streams[1].fill(array, value)
        with pytest.raises(QueueFault, match="WATCHDOG in the sequencer unit of core 0, instruction 0"):
            device.stream.synchronize()
        device.synchronize()
        assert (array.numpy() == 59).all()


def test_a_failed_launch_takes_the_work_behind_it_along(device: Device, usable: Usable) -> None:
    array = ones(device, 4)
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
    with pytest.raises(KernelError, match="built for another chip"):
        device.stream.launch(Program("other", program.words, config_hash=1))
    usable()


def test_result_over_an_operand(device: Device, usable: Usable) -> None:
    a = ones(device, 4, 4)
    with pytest.raises(BadRequest, match="out shares memory with a"):
        blas.gemm(a, ones(device, 4, 4), scale=1.0, out=a)
    usable()


def test_result_over_part_of_an_operand(device: Device, usable: Usable) -> None:
    x, w = ones(device, 8, 12), ones(device, 4, 4)
    with pytest.raises(BadRequest, match="out shares memory with a, which is still read"):
        blas.gemm(x[:, :4], w, scale=1.0, out=x[:, 3:7])
    with pytest.raises(BadRequest, match="out shares memory with b, which is still read"):
        blas.gemm(x[:, :4], x[4:, 4:8], scale=1.0, out=x[:, 7:11])
    if device.config.bf16:
        y, v = ones(device, 5, 4, dtype=np.float32), ones(device, 4, 4, dtype=ml_dtypes.bfloat16)
        with pytest.raises(BadRequest, match="out shares memory with bias"):
            blas.gemm(v, v, y[1], out=y[:4])
        blas.gemm(v, v, y[4], out=y[:4])
        assert (y[:4].numpy() == 5).all()
    usable()


def test_views_that_a_product_does_not_take(device: Device, usable: Usable) -> None:
    x, w = ones(device, 8, 12), ones(device, 4, 4)
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
        blas.gemm(w, w, ones(device, 4, 2, dtype=np.int32)[:, 0], 1.0)
    with pytest.raises(ShapeMismatch, match=r"the result is int32 of shape \(4, 4\)"):
        blas.gemm(w, w, out=out[:4])
    with pytest.raises(ShapeMismatch, match="4 columns against 12 rows"):
        blas.gemm(w, x.T)
    usable()


def test_views_of_a_freed_array(device: Device, usable: Usable) -> None:
    x, w = ones(device, 8, 12), ones(device, 4, 4)
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


def test_factor_beyond_fp32_is_infinite(device: Device, usable: Usable) -> None:
    result = blas.gemm(ones(device, 2, 3), ones(device, 3, 2), scale=1e39, dtype=np.float32)
    assert np.isposinf(result.numpy()).all()
    usable()
