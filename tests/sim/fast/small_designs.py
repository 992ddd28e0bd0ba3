"""A design with one of everything that a debugger has to show: hierarchy, structures, wide values, memories."""

from amaranth.hdl import Cat, Elaboratable, Module, Signal
from amaranth.lib import data
from amaranth.lib.memory import Memory

PACKET = data.StructLayout({"kind": 3, "length": 5, "lanes": data.ArrayLayout(4, 2)})


class Accumulator(Elaboratable):
    """A wide sum, and a packet made of it."""

    def __init__(self) -> None:
        self.a = Signal(100)
        self.product = Signal(120)
        self.packet = Signal(PACKET)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        total = Signal(100, init=3)
        m.d.sync += total.eq(total + self.a)
        m.d.comb += self.product.eq((total * 5) ^ self.a)
        m.d.comb += self.packet.eq(total[:16] + 1)
        return m


class Machine(Elaboratable):
    """Adds up ``a``, writes parts of the sum to a memory, and reads it with and without a clock."""

    def __init__(self) -> None:
        self.a, self.write = Signal(100), Signal()
        self.now, self.later, self.count = Signal(24), Signal(24), Signal(8)
        self.adder = Accumulator()

    @property
    def ports(self) -> dict[str, Signal]:
        return {name: getattr(self, name) for name in ("a", "write", "now", "later", "count")}

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.adder = adder = self.adder
        m.submodules.table = table = Memory(shape=24, depth=12, init=range(100, 112))
        write, now, later = table.write_port(), table.read_port(domain="comb"), table.read_port()
        step = Signal(8, init=1)
        odd = Signal()
        m.d.sync += step.eq(step * 5 + 1)
        m.d.comb += odd.eq(step.xor())
        m.d.comb += [adder.a.eq(self.a), write.addr.eq(step), write.en.eq(self.write & ~step[0])]
        m.d.comb += write.data.eq(Cat(adder.product[90:98], step, odd))
        m.d.comb += [now.addr.eq(step ^ adder.packet.lanes[0]), self.now.eq(now.data ^ step)]
        m.d.comb += [later.addr.eq(step + 3), later.en.eq(1), self.later.eq(later.data)]
        m.d.comb += self.count.eq(step)
        return m
