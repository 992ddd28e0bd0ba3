"""Random work for a chip behind any transport: products, kernels, copies, broken packets, register accesses."""

import random
from collections.abc import Callable
from contextlib import suppress

import numpy as np

from sley.abi.config import ChipConfig
from sley.abi.errors import SleyError
from sley.abi.instructions import FORMATS, Op
from sley.abi.packets import PACKET_BYTES
from sley.abi.registers import RegisterMap
from sley.abi.transport import EngineError, Transport
from sley.driver.device import Driver
from sley.runtime import blas
from sley.runtime.device.device import Device
from sley.runtime.device.program import Program

HANG_CYCLES = 2_000
"""For work that may well hang."""

UNLIKELY = {Op.BEQ, Op.BNE, Op.BLT, Op.BGE, Op.LOOP, Op.END}
"""What would end a random kernel at once or keep it for ever."""


class Traffic:
    """``count()`` is the number of cycles so far; each method goes on until it reaches ``until``."""

    def __init__(self, transport: Transport, config: ChipConfig, count: Callable[[], int], seed: int) -> None:
        self._transport, self._config, self._count = transport, config, count
        self._random = random.Random(seed)
        self._numbers = np.random.default_rng(seed)

    def work(self, until: int, largest: int) -> None:
        """What a correct program does; every result is checked."""
        device = Device(Driver(self._transport, hang_cycles=20_000))
        jobs = (self._product, self._product, self._copies)
        while self._count() < until:
            self._random.choice(jobs)(device, largest)

    def mischief(self, until: int) -> None:
        """Kernels and packets of random contents. Whatever the driver says to that, it is the same on any engine."""
        device = None
        while self._count() < until:
            with suppress(SleyError):
                device = device or Device(Driver(self._transport, hang_cycles=HANG_CYCLES))
                self._random.choice((self._kernel, self._kernel, self._packet))(device)
            if self._random.random() < 0.1:
                device = None

    def registers(self, until: int) -> None:
        """Reads and writes of registers, and of addresses where there is none, with pauses."""
        known = [register.address for register in RegisterMap(self._config)]
        while self._count() < until:
            address = self._random.choice(known) if self._random.random() < 0.9 else 4 * self._random.getrandbits(14)
            with suppress(EngineError):
                if self._random.random() < 0.5:
                    self._transport.read32(address)
                else:
                    self._transport.write32(address, self._word())
            if self._random.random() < 0.3:
                self._transport.advance(self._random.randrange(60))

    def _product(self, device: Device, largest: int) -> None:
        m, n, k = (self._random.randint(1, largest) for _ in range(3))
        a, b = (self._numbers.integers(-128, 128, shape, np.int8) for shape in ((m, k), (k, n)))
        sums = a.astype(np.int32) @ b.astype(np.int32)
        operands = device.array(a), device.array(b)
        if self._random.random() < 0.5:
            np.testing.assert_array_equal(blas.gemm(*operands).numpy(), sums)
            return
        bias = self._numbers.integers(-(1 << 20), 1 << 20, n, np.int32)
        scale, relu = self._random.uniform(0.1, 4) / (64 * k**0.5), self._random.random() < 0.5
        values = (sums + bias).astype(np.float32) * np.float32(scale)
        expected = np.clip(np.rint(np.maximum(values, 0) if relu else values), -128, 127).astype(np.int8)
        np.testing.assert_array_equal(blas.gemm(*operands, bias, scale, relu).numpy(), expected)

    def _copies(self, device: Device, largest: int) -> None:
        """Both queues copy and fill at once."""
        size = self._random.randint(1, 16 * largest)
        data = self._numbers.integers(-128, 128, size, np.int8)
        source = device.array(data)
        copies = [device.empty((size,), np.int8) for _ in device.streams]
        for stream, copy in zip(device.streams, copies, strict=True):
            stream.fill(copy, self._random.getrandbits(8))
            if self._random.random() < 0.8:
                stream.copy(copy, source)
        for copy in copies:
            copy.numpy()

    def _kernel(self, device: Device) -> None:
        words = [self._instruction() for _ in range(self._random.randint(1, 12))]
        program = Program("random", (*words, FORMATS[Op.END].layout.pack(op=Op.END)))
        grid = tuple(self._random.randint(1, 3) for _ in range(self._random.randint(1, 3)))
        device.stream.launch(program, [], grid)
        device.synchronize()

    def _instruction(self) -> int:
        """An instruction with random fields, now and then random bits."""
        if self._random.random() < 0.02:
            return self._random.getrandbits(128)
        op = self._random.choice([op for op in FORMATS if op not in UNLIKELY])
        fields = {"op": int(op)}
        for name, placed in FORMATS[op].layout.fields.items():
            if name != "op" and (name not in ("wait", "signal") or self._random.random() < 0.02):
                fields[name] = max(placed.field.bounds[0], min(placed.field.bounds[1], self._small()))
        return FORMATS[op].layout.pack(**fields)

    def _packet(self, device: Device) -> None:
        """A packet whose first words are likely to be right and the others random."""
        packet = bytearray(self._numbers.bytes(PACKET_BYTES))
        for index in range(PACKET_BYTES):
            if self._random.random() < 0.7:
                packet[index] = 0
        packet[0] = self._random.randrange(16)
        queue = self._random.choice(device.driver.queues)
        queue.raw(bytes(packet))
        queue.ring_doorbell()
        device.driver.transport.wait_irq(500)
        device.driver.service(poll=True)

    def _small(self) -> int:
        return self._random.choice((0, 1, 2, 3, self._random.getrandbits(5), self._random.getrandbits(12)))

    def _word(self) -> int:
        return self._random.choice((0, 1, self._small(), self._random.getrandbits(32)))
