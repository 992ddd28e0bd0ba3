"""The command processor: interrupts, a fault and what follows it, copies, fills, signals, recorded packets."""

import numpy as np

from sley.abi.faults import FaultCode
from sley.bench.selftest.checks import Check
from sley.driver import QueueFault
from sley.runtime import Device, KernelBuilder

IRQ_CYCLES = 100_000
"""Patience with an interrupt."""
LENGTHS = (1, 7, 64, 1000)


def interrupts(device: Device, check: Check) -> None:
    """A fence of each queue raises the line and its own cause, and clearing lowers it; a masked cause does not."""
    driver = device.driver
    registers, transport = driver.registers, driver.transport
    device.synchronize()
    driver.service()
    with driver.lock:  # nobody else answers
        for stream in device.streams:
            queue = stream.queue
            before = registers.read("CHIP.IRQ_STATUS")
            check.expect(f"IRQ_STATUS before a fence of queue {queue.index}", {"fence": 0, "error": 0}, before)
            check.expect(f"line before a fence of queue {queue.index}", False, transport.wait_irq(1))
            fence = queue.fence()
            check.expect(f"line behind a fence of queue {queue.index}", True, transport.wait_irq(IRQ_CYCLES))
            causes = registers.read("CHIP.IRQ_STATUS")
            check.expect(f"IRQ_STATUS of queue {queue.index}", {"fence": 1 << queue.index, "error": 0}, causes)
            registers.write("CHIP.IRQ_STATUS", **causes)
            check.expect(f"line when queue {queue.index} is cleared", False, transport.wait_irq(1))
            fence.wait()
        enabled = registers.read("CHIP.IRQ_ENABLE")
        registers.write("CHIP.IRQ_ENABLE", fence=0, error=enabled["error"])
        fence = device.streams[0].queue.fence()
        transport.advance(1000)
        check.expect("line with fences masked", False, transport.wait_irq(1))
        registers.write("CHIP.IRQ_ENABLE", **enabled)
        check.expect("line when fences are unmasked", True, transport.wait_irq(1))
        fence.wait()
    check.about = f"{len(device.streams)} queues: raised, named, cleared, masked"


def coalescing(device: Device, check: Check) -> None:
    """Fences that are joined interrupt once, by their number or by the time."""
    driver = device.driver
    queue, registers, transport = device.streams[0].queue, driver.registers, driver.transport
    device.synchronize()
    driver.service()
    with driver.lock:
        driver.coalesce(3, (1 << 20) - 1)
        for number in (1, 2):
            fence = queue.fence()
            transport.advance(1000)
            check.expect(f"line behind fence {number} of 3", False, transport.wait_irq(1))
        fence = queue.fence()
        check.expect("line behind fence 3 of 3", True, transport.wait_irq(IRQ_CYCLES))
        registers.write("CHIP.IRQ_STATUS", **registers.read("CHIP.IRQ_STATUS"))
        driver.coalesce(0, 0)
        fence.wait()
    check.about = "three fences, one interrupt"


def faults(device: Device, check: Check) -> None:
    """A program that is none stops its queue with a record that names it; the queue runs on."""
    kernel = KernelBuilder("illegal", device.config)
    kernel.end()
    program = kernel.build()
    wrong = type(program)("illegal", (0xFF, *program.words), ())
    try:
        device.stream.launch(wrong)
        device.stream.synchronize()
        check.differs("launch of an instruction 0xff", "ILLEGAL_INSTRUCTION", "no fault")
    except QueueFault as fault:
        check.expect("code of the record", FaultCode.ILLEGAL_INSTRUCTION, fault.code)
        check.expect("instruction of the record", 0, fault.pc)
    device.stream.launch(program)
    device.stream.synchronize()
    check.about = "reported, and the queue runs on"


def copies(device: Device, check: Check) -> None:
    """Copies and fills of any length at any place, and what is around them."""
    values = np.random.default_rng(4)
    span = max(LENGTHS) + 16
    for length in LENGTHS:
        for offset in (0, 1, 5):
            data = values.integers(0, 256, span, np.uint8)
            source, target = device.array(data), device.full(span, 0x5A, np.uint8)
            device.stream.copy(target[offset : offset + length], source[3 : 3 + length])
            expected = np.full(span, 0x5A, np.uint8)
            expected[offset : offset + length] = data[3 : 3 + length]
            _bytes(check, f"copy of {length} to +{offset}", expected, target.numpy())
            device.stream.fill(target[offset : offset + length], 0xC3)
            expected[offset : offset + length] = 0xC3
            _bytes(check, f"fill of {length} at +{offset}", expected, target.numpy())
    check.about = f"{len(LENGTHS) * 3} of each, of up to {max(LENGTHS)} bytes"


def recorded(device: Device, check: Check) -> None:
    """Packets that are elsewhere in memory, executed twice."""
    a, b, c = (device.full(100, byte, np.uint8) for byte in (1, 2, 3))
    with device.stream.capture() as graph:
        device.stream.copy(c, b)
        device.stream.copy(b, a)
    for expected in (2, 1):
        graph.launch()
        _bytes(check, "recorded copies", np.full(100, expected, np.uint8), c.numpy())
    check.about = "two packets by INDIRECT, twice"


def queues(device: Device, check: Check) -> None:
    """Each queue but the first waits for the one before, by a semaphore in memory."""
    arrays = [device.full(64, number, np.uint8) for number in range(len(device.streams) + 1)]
    previous = None
    for number, stream in enumerate(device.streams):
        if previous is not None:
            stream.queue.wait_fence(previous)
        stream.copy(arrays[number + 1], arrays[number])
        previous = stream.queue.fence()
    device.synchronize()
    _bytes(check, "copies from queue to queue", np.zeros(64, np.uint8), arrays[-1].numpy())
    check.about = f"{len(device.streams)} queues, each behind the one before"


def _bytes(check: Check, what: str, expected: np.ndarray, found: np.ndarray) -> None:
    for place in np.flatnonzero(expected != found):
        check.differs(f"{what}, byte {place}", f"{expected[place]:#04x}", f"{found[place]:#04x}")
