"""A delay of many cycles in a memory instead of registers."""

from amaranth import Module, Signal, unsigned
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from sley.hw.stream.fifo import ram_style


class MemoryDelay(wiring.Component):
    """o = i of ``cycles`` cycles ago.

    Parameters
    ----------
    width : int
        Bits of a word.
    cycles, longest : int
        At least 2; ``longest``, which sets the depth of the memory, at least ``cycles``. Delays with one ``longest``
        differ in a constant only, so that a simulator can compute them together.

    Members
    -------
    i : In(width), o : Out(width)
        See above.
    pointer : In(pointer_bits(longest))
        Of all delays that run together: must grow by one in each cycle with ``run``, modulo its size. A wider
        counter may be connected.
    run : In(1)
        Low: nothing moves, and that cycle does not count. To save power, and time in simulation, while nobody
        looks at ``o``.

    Raises
    ------
    ValueError
        If ``cycles`` is below 2 or above ``longest``.

    Cost
    ----
    A memory of ``longest`` words, rounded up to a power of two: block RAM if they are more than ``LUT_WORDS``.
    """

    i: Signal
    o: Signal
    pointer: Signal
    run: Signal

    def __init__(self, width: int, cycles: int, longest: int) -> None:
        if cycles < 2:
            raise ValueError(f"cycles is {cycles}; a delay in memory takes 2 at least")
        if cycles > longest:
            raise ValueError(f"cycles is {cycles}; longest is {longest}, which must be at least that")
        self._width = width
        self._cycles = cycles
        super().__init__(
            {
                "i": In(width),
                "o": Out(width),
                "pointer": In(pointer_bits(longest)),
                "run": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        depth = 1 << len(self.pointer)
        # Yosys sees that no word is read as it is written, but only in front of a register that is not the port's own.
        shape = unsigned(self._width)
        m.submodules.memory = memory = Memory(shape=shape, depth=depth, init=[], attrs=ram_style(depth))
        write, read = memory.write_port(), memory.read_port(domain="comb")
        output = Signal(self._width, reset_less=True)
        m.d.comb += [
            write.addr.eq(self.pointer),
            write.data.eq(self.i),
            write.en.eq(self.run),
            # The read takes one of the cycles.
            read.addr.eq(self.pointer - (self._cycles - 1)),
            self.o.eq(output),
        ]
        with m.If(self.run):
            m.d.sync += output.eq(read.data)
        return m


def pointer_bits(cycles: int) -> int:
    """Width of the pointer that a delay needs."""
    return (cycles - 1).bit_length()
