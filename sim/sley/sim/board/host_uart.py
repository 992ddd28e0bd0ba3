"""The serial adapter of a host, as gateware beside the design that is simulated."""

from typing import Any

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

CHUNK = 64
"""Bytes that are handed over in one piece."""
FRAME_BITS = 10
QUIET_BITS = 2 * FRAME_BITS


class HostUart(wiring.Component):
    """Sends and receives whole chunks of bytes, 8 data bits, 1 stop bit, so that software acts once for many of them.

    Parameters: ``clocks_per_bit``.
    Members: ``tx``, ``rx``: the line, as the host names it. ``load``: the bytes of ``chunk``, ``length`` of them, are
    to be sent; only while ``idle``. ``received``, ``count``: what arrived since the last ``take``, the last byte
    highest. ``broken``: a stop bit was missing. ``attention``: ``received`` is full, or
    something arrived and the line is quiet for the time of two bytes, or all is sent and ``hungry`` is high, or
    ``budget`` cycles have passed since ``take``.

    It shares nothing with the line's other end: a bit is sampled in the middle, counted from the edge of the start bit.
    """

    tx: Signal
    rx: Signal
    load: Signal
    chunk: Signal
    length: Signal
    idle: Signal
    hungry: Signal
    take: Signal
    budget: Signal
    received: Signal
    count: Signal
    broken: Signal
    attention: Signal

    def __init__(self, clocks_per_bit: int) -> None:
        self._clocks = clocks_per_bit
        number = range(CHUNK + 1)
        super().__init__(
            {
                "tx": Out(1, init=1),
                "rx": In(1, init=1),
                "load": In(1),
                "chunk": In(8 * CHUNK),
                "length": In(number),
                "idle": Out(1, init=1),
                "hungry": In(1),
                "take": In(1),
                "budget": In(32),
                "received": Out(8 * CHUNK),
                "count": Out(number),
                "broken": Out(1),
                "attention": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        quiet = self._receive(m)
        self._send(m)
        left = Signal.like(self.budget)
        with m.If(self.take):
            m.d.sync += left.eq(self.budget)
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)
        arrived = self.count != 0
        full = self.count == CHUNK
        m.d.sync += self.attention.eq(
            ~self.take & (full | (arrived & quiet) | (self.hungry & self.idle & ~self.load) | (left == 0))
        )
        return m

    def _send(self, m: Module) -> None:
        queue, left = Signal(8 * CHUNK), Signal.like(self.length)
        frame = Signal(FRAME_BITS)
        bits, clocks = Signal(range(FRAME_BITS + 1)), Signal(range(self._clocks))
        with m.If(self.load):
            m.d.sync += [queue.eq(self.chunk), left.eq(self.length), self.idle.eq(self.length == 0)]
        with m.If(clocks != 0):
            m.d.sync += clocks.eq(clocks - 1)
        with m.Elif(bits != 0):
            m.d.sync += [self.tx.eq(frame[0]), frame.eq(frame[1:]), bits.eq(bits - 1), clocks.eq(self._clocks - 1)]
        with m.Elif(left != 0):
            m.d.sync += [self.tx.eq(0), frame.eq(Cat(queue[:8], 1)), bits.eq(FRAME_BITS - 1)]
            m.d.sync += [clocks.eq(self._clocks - 1), queue.eq(queue[8:]), left.eq(left - 1)]
        with m.Elif(~self.load):
            m.d.sync += self.idle.eq(1)

    def _receive(self, m: Module) -> Signal:
        """Returns whether nothing is arriving."""
        longest = QUIET_BITS * self._clocks
        age = Signal(range(longest + 1))  # cycles since the start bit
        active, quiet = Signal(), Signal()
        byte, arrives = Signal(8), Signal()
        m.d.comb += quiet.eq(~active & (age == longest))
        with m.If(age != longest):
            m.d.sync += age.eq(age + 1)
        with m.If(~active & ~self.rx):
            m.d.sync += [active.eq(1), age.eq(1)]
        with m.If(active), m.Switch(age):
            for bit in range(8):
                with m.Case(self._clocks * (bit + 1) + self._clocks // 2):
                    m.d.sync += byte.eq(Cat(byte[1:], self.rx))
            with m.Case(self._clocks * 9 + self._clocks // 2):
                m.d.comb += arrives.eq(1)
                m.d.sync += [active.eq(0), age.eq(0), self.broken.eq(self.broken | ~self.rx)]
                m.d.sync += self.received.eq(Cat(self.received[8:], byte))
        m.d.sync += self.count.eq(Mux(self.take, 0, self.count) + arrives)
        return quiet


class HostedDesign(wiring.Component):
    """A design with members ``uart_rx`` and ``uart_tx``, and a ``HostUart`` at its line, whose other members it has.

    ``fault``: what the design says of itself with a member of that name, which is 0 while all is well; else 0.
    """

    fault: Signal

    def __init__(self, design: Any, clocks_per_bit: int) -> None:
        self._design = design
        self._uart = HostUart(clocks_per_bit)
        self._members = {
            name: member for name, member in self._uart.signature.members.items() if name not in ("tx", "rx")
        }
        self._has_fault = "fault" in design.signature.members
        fault = design.signature.members["fault"] if self._has_fault else Out(1)
        super().__init__({**self._members, "fault": fault})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.design = design = self._design
        m.submodules.host = host = self._uart
        m.d.comb += [design.uart_rx.eq(host.tx), host.rx.eq(design.uart_tx)]
        if self._has_fault:
            m.d.comb += self.fault.eq(design.fault)
        for name, member in self._members.items():
            inner, outer = getattr(host, name), getattr(self, name)
            m.d.comb += inner.eq(outer) if member.flow == In else outer.eq(inner)
        return m
