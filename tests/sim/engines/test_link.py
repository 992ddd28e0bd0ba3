"""The link between host and device: what accesses and copies take, and what the device does meanwhile."""

import pytest

from sley.sim.engines.link import HostLink, LinkedTransport, linked
from sley.sim.engines.options import EngineOptions
from sley.sim.engines.pysim import PysimTransport
from sley.sim.testing.copier import BEATS, CYCLES, DESTINATION, SOURCE, START, STATUS, Copier

LINK = HostLink(latency=50, bytes=8)
ACCESS = 2
"""Cycles of a register access without a link."""


def opened(link: HostLink = LINK) -> LinkedTransport:
    transport = linked(PysimTransport(Copier(4), EngineOptions(memory=1 << 16)), link)
    assert isinstance(transport, LinkedTransport)
    return transport


def test_no_link_is_no_transport() -> None:
    inner = PysimTransport(Copier(4), EngineOptions(memory=4096))
    assert linked(inner, HostLink()) is inner


@pytest.mark.parametrize(("length", "cycles"), [(0, 0), (1, 1), (8, 1), (9, 2), (4096, 512)])
def test_what_accesses_take(length: int, cycles: int) -> None:
    transport = opened()
    transport.write_memory(0, bytes(length))
    assert transport.cycles == LINK.latency + cycles
    before = transport.cycles
    assert transport.read_memory(0, length) == bytes(length)
    assert transport.cycles - before == 2 * LINK.latency + cycles
    before = transport.cycles
    value = transport.read32(CYCLES)
    assert before + LINK.latency <= value <= before + LINK.latency + ACCESS
    assert transport.cycles - before == 2 * LINK.latency + ACCESS
    before = transport.cycles
    transport.write32(SOURCE, 4)
    assert transport.cycles - before == LINK.latency + ACCESS


def test_without_a_bandwidth_a_copy_takes_the_latency() -> None:
    transport = opened(HostLink(latency=7))
    transport.write_memory(0, bytes(4096))
    assert transport.cycles == 7


def test_the_device_works_during_a_copy() -> None:
    """A copy of the device is over before a long one of the host, which costs it nothing."""
    transport = opened()
    transport.memory[256:260] = b"\x01\x02\x03\x04"
    for register, value in ((SOURCE, 256), (DESTINATION, 1024), (BEATS, 1), (START, 0)):
        transport.write32(register, value)
    assert transport.inner.read_memory(1024, 4) == bytes(4)
    transport.write_memory(4096, bytes(8 * 2000))
    assert transport.inner.read_memory(1024, 4) == b"\x01\x02\x03\x04"
    before = transport.cycles
    assert transport.wait_irq(10)
    assert transport.cycles - before == LINK.latency
    assert transport.read32(STATUS) == 0
