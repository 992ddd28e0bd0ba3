import pytest

from sley.abi.faults import MEANING, FaultCode, FaultRecord, QueueState, Unit, UnitState
from sley.driver.context import Context
from sley.driver.device import Driver
from sley.driver.errors import BadRequest, OutOfDeviceMemory, QueueFault, ResetFailed
from sley.driver.hardware.engines import open_transport


def test_dump_of_an_idle_device(driver: Driver, context: Context) -> None:
    dump = driver.dump()
    assert dump.summary() == "no block runs and no queue has work"
    assert [queue.state for queue in dump.queues] == [QueueState.READY] * driver.config.queues
    assert [core.number for core in dump.cores] == list(range(driver.config.cores))
    assert all(state is UnitState.IDLE for core in dump.cores for state in core.units.values())
    assert "CHIP.CONFIG_HASH" in str(dump)


def test_every_fault_is_explained() -> None:
    for code in FaultCode:
        assert all(part in FaultRecord(code, address=0x11).explain() for part in MEANING[code])
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


def test_a_device_that_stays_in_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    transport = open_transport("model:nano?memory=1M")
    driver = Driver(transport)
    status, read = driver.registers["CHIP.STATUS"].address, transport.read32
    monkeypatch.setattr(transport, "read32", lambda address: 1 if address == status else read(address))
    with pytest.raises(ResetFailed, match="still in reset"):
        driver.reset()
