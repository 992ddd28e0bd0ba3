"""Gangs on a small chip with 2 x 2 cores: loads that they share, and what happens when they do not."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from sley.abi.config import ChipConfig, preset
from sley.abi.counters import CounterGroup, ReadCycle
from sley.abi.faults import FaultCode, Unit
from sley.abi.instructions import Share
from sley.driver.device import Driver
from sley.driver.errors import BadRequest, QueueFault
from sley.hw.chip import Chip
from sley.runtime.assembler.kernel import KernelBuilder
from sley.runtime.assembler.operands import Register
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.device import Device
from sley.runtime.device.program import Program
from sley.runtime.kernels.gemm.launch import launch
from sley.runtime.kernels.gemm.problem import Problem
from sley.runtime.kernels.gemm.tiling import Plan, Tiling
from sley.sim.engines.design_text import cached_rtlil
from sley.sim.engines.fast import FastTransport
from sley.sim.engines.options import EngineOptions, default_engine
from sley.sim.engines.pysim import PysimTransport

pytestmark = [pytest.mark.slow, pytest.mark.skipif(default_engine() != "fast", reason="no C compiler")]

CHIP: ChipConfig = preset("nano").replace(name="square", cores_x=2, cores_y=2)
GRID = (2, 2)
BYTES = 16
SLOT = 256
"""Bytes of the result of a core."""
Body = Callable[[KernelBuilder, Register, Register], None]


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    transport = FastTransport(cached_rtlil(CHIP), CHIP.bus_bytes, EngineOptions(memory=1 << 20))
    with Device(Driver(transport, hang_cycles=20_000)) as opened:
        yield opened


def random_bytes(device: Device, count: int, seed: int = 0) -> tuple[Buffer, np.ndarray]:
    values = np.random.default_rng(seed).integers(0, 256, count).astype(np.uint8)
    return device.array(values), values


def product(device: Device) -> int:
    """A GEMM by a gang: the chip works. Returns its cycles."""
    random = np.random.default_rng(1)
    a, b = (random.integers(-128, 128, shape, np.int8) for shape in ((13, 9), (9, 14)))
    out = device.empty((13, 14), np.int32)
    problem = Problem(13, 14, 9)
    plan = Plan(problem, Tiling(4, 4, 8, 2, (2, 2, 1), gang=True), 0)
    operands = device.array(a), device.array(b)
    with device.stream.timed() as timing:
        launch(device.stream, problem, plan, *operands, out)
    assert np.array_equal(out.numpy(), a.astype(np.int32) @ b)
    return timing.cycles


def kernel(name: str, body: Body) -> Program:
    """A program with arguments ``data`` and ``out``; ``body`` gets the first and a register with 1; it loads to
    rows from 0 on, which are stored."""
    k = KernelBuilder(name, CHIP)
    data, out = k.arg("data"), k.arg("out")
    loaded = k.semaphore("loaded")
    x, y, z = k.block
    with k.scratch("at size") as (at, size):
        k.mul(at, y, 2)
        k.add(at, at, x)
        k.mul(size, z, 4)
        k.add(at, at, size)
        k.mul(at, at, SLOT)
        k.add(out, out, at)
    k.set(Unit.LOAD, run_bytes=BYTES, chunks=BYTES // CHIP.row_bytes)
    one = k.reg("one", 1)
    body(k, data, one)
    k.load(data, 0, 0, signal=loaded)
    k.set(Unit.STORE, run_bytes=SLOT)
    k.store(out, 0, one, wait=loaded)
    k.end()
    return k.build()


def shared(k: KernelBuilder, data: Register, one: Register, offset: int, row: int, share: Share) -> None:
    """16 bytes from ``offset``, 512 further for each row of cores that do not share along y, 256 along x."""
    x, y, _ = k.block
    with k.scratch("at step to") as (at, step, to):
        k.add(at, data, offset)
        for index, size, together in ((x, 256, Share.ROW), (y, 512, Share.COLUMN)):
            if not share & together:
                k.mul(step, index, size)
                k.add(at, at, step)
        k.mov(to, row)
        k.load(at, to, one, share=share)


def where(core: int, offset: int, share: Share) -> int:
    return offset + 256 * (core % 2) * (not share & Share.ROW) + 512 * (core // 2) * (not share & Share.COLUMN)


@pytest.mark.parametrize("seed", range(5))
def test_shared_loads(device: Device, seed: int) -> None:
    """Any order of loads of all kinds, three gangs: every core gets its bytes, and memory is read once for a group."""
    random = np.random.default_rng(seed)
    loads = [(int(random.integers(0, 240)), Share(int(random.integers(0, 4)))) for _ in range(16)]
    delays = random.integers(0, 60, 4)

    def body(k: KernelBuilder, data: Register, one: Register) -> None:
        x, y, _ = k.block
        with k.scratch("delay number") as (delay, number):
            k.mul(number, y, 2)
            k.add(number, number, x)
            k.mov(delay, 1)
            for core, cycles in enumerate(delays):
                with k.scratch("core") as (this,):
                    k.mov(this, core)
                    with k.if_(number, "==", this):
                        k.mov(delay, 1 + int(cycles))
            with k.loop(delay):
                k.mov(number, number)
        for index, (offset, share) in enumerate(loads):
            shared(k, data, one, offset, index * BYTES // CHIP.row_bytes, share)

    data, values = random_bytes(device, 2048, seed)
    out = device.array(np.zeros((3, 4, SLOT), np.uint8))
    program = kernel(f"shared{seed}", body)
    beats = {}
    for gang in (False, True, False):  # the first time every core fetches the program
        device.stream.fill(out, 0)
        with device.stream.counted() as count:
            device.stream.launch(program, [data, out], (*GRID, 3), gang)
        expected = np.zeros((3, 4, SLOT), np.uint8)
        for core in range(4):
            for index, (offset, share) in enumerate(loads):
                at = where(core, offset, share)
                expected[:, core, index * BYTES : (index + 1) * BYTES] = values[at : at + BYTES]
        assert np.array_equal(out.numpy(), expected), gang
        beats[gang] = count.counters.chip[CounterGroup.READ][ReadCycle.BEAT]
    groups = {Share.NONE: 4, Share.ROW: 2, Share.COLUMN: 2, Share.ALL: 1}
    saved = sum((BYTES // CHIP.row_bytes + (offset % 4 > 0)) * (4 - groups[share]) for offset, share in loads)
    assert beats[False] - beats[True] == 3 * saved


def faulty(device: Device, body: Body, gang: bool = True, grid: tuple[int, ...] = GRID) -> QueueFault:
    data, _ = random_bytes(device, 2048)
    out = device.array(np.zeros((8, SLOT), np.uint8))
    device.stream.launch(kernel("faulty", body), [data, out], grid, gang)
    with pytest.raises(QueueFault) as raised:
        device.synchronize()
    product(device)
    return raised.value


@pytest.mark.parametrize("guilty", range(4))
@pytest.mark.parametrize("before", [0, 1, 5])
def test_a_core_stops(device: Device, guilty: int, before: int) -> None:
    """A fault of one core is the record; the others, which wait for it, end too, and the chip works."""

    def body(k: KernelBuilder, data: Register, one: Register) -> None:
        for index in range(6):
            if index == before:
                with k.scratch("number core") as (number, core):
                    k.mul(number, k.block[1], 2)
                    k.add(number, number, k.block[0])
                    k.mov(core, guilty)
                    with k.if_(number, "==", core):
                        k.mov(core, CHIP.scratchpad_rows)
                        k.load(data, core, one)
            for share in (Share.ROW, Share.COLUMN, Share.ALL):
                shared(k, data, one, 16 * index, 0, share)

    fault = faulty(device, body, grid=(*GRID, 2))
    assert (fault.code, fault.unit, fault.core) == (FaultCode.LOCAL_ADDRESS, Unit.LOAD, guilty)
    assert fault.address == CHIP.scratchpad_rows
    assert fault.block == guilty


def test_a_core_ends_early(device: Device) -> None:
    """It asks for less than the others share with it."""

    def body(k: KernelBuilder, data: Register, one: Register) -> None:
        shared(k, data, one, 0, 0, Share.ROW)
        with k.if_(k.block[0], "==", one):
            shared(k, data, one, 64, 0, Share.ROW)

    fault = faulty(device, body)
    assert (fault.code, fault.unit) == (FaultCode.BUS_ERROR, Unit.LOAD)
    assert fault.core in (1, 3)


@pytest.mark.parametrize("what", ["address", "length", "group"])
def test_cores_that_do_not_share_the_same(device: Device, what: str) -> None:
    def body(k: KernelBuilder, data: Register, one: Register) -> None:
        with k.if_(k.block[0], "==", one):
            if what == "address":
                k.add(data, data, 4)
            if what == "length":
                k.set(Unit.LOAD, run_bytes=BYTES // 2)
            if what == "group":
                with k.if_(k.block[1], "==", one):
                    shared(k, data, one, 0, 0, Share.COLUMN)
        shared(k, data, one, 0, 0, Share.ROW)

    fault = faulty(device, body)
    assert (fault.code, fault.unit) == (FaultCode.BUS_ERROR, Unit.LOAD)


def test_a_circle(device: Device) -> None:
    """Each core first asks for what it shares with the next one."""

    def body(k: KernelBuilder, data: Register, one: Register) -> None:
        orders = {True: (Share.ROW, Share.COLUMN), False: (Share.COLUMN, Share.ROW)}
        with k.if_(k.block[0], "==", k.block[1]):
            for share in orders[True]:
                shared(k, data, one, 0, 0, share)
        with k.if_(k.block[0], "!=", k.block[1]):
            for share in orders[False]:
                shared(k, data, one, 0, 0, share)

    assert faulty(device, body).code == FaultCode.BUS_ERROR


def test_a_shared_load_of_nothing(device: Device) -> None:
    """All cores that share the load stop, the first one is the record."""

    def body(k: KernelBuilder, data: Register, one: Register) -> None:
        k.mov(data, 1 << 20)
        k.load(data, 0, one, share=Share.ALL)

    fault = faulty(device, body)
    assert (fault.code, fault.unit, fault.address) == (FaultCode.PAGE_FAULT, Unit.LOAD, 1 << 20)


def test_without_a_gang_nothing_is_shared(device: Device) -> None:
    """One block alone waits for nobody."""
    data, values = random_bytes(device, 64)
    out = device.array(np.zeros(SLOT, np.uint8))
    program = kernel("alone", lambda k, data, one: shared(k, data, one, 0, 0, Share.ALL))
    device.stream.launch(program, [data, out])
    assert np.array_equal(out.numpy()[:BYTES], values[:BYTES])


def test_the_grid_of_a_gang(device: Device) -> None:
    program = kernel("any", lambda k, data, one: None)
    with pytest.raises(BadRequest, match=r"it must be 2 x 2 x any number"):
        device.stream.launch(program, [0, 0], (4, 1), gang=True)


def test_reset_while_cores_wait_for_each_other(device: Device) -> None:
    """Shared reads that stand in the memory port are gone after a reset."""

    def body(k: KernelBuilder, data: Register, one: Register) -> None:
        with k.if_(k.block[0], "==", one):
            forever = k.label("forever")
            k.place(forever)
            k.jump(forever)
        shared(k, data, one, 0, 0, Share.ROW)

    data, _ = random_bytes(device, 64)
    out = device.array(np.zeros((4, SLOT), np.uint8))
    device.stream.launch(kernel("stuck", body), [data, out], GRID, True)
    device.driver.transport.advance(2_000)
    device.driver.reset()
    product(device)


@pytest.mark.campaign  # the lock-step tests compare this chip in every bit with Verilator
def test_engines_agree() -> None:
    """The gateware in Amaranth's simulator takes as many cycles as compiled."""
    options = EngineOptions(memory=1 << 20)
    cycles = set()
    for transport in (FastTransport(cached_rtlil(CHIP), CHIP.bus_bytes, options), PysimTransport(Chip(CHIP), options)):
        with Device(Driver(transport, hang_cycles=20_000)) as opened:
            cycles.add(product(opened))
    assert len(cycles) == 1
