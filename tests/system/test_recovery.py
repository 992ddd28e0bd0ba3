"""After any fault or reset the same process runs the demo's networks to the right answer, on the same opened device."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from sley.abi.asm import assemble, words_to_bytes
from sley.abi.errors import SleyError
from sley.abi.instructions import INSTRUCTION_BYTES
from sley.abi.packets import PACKET_BYTES, PacketOp, encode_packet
from sley.abi.pages import ENTRY_BYTES, PAGE_BITS, PAGE_ENTRY, TABLE_ENTRIES, table_index
from sley.driver.context import Context
from sley.driver.device import Driver
from sley.driver.errors import ContextHang, ContextReset, DeviceHang, DeviceReset, QueueFault
from sley.driver.memory.buffer import Rights
from sley.examples.digits.inference import DeviceNetwork
from sley.examples.digits.quantise import QuantisedNetwork, quantise
from sley.examples.digits.run import load_digits, networks
from sley.runtime.device.device import Device
from sley.sim.engines.options import default_engine

ENGINE = "fast:nano?memory=4M" if default_engine() == "fast" else "model:nano?memory=4M"
IMAGES = 1
WATCHDOG = 5_000
NOWHERE = 0x3000_0000


@dataclass
class Demo:
    """The demo's networks, and what they must answer."""

    images: np.ndarray
    networks: list[tuple[QuantisedNetwork, list[np.ndarray]]]

    def check(self, runners: list[DeviceNetwork]) -> None:
        for runner, (_, expected) in zip(runners, self.networks, strict=True):
            for ours, layer in zip(runner.run(self.images), expected, strict=True):
                np.testing.assert_array_equal(ours, layer)

    def load(self, device: Device) -> list[DeviceNetwork]:
        return [DeviceNetwork(device, network) for network, _ in self.networks]


@pytest.fixture(scope="module")
def demo() -> Demo:
    pytest.importorskip("sklearn")
    from threadpoolctl import threadpool_limits

    digits = load_digits()
    found = []
    with threadpool_limits(1), Device.open("model:nano?memory=4M") as golden:
        for network in networks():
            network.train(digits.train[:200], digits.train_labels[:200], 1, lambda: None)
            quantised = quantise(network, digits.train[:100])
            found.append((quantised, DeviceNetwork(golden, quantised).run(digits.test[:IMAGES])))
    return Demo(digits.test[:IMAGES], found)


@pytest.fixture
def device() -> Iterator[Device]:
    """With one queue, so that another client has room."""
    with Driver.open(ENGINE, hang_cycles=20_000, watchdog=WATCHDOG) as driver:
        yield Device(driver, queues=1)


def run(context: Context, text: str | bytes) -> None:
    code = words_to_bytes(assemble(text)) if isinstance(text, str) else text
    mapping = context.map(context.allocate(len(code)), Rights.EXECUTE)
    context.space.write(mapping.address, code)
    context.queues[0].launch(mapping.address, len(code) // INSTRUCTION_BYTES, [], (2, 2, 1))


def packet(context: Context, data: bytes) -> None:
    context.queues[0].raw(data)


def bus_error(context: Context) -> None:
    """A page table made by hand leads behind the end of memory."""
    driver, address = context.driver, (TABLE_ENTRIES - 1) << 22
    root = driver.registers.value(f"CONTEXT{context.number}.ROOT", "page") << PAGE_BITS
    entry = PAGE_ENTRY.pack(valid=1, read=1, write=1, page=0x80000)
    driver.transport.write_memory(root + ENTRY_BYTES * table_index(address)[0], entry.to_bytes(ENTRY_BYTES, "little"))
    context.space.invalidate()
    packet(context, encode_packet(PacketOp.FILL, dst=address, bytes=4))


def wait_for_ever(context: Context) -> None:
    gate = context.heap.allocate(8)
    context.space.write(gate, bytes(8))
    context.queues[0].wait(gate, 1)


def in_flight(context: Context, reset: Callable[[], Any]) -> None:
    """A reset in the middle of a program."""
    run(context, "again: beq r0, r0, again\nend")
    context.driver.transport.advance(500)
    reset()


def bad_doorbell(context: Context) -> None:
    context.driver.registers.write(f"DOORBELL{context.queues[0].index}.WRITE_INDEX", index=0xFFFF)


LOAD = f"set load.run_bytes, #4\nadd r9, r0, #1\nadd r8, r0, #{NOWHERE}\nload r8, r0, r9 signal=0\nsync wait=0\nend"
INJECTED: dict[str, tuple[Callable[[Context], None], type[SleyError]]] = {
    "bad packet": (lambda c: packet(c, bytes(PACKET_BYTES)), QueueFault),
    "page fault of a packet": (lambda c: packet(c, encode_packet(PacketOp.FILL, dst=NOWHERE, bytes=4)), QueueFault),
    "page fault of a load": (lambda c: run(c, LOAD), QueueFault),
    "page fault of a store": (lambda c: run(c, LOAD.replace("load", "store")), QueueFault),
    "bus error": (bus_error, QueueFault),
    "illegal instruction": (lambda c: run(c, bytes(INSTRUCTION_BYTES)), QueueFault),
    "local address": (lambda c: run(c, "add r8, r0, #60000\nmatmul r8, r0, r8 signal=0\nsync wait=0\nend"), QueueFault),
    "semaphore leftover": (lambda c: run(c, "sync signal=1\nend"), QueueFault),
    "bad doorbell": (bad_doorbell, QueueFault),
    "watchdog": (lambda c: run(c, "sync wait=1\nend"), QueueFault),
    "wait for ever": (wait_for_ever, ContextHang),
    "reset of the context": (lambda c: in_flight(c, c.reset), ContextReset),
    "reset of the device": (lambda c: in_flight(c, c.driver.reset), DeviceReset),
    "reset by force": (lambda c: in_flight(c, c.driver.force), DeviceHang),
}


@pytest.mark.some(12)
@pytest.mark.parametrize("whose", ["own", "another's"])
@pytest.mark.parametrize("kind", INJECTED)
def test_the_demo_runs_after(demo: Demo, device: Device, kind: str, whose: str) -> None:
    """With the weights that were in memory before, and with fresh ones."""
    inject, error = INJECTED[kind]
    before = demo.load(device)
    if whose == "own":
        guilty = device.context
    else:
        guilty = device.driver.context()
        guilty.heap.chunk = 1 << 16
        guilty.queue()
    inject(guilty)
    with suppress(SleyError):
        guilty.queues[0].fence().wait()
    assert type(guilty.events[-1]) is error
    demo.check(before)
    demo.check(demo.load(device))
