"""All queues at once on the whole chip: the gateware against the golden model, and software that interferes."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sley.abi.config import ChipConfig, preset
from sley.abi.faults import FaultCode, QueueState, Unit
from sley.abi.packets import PacketOp, encode_packet
from sley.sim.engines.design_text import cached_rtlil
from sley.sim.engines.fast import FastTransport
from sley.sim.engines.model import ModelTransport
from sley.sim.engines.options import EngineOptions, default_engine
from sley.sim.memory.dram import DramTiming
from sley.sim.testing.queues import AREA, BUSY, FENCE, HANGS, LOOPS, WATCHDOG, Host, Traffic, Work

MEMORY = 1 << 20
ONE = preset("base")
TWO = preset("nano").replace(queues=8, cores_x=2)

pytestmark = pytest.mark.skipif(default_engine() != "fast", reason="no C compiler")
Open = Callable[..., Host]


@pytest.fixture
def chip() -> Iterator[Open]:
    opened = []

    def open_one(config: ChipConfig, **options: Any) -> Host:
        text = cached_rtlil(config)
        opened.append(FastTransport(text, config.bus_bytes, EngineOptions(MEMORY, DramTiming(**options))))
        return Host(opened[-1], config)

    yield open_one
    for transport in opened:
        transport.close()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "config", [pytest.param(ONE, id="one core"), pytest.param(TWO, id="two cores", marks=pytest.mark.slow)]
)
def test_random_traffic_against_the_model(chip: Open, config: ChipConfig, seed: int) -> None:
    """Memory, indices and records bit for bit, but for the number of the core, which is a matter of time."""
    traffic = Traffic(config, seed, 150)
    model = Host(ModelTransport(config, MEMORY), config)
    latency = random.Random(seed).choice([1, 17, 60])
    real = chip(config, latency=latency)
    for host in (model, real):
        host.settle(traffic.start(host))
    assert traffic.memory(real) == traffic.memory(model)
    for work in traffic.works:
        got, expected = real.record(work.queue), model.record(work.queue)
        if config.cores > 1:
            del got["ERROR.core"], expected["ERROR.core"]
        assert got == expected
        assert got["ERROR.code"] == work.code
    fences = sum(1 << work.queue for work in traffic.works if work.code is FaultCode.NONE)
    assert real.read("CHIP.IRQ_STATUS") == model.read("CHIP.IRQ_STATUS") == {"fence": fences, "error": fences ^ 0xFF}


BOUND = 3000
"""Cycles to the end of an aborted queue: a copy's or packet's slice of others, and a memory that answers after 60."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_abort_at_random_times(chip: Open, seed: int) -> None:
    """Whatever a queue does when it is aborted or turned off: it stops soon, and the others do not notice."""
    rng = random.Random(seed)
    traffic = Traffic(TWO, 100 + seed, 200, faults=False)
    real = chip(TWO, latency=rng.choice([1, 60]))
    # A queue on whose signals nobody waits: the last work is independent of it.
    victims = rng.sample(range(TWO.queues), 2)
    for queue in victims:
        endless = [
            traffic.launch(Work(queue), rng.choice([HANGS, LOOPS]), rng.randint(1, 9), arg0=0, arg1=1),
            encode_packet(PacketOp.COPY, src=0, dst=AREA * queue + 0x5000, bytes=0x2F00),
            encode_packet(PacketOp.WAIT, address=traffic.shared + 0x100, value=1),
        ]
        work = traffic.works[queue]
        kept = [packet for packet in work.packets if packet[0] == PacketOp.SIGNAL]
        work.packets = [*work.packets[:-1], rng.choice(endless), *kept, work.packets[-1]]
    ends = traffic.start(real, victims)
    real.transport.advance(rng.randrange(20_000))
    for queue in victims:
        enable = rng.randrange(2)
        done = real.read(f"QUEUE{queue}.READ_INDEX")["index"] == ends[queue]
        real.write(f"QUEUE{queue}.CONTROL", enable=enable, abort=1)
        real.write(f"QUEUE{queue}.CONTROL", enable=enable, abort=0)
        real.transport.advance(BOUND)
        assert real.state(queue) == (QueueState.ERROR if enable else QueueState.DISABLED), real.record(queue)
        record = real.record(queue)
        assert record["ERROR.code"] == (FaultCode.ABORTED if enable else FaultCode.NONE)
        if enable and record["ERROR.unit"] == Unit.SEQUENCER:
            assert not done
        # For those who wait for its signals.
        real.transport.write_memory(traffic.shared + 16 * queue, (1000).to_bytes(8, "little"))
    others = {queue: end for queue, end in ends.items() if queue not in victims}
    real.settle(others)
    model = Host(ModelTransport(TWO, MEMORY), TWO)
    calm = Traffic(TWO, 100 + seed, 200, faults=False)
    model.settle(calm.start(model))
    for queue in others:
        area = slice(AREA * queue, AREA * (queue + 1))
        assert traffic.memory(real)[area] == calm.memory(model)[area]
        assert real.record(queue) == model.record(queue)
    # The chip is as good as new for them.
    for queue in victims:
        real.write(f"QUEUE{queue}.CONTROL", enable=0)
        real.transport.advance(100)
        assert real.state(queue) == QueueState.DISABLED
        real.open(queue, AREA * queue)
        packet = encode_packet(PacketOp.FENCE, address=AREA * queue + FENCE, sequence=77)
        real.transport.write_memory(AREA * queue, packet)
        real.write(f"DOORBELL{queue}.WRITE_INDEX", index=1)
        real.settle({queue: 1})
        assert real.transport.read_memory(AREA * queue + FENCE, 1) == bytes([77])


def test_watchdog_counts_from_the_last_instruction(chip: Open) -> None:
    """A loop with a unit instruction in it runs on for ever; one without ends after so many cycles, at its place."""
    real = chip(ONE)
    traffic = Traffic(ONE, 1, 0, faults=False)
    for work, text in zip(traffic.works, (LOOPS, BUSY), strict=False):
        work.packets = [traffic.launch(work, text, 1)]
    traffic.start(real)
    real.transport.advance(WATCHDOG)
    assert real.state(0) == QueueState.LAUNCHED
    real.transport.advance(WATCHDOG)
    record = real.record(0)
    assert (record["ERROR.code"], record["ERROR.unit"], record["ERROR_PC.pc"]) == (FaultCode.WATCHDOG, 0, 1)
    real.transport.advance(5 * WATCHDOG)
    assert real.state(1) == QueueState.LAUNCHED
    real.write("QUEUE1.CONTROL", enable=1, abort=1)
    real.transport.advance(200)
    record = real.record(1)
    assert (record["ERROR.code"], record["ERROR.unit"]) == (FaultCode.ABORTED, Unit.SEQUENCER)
