"""Pins for a block that has more ports than any package: what it costs and how fast it is, alone."""

from typing import Any

from amaranth import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.hw.elaboration.shared import flat_ports

FAN_IN = 4
"""Bits that a LUT joins: the outputs meet in a tree with a register behind each."""
SEGMENT = 32
"""Inputs that move by one enable: the path of one for all would be slower than the block."""


class Harness(wiring.Component):
    """A block between shift registers.

    Bits from ``uart_rx`` move through one register for each input, every second cycle, and reach the block through
    another one; all outputs have a register and meet in a tree of exclusive ors, whose end is ``uart_tx``. So each path
    of the block begins and ends at a register, and nothing of it can be left out. If bits moved in every cycle, inputs
    that the block delays would be bits of the chain, and synthesis would make one register of both.

    Parameters
    ----------
    block : component
        What is between them.

    Members
    -------
    uart_rx : In(1), uart_tx : Out(1)
        The ends of the chains.
    irq : Out(1)
        Low.

    Cost
    ----
    Two flip-flops for an input, one more for 32 of them, about 4/3 and a third of a LUT for an output.
    """

    uart_rx: Signal
    uart_tx: Signal
    irq: Signal

    def __init__(self, block: Any) -> None:
        self._block = block
        super().__init__({"uart_rx": In(1), "uart_tx": Out(1), "irq": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.block = self._block
        ports = flat_ports(self._block).values()
        inputs = Cat(value for value, flow in ports if flow == wiring.In)
        outputs = Cat(value for value, flow in ports if flow == wiring.Out)
        chain = Signal(len(inputs), reset_less=True)
        held = Signal(len(inputs), reset_less=True)
        moved = Cat(self.uart_rx, chain)
        m.d.sync += held.eq(chain)
        for k in range(0, len(inputs), SEGMENT):
            move = Signal(name=f"move{k}")
            m.d.sync += move.eq(~move)
            with m.If(move):
                m.d.sync += chain[k : k + SEGMENT].eq(moved[k : k + SEGMENT])
        m.d.comb += inputs.eq(held)
        level = Signal(len(outputs), name="level0", reset_less=True)
        m.d.sync += level.eq(outputs)
        while len(level) > 1:
            joined = [level[k : k + FAN_IN].xor() for k in range(0, len(level), FAN_IN)]
            level = Signal(len(joined), name="level", reset_less=True)
            m.d.sync += level.eq(Cat(joined))
        m.d.comb += self.uart_tx.eq(level)
        return m
