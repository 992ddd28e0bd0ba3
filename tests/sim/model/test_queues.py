"""Queues of the golden model: aborted, turned off, sharing the cores, told together."""

import pytest

from sley.abi.config import preset
from sley.abi.faults import FaultCode, QueueState, Unit
from sley.abi.packets import PacketOp, encode_packet
from sley.sim.engines.model import ModelTransport
from sley.sim.testing.queues import AREA, BUSY, FENCE, HANGS, Host, Traffic

CONFIG = preset("nano").replace(queues=8)


@pytest.fixture(params=[True, False], ids=["compiled", "numpy"])
def host(request: pytest.FixtureRequest) -> Host:
    return Host(ModelTransport(CONFIG, 1 << 20, request.param), CONFIG)


def calm() -> Traffic:
    return Traffic(CONFIG, 1, 0, faults=False)


@pytest.mark.parametrize("enable", [0, 1])
@pytest.mark.parametrize("what", ["hang", "busy", "wait", "empty"])
def test_abort(host: Host, what: str, enable: int) -> None:
    """The others go on, and the core is free for them."""
    traffic = calm()
    first, second = traffic.works[:2]
    packets = {
        "hang": [traffic.launch(first, HANGS, 3, arg0=0, arg1=1)],
        "busy": [traffic.launch(first, BUSY, 3)],
        "wait": [encode_packet(PacketOp.WAIT, address=traffic.shared, value=1)],
        "empty": [],
    }
    first.packets = packets[what]
    traffic.start(host, unwatched=[0])
    host.transport.advance(50)
    host.write("QUEUE0.CONTROL", enable=enable, abort=1)
    host.write("QUEUE0.CONTROL", enable=enable, abort=0)
    host.transport.advance(5)
    record = host.record(0)
    assert record["STATE.state"] == (QueueState.ERROR if enable else QueueState.DISABLED)
    assert record["ERROR.code"] == (FaultCode.ABORTED if enable else FaultCode.NONE)
    if enable:
        assert record["ERROR.unit"] == (Unit.SEQUENCER if what in ("hang", "busy") else Unit.COMMAND)
    assert host.read("CHIP.IRQ_STATUS")["error"] == enable
    host.settle({second.queue: 1})
    assert host.transport.read_memory(AREA * second.queue + FENCE, 1) == bytes([101])


def test_turning_off_waits_for_the_grid(host: Host) -> None:
    traffic = calm()
    traffic.works[0].packets = [traffic.launch(traffic.works[0], HANGS, 1, arg0=0, arg1=1)]
    traffic.start(host, unwatched=[0])
    host.transport.advance(50)
    host.write("QUEUE0.CONTROL", enable=0)
    host.transport.advance(1000)
    assert host.state(0) == QueueState.LAUNCHED
    host.write("QUEUE0.CONTROL", enable=0, abort=1)
    host.transport.advance(5)
    assert host.state(0) == QueueState.DISABLED


def test_interrupts_told_together(host: Host) -> None:
    host.write("CHIP.IRQ_ENABLE", fence=0xFF, error=0xFF)
    host.write("CHIP.IRQ_COALESCE", count=9, cycles=3000)
    traffic = calm()
    host.settle(traffic.start(host))
    assert host.read("CHIP.IRQ_STATUS") == {"fence": 0xFF, "error": 0}
    assert not host.transport.wait_irq(1000)
    assert host.transport.wait_irq(3000)
    host.write("CHIP.IRQ_STATUS", fence=0xFF)
    assert not host.transport.wait_irq(10_000)
    host.write("CHIP.IRQ_COALESCE", count=8, cycles=1 << 20)
    for queue in range(8):
        host.write(f"QUEUE{queue}.CONTROL", enable=0)
    traffic.start(host)
    assert host.transport.wait_irq(1000)
    assert host.read("CHIP.IRQ_STATUS") == {"fence": 0xFF, "error": 0}
