"""Asynchronous serial line, 8 data bits, no parity, 1 stop bit: both directions."""

from amaranth import Cat, Const, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

LEAST_CLOCKS = 4
DATA_BITS = 8

received_byte = data.StructLayout({"data": DATA_BITS, "error": 1})


def _check(clocks_per_bit: int) -> None:
    if clocks_per_bit < LEAST_CLOCKS:
        raise ValueError(f"clocks_per_bit is {clocks_per_bit}; it must be at least {LEAST_CLOCKS}")


class UartReceiver(wiring.Component):
    """Turns the levels of a pin into bytes.

    Each bit is sampled once, in its middle; a low pulse shorter than half a bit is no start bit.

    Parameters
    ----------
    clocks_per_bit : int
        At least 4.

    Members
    -------
    pin : In(1)
        Any level at any time: two flip-flops synchronise it.
    o : Out(stream.Signature(received_byte, always_ready=True))
        Bytes; ``error``: the stop bit was missing.

    Raises
    ------
    ValueError
        For too few cycles.

    Latency
    -------
    A byte comes in the middle of its stop bit, so a sender may be faster by up to half a bit in ten.

    Cost
    ----
    A counter and 10 bits of data.
    """

    pin: Signal
    o: stream.Interface

    def __init__(self, clocks_per_bit: int) -> None:
        _check(clocks_per_bit)
        self._clocks = clocks_per_bit
        super().__init__({"pin": In(1, init=1), "o": Out(stream.Signature(received_byte, always_ready=True))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        level = Signal(init=1)
        m.submodules.synchronizer = FFSynchronizer(self.pin, level, init=1)
        busy = Signal()
        timer = Signal(range(self._clocks), reset_less=True)
        begun = Signal(reset_less=True)  # the start bit was one
        bits = Signal(DATA_BITS + 1, reset_less=True)  # a 1 goes ahead of the data: the next one is the stop bit
        done = Signal()
        m.d.comb += [
            done.eq(busy & (timer == 0) & begun & bits[0]),
            self.o.valid.eq(done),
            self.o.payload.data.eq(bits[1:]),
            self.o.payload.error.eq(~level),
        ]
        with m.If(~busy):
            m.d.sync += [busy.eq(~level), timer.eq(self._clocks // 2 - 1), begun.eq(0), bits.eq(1 << DATA_BITS)]
        with m.Elif(timer != 0):
            m.d.sync += timer.eq(timer - 1)
        with m.Else():
            m.d.sync += [timer.eq(self._clocks - 1), begun.eq(1)]
            with m.If(done | (~begun & level)):
                m.d.sync += busy.eq(0)
            with m.If(begun & ~done):
                m.d.sync += bits.eq(Cat(bits[1:], level))
        return m


class UartTransmitter(wiring.Component):
    """Turns bytes into levels of a pin.

    Parameters
    ----------
    clocks_per_bit : int
        At least 4.

    Members
    -------
    i : In(stream.Signature(DATA_BITS))
        Bytes.
    pin : Out(1)
        A register, high while idle.

    Raises
    ------
    ValueError
        For too few cycles.

    Throughput
    ----------
    A byte takes 10 bits and one cycle.

    Cost
    ----
    A counter and 10 bits of data.
    """

    i: stream.Interface
    pin: Signal

    def __init__(self, clocks_per_bit: int) -> None:
        _check(clocks_per_bit)
        self._clocks = clocks_per_bit
        super().__init__({"i": In(stream.Signature(DATA_BITS)), "pin": Out(1, init=1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        timer = Signal(range(self._clocks), reset_less=True)
        bits = Signal(DATA_BITS + 2, reset_less=True)  # after the one on the pin; a 1 behind the stop bit
        busy = Signal()
        m.d.comb += self.i.ready.eq(~busy)
        with m.If(~busy):
            m.d.sync += [timer.eq(self._clocks - 1), bits.eq(Cat(self.i.payload, Const(3, 2)))]
            with m.If(self.i.valid):
                m.d.sync += [busy.eq(1), self.pin.eq(0)]
        with m.Elif(timer != 0):
            m.d.sync += timer.eq(timer - 1)
        with m.Else():
            m.d.sync += [timer.eq(self._clocks - 1), self.pin.eq(bits[0]), bits.eq(bits[1:])]
            with m.If(~bits[1:].any()):
                m.d.sync += busy.eq(0)
        return m
