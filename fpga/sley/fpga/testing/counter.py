"""A design small enough for a test of a flow."""

from amaranth import Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class Counter(wiring.Component):
    """Sends what it receives.

    Parameters
    ----------
    width : int
        Bits of a sum, which is one long carry chain.
    products : int
        Products of int8.

    Members
    -------
    uart_rx : In(1), uart_tx : Out(1)
        The line.
    irq : Out(1)
        A bit with the sum and the products in it.
    """

    uart_rx: Signal
    uart_tx: Signal
    irq: Signal

    def __init__(self, width: int, products: int = 0) -> None:
        self._width = width
        self._products = products
        super().__init__({"uart_rx": In(1), "uart_tx": Out(1), "irq": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.adder = adder = Module()
        total, step = Signal(self._width, name="total"), Signal(self._width, name="step")
        adder.d.sync += [total.eq(total + step), step.eq(step.rotate_left(1) ^ self.uart_rx)]
        m.d.sync += self.uart_tx.eq(self.uart_rx)
        last = total[-1]
        for k in range(self._products):
            m.submodules[f"product{k}"] = part = Module()
            a, b = Signal(signed(8), name="a", init=k), Signal(signed(8), name="b")
            product = Signal(signed(16), name="product")
            part.d.sync += [a.eq(a ^ total), b.eq(b + total), product.eq(a * b)]
            last ^= product.xor()
        m.d.comb += self.irq.eq(last)
        return m
