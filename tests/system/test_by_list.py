"""LOAD and STORE by lists on a whole chip: gateware and golden model move the same bytes, and count the same work."""

import numpy as np
import pytest
from test_counters import exact

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.abi.instructions import Space
from sley.abi.vector.operations import BinaryOp
from sley.driver import QueueFault
from sley.runtime.assembler.kernel import KernelBuilder
from sley.runtime.device.device import Device
from sley.runtime.device.program import Program
from sley.sim.engines.options import default_engine

ENGINES = ["model:edge?memory=1M", *(["fast:edge?memory=1M"] if default_engine() == "fast" else [])]
RUNS, SLABS, SIZE = 21, 2, 37
"""Runs of so many bytes; slabs are the halves of a table's rows."""


def moves(config: ChipConfig) -> Program:
    """Gathers by a list, doubles the list when that is done, gathers by it again, and scatters by it."""
    k = KernelBuilder("moves", config)
    table, out, scattered, words = k.arg("table"), k.arg("out"), k.arg("scattered"), k.arg("words")
    listed, loaded, doubled, again = (k.semaphore(name) for name in ("listed", "loaded", "doubled", "again"))
    rows, chunks = -(-RUNS // config.array), -(-SIZE // config.row_bytes)
    half = SLABS * RUNS * chunks
    place, second, list_row = k.reg("place", 0), k.reg("second", half), k.reg("list_row", 5)
    k.set(Unit.LOAD, run_bytes=config.accumulator_row_bytes, mem_stride=config.accumulator_row_bytes)
    k.load(words, list_row, rows, space=Space.ACCUMULATOR, signal=listed)
    walk = {"count2": SLABS, "local_stride": chunks, "local_stride2": RUNS * chunks, "run_bytes": SIZE}
    k.set(Unit.LOAD, list_row=list_row, chunks=chunks, mem_stride2=SIZE, **walk)
    k.load(table, place, RUNS, by_list=True, wait=listed, signal=loaded)
    k.set(Unit.VECTOR, b_row=list_row)
    k.vector(list_row, list_row, rows, b_op=BinaryOp.ADD, wait=loaded, signal=doubled)
    k.load(table, second, RUNS, by_list=True, wait=doubled, signal=again)
    k.set(Unit.STORE, mem_stride=SLABS * SIZE, mem_stride2=SIZE, list_row=list_row, **walk)
    k.store(out, place, RUNS, wait=again)
    k.add(out, out, RUNS * SLABS * SIZE)
    k.store(out, second, RUNS)
    k.store(scattered, place, RUNS, by_list=True)
    k.end()
    return k.build()


@pytest.mark.slow
def test_a_list_that_is_written_between() -> None:
    random = np.random.default_rng(1)
    table = random.integers(0, 256, (2 * RUNS, SLABS * SIZE), np.uint8)
    order = random.permutation(RUNS)
    words = np.zeros(-(-RUNS // 8) * 8, np.int32)
    words[:RUNS] = order * SLABS * SIZE
    counts = []
    for engine in ENGINES:
        with Device.open(engine) as device:
            out, scattered = device.zeros((2, RUNS, SLABS * SIZE), np.uint8), device.zeros(table.shape, np.uint8)
            program = moves(device.config)
            with device.stream.counted() as count:
                device.stream.launch(program, [device.array(table), out, scattered, device.array(words)])
            gathered, again = out.numpy()
            assert (gathered == table[order]).all()
            assert (again == table[2 * order]).all()
            expected = np.zeros_like(table)
            expected[2 * order] = table[order]
            assert (scattered.numpy() == expected).all()
            counts.append(exact(count.counters))
    assert all(found == counts[0] for found in counts)


@pytest.mark.some(1)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_list_cannot_leave_the_address_space(engine: str) -> None:
    """An offset to what is not the context's is its fault; then another context's list works."""
    with Device.open(engine, hang_cycles=20_000) as device:
        table = device.zeros((2 * RUNS, SLABS * SIZE), np.uint8)
        out, scattered = device.zeros((2, RUNS, SLABS * SIZE), np.uint8), device.zeros(table.shape, np.uint8)
        words = np.zeros(-(-RUNS // 8) * 8, np.int32)
        words[RUNS // 2] = 1 << 30
        device.stream.launch(moves(device.config), [table, out, scattered, device.array(words)])
        with pytest.raises(QueueFault) as fault:
            device.synchronize()
        assert fault.value.code == FaultCode.PAGE_FAULT
        assert fault.value.unit == Unit.LOAD
        assert fault.value.address == table.address + (1 << 30)
