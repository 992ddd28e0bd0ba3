import re

import pytest

from sley.abi.faults import FaultCode, FaultRecord, QueueState, Unit, UnitState
from sley.abi.pages import AddressMode
from sley.driver.context import Context
from sley.driver.device import Driver
from sley.driver.errors import BadRequest, DeviceCorrupt, OutOfDeviceMemory, QueueFault, ResetFailed
from sley.driver.hardware.engines import open_transport
from sley.sim.engines.options import default_engine


def test_dump_of_an_idle_device(driver: Driver, context: Context) -> None:
    dump = driver.dump()
    assert dump.summary() == "no block runs and no queue has work"
    assert [queue.state for queue in dump.queues] == [QueueState.READY] * driver.config.queues
    assert [core.number for core in dump.cores] == list(range(driver.config.cores))
    assert all(state is UnitState.IDLE for core in dump.cores for state in core.units.values())
    assert "CHIP.CONFIG_HASH" in str(dump)


def test_every_fault_is_explained() -> None:
    texts = [FaultRecord(code, address=0x11).explain() for code in FaultCode]
    assert len(set(texts)) == len(FaultCode)
    for text in texts:
        assert re.fullmatch(r"\w.{4,} \((0x11|row 17|semaphores 0, 4)\); \w.{10,}[^.]", text), text
    assert "(semaphores 0, 4)" in FaultRecord(FaultCode.SEMAPHORE_LEFTOVER, address=0x11).explain()
    assert "(row -1)" in FaultRecord(FaultCode.LOCAL_ADDRESS, address=0xFFFFFFFF).explain()
    record = FaultRecord(FaultCode.LOCAL_ADDRESS, Unit.MATRIX, 3, 17, 4, 600)
    message = str(QueueFault(record, context=2, queue=1, position=90, packet="LAUNCH"))
    assert "queue 1 of context 2" in message
    assert "packet 90: LAUNCH" in message
    assert "matrix unit of core 3, instruction 17 of block 4" in message


def test_bad_parameters() -> None:
    for options in ({"log2_ring": 16}, {"hang_cycles": 0}):
        with pytest.raises(BadRequest, match=next(iter(options))):
            Driver.open("model:nano?memory=1M", **options)
    with Driver.open("model:nano?memory=4K") as driver, pytest.raises(OutOfDeviceMemory):
        driver.context()


@pytest.mark.parametrize("free", range(3))
def test_a_client_that_finds_no_memory_leaves_nothing_behind(free: int) -> None:
    """A context needs a page for its tables, one of its own, and a table to map it."""
    with Driver.open("model:nano?memory=1M") as driver:
        first = driver.context()
        buffer = first.allocate(driver.pages.statistics().free - free * 4096)
        state = driver.pages.statistics()
        for _ in range(3):
            with pytest.raises(OutOfDeviceMemory):
                driver.context()
            assert driver.pages.statistics().used == state.used
            assert driver.registers.read("CONTEXT1.ROOT")["mode"] == AddressMode.OFF
        assert list(driver.contexts) == [first.number]
        buffer.release()
        assert driver.context().number == 1


@pytest.mark.parametrize("name", ["RESET", "INVALIDATE"])
@pytest.mark.parametrize("cycles", [3_000, 400_000])
def test_no_fixed_count_contradicts_hang_cycles(monkeypatch: pytest.MonkeyPatch, name: str, cycles: int) -> None:
    """A device that takes its time is waited for as long as ``hang_cycles`` say, and no longer."""
    transport = open_transport("model:nano?memory=1M")
    driver = Driver(transport)
    layout = driver.registers["CHIP.STATUS"].layout
    mask = layout.fields["resetting" if name == "RESET" else "invalidating"].mask
    status, read, advance = driver.registers["CHIP.STATUS"].address, transport.read32, transport.advance
    left = [cycles]

    def advanced(count: int) -> None:
        left[0] -= count
        advance(count)

    monkeypatch.setattr(transport, "read32", lambda at: mask if at == status and left[0] > 0 else read(at))
    monkeypatch.setattr(transport, "advance", advanced)
    driver.hang_cycles = cycles + 200
    driver.reset() if name == "RESET" else driver.context()
    assert left[0] <= 0
    left[0], driver.hang_cycles = cycles, cycles - 1_000
    error = ResetFailed if name == "RESET" else DeviceCorrupt
    with pytest.raises(error, match=rf"after {cycles - 1_000} cycles: .* open it with larger hang_cycles"):
        driver.reset() if name == "RESET" else driver.context()


@pytest.mark.skipif(default_engine() != "fast", reason="no compiler here")
def test_reset_waits_for_slow_memory() -> None:
    with Driver.open("fast:nano?memory=1M&latency=120000", hang_cycles=10_000_000) as driver:
        context = driver.context()
        queue = context.queue()
        place = context.heap.allocate(64)
        queue.fill(place, 1, 64)
        driver.transport.advance(50_000)
        driver.reset()
        queue.fill(place, 2, 64)
        queue.fence().wait()
        assert context.space.read(place, 64) == bytes([2]) * 64
