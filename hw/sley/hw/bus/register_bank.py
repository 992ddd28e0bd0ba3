"""The registers of the chip, generated from their description."""

from collections.abc import Collection
from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Member, Out, Signature
from amaranth.utils import exact_log2

from sley.abi.registers import Access, PlacedRegister, RegisterBlock, RegisterMap
from sley.hw.bus.axi_lite import DATA_BITS, RegisterBus
from sley.hw.layouts import struct

WINDOW = 64
"""Bytes of the map whose registers share a word of the answer: all registers of a queue."""


def bank_members(registers: RegisterMap, read_strobes: Collection[str] = ()) -> dict[str, Member]:
    """The registers as the bank offers them to the rest of the chip.

    One member per block, in lower case (``chip``); a block that comes once per queue is an array (``queue[1]``).
    Inside, by access kind of each register (name in lower case, shape from its layout):

    * CONST: nothing. RO: ``name`` in.
    * RW: ``name`` out, what software wrote last.
    * W1C: ``name`` out, the pending bits; ``name_set`` in, bits to set (setting wins over clearing).
    * WO: ``name`` out and ``name_written``, high for the one cycle in which ``name`` holds a value just written.

    A register named in ``read_strobes`` (``CHIP.TIME_LO``) has an output ``name_read`` besides, high in the cycle in
    which the bank samples it.
    """
    unknown = set(read_strobes) - {f"{b.name}.{r.name}" for b in registers.blocks for r in b.registers}
    if unknown:
        raise ValueError(f"read_strobes names {', '.join(sorted(unknown))}; the map has no such register")
    members: dict[str, Member] = {}
    for block in registers.blocks:
        inner: dict[str, Member] = {}
        for register in block.registers:
            name, shape = register.name.lower(), struct(register.layout)
            match register.access:
                case Access.CONST:
                    pass
                case Access.RO:
                    inner[name] = In(shape)
                case Access.RW:
                    inner[name] = Out(shape)
                case Access.W1C:
                    inner |= {name: Out(shape), f"{name}_set": In(shape)}
                case Access.WO:
                    inner |= {name: Out(shape), f"{name}_written": Out(1)}
            if f"{block.name}.{register.name}" in read_strobes:
                inner[f"{name}_read"] = Out(1)
        member = Out(Signature(inner))
        members[block.name.lower()] = member.array(block.count) if is_array(block) else member
    return members


def is_array(block: RegisterBlock) -> bool:
    """Whether a block's copies are numbered in names."""
    return block.count > 1 or block.name != "CHIP"


class RegisterBank(wiring.Component):
    """Storage and address decoder of every register of a chip.

    Parameters: ``registers``, the map; ``read_strobes``, see ``bank_members``. Members: ``bus`` (``RegisterBus``,
    the software side), ``chip``, ``queue[k]``, ``context[k]``, ``doorbell[k]`` (the chip's side, see ``bank_members``).

    Addresses that no register has, misaligned ones included, are errors; writes to CONST and RO registers do nothing.
    Bits of RW and W1C registers that belong to no field are not stored and read as zero.

    Latency: reads and write errors answer one cycle after the command, an RW output changes in that cycle, and
    ``name_written`` is high in it. Cost: the RW, W1C and WO fields; for each window of WINDOW bytes a multiplexer over
    its registers and a word of flip-flops, so that the wires of a queue's registers end beside that queue.
    """

    bus: Any
    chip: Any
    queue: Any
    context: Any
    doorbell: Any

    def __init__(self, registers: RegisterMap, read_strobes: Collection[str] = ()) -> None:
        self.map = registers
        self.read_strobes = frozenset(read_strobes)
        super().__init__(
            {
                "bus": In(RegisterBus(exact_log2(registers.size))),
                **bank_members(registers, read_strobes),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus = self.bus
        for placed in self.map:
            self._connect(m, placed)

        windows: dict[int, list[PlacedRegister]] = {}
        for placed in self.map:
            windows.setdefault(placed.address // WINDOW, []).append(placed)
        words = [self._window(m, number, registers) for number, registers in windows.items()]
        m.d.comb += bus.read_data.eq(reduce(or_, words))
        with m.If(bus.read), m.Switch(bus.read_address):
            with m.Case(*self.map.by_address):
                m.d.sync += bus.read_error.eq(0)
            with m.Default():
                m.d.sync += bus.read_error.eq(1)
        with m.If(bus.write), m.Switch(bus.write_address):
            with m.Case(*self.map.by_address):
                m.d.sync += bus.write_error.eq(0)
            with m.Default():
                m.d.sync += bus.write_error.eq(1)
        return m

    def _window(self, m: Module, number: int, registers: list[PlacedRegister]) -> Signal:
        """What the last read found in a window: 0 if it was of another address."""
        bus = self.bus
        word = Signal(DATA_BITS, name=f"window_{number}", reset_less=True)
        within = exact_log2(WINDOW)
        with m.If(bus.read):
            m.d.sync += word.eq(0)
            with m.If(bus.read_address[within:] == number), m.Switch(bus.read_address[:within]):
                for placed in registers:
                    with m.Case(placed.address % WINDOW):
                        m.d.sync += word.eq(self._value(placed))
        return word

    def _port(self, placed: PlacedRegister, suffix: str = "") -> Any:
        block = getattr(self, placed.block.name.lower())
        if is_array(placed.block):
            block = block[placed.index]
        return getattr(block, placed.register.name.lower() + suffix)

    def _value(self, placed: PlacedRegister) -> Value | int:
        """What software reads."""
        match placed.register.access:
            case Access.CONST:
                return placed.layout.reset
            case Access.WO:
                return 0
            case _:
                return Value.cast(self._port(placed)) & placed.layout.mask

    def _connect(self, m: Module, placed: PlacedRegister) -> None:
        """State and outputs of one register."""
        bus, access = self.bus, placed.register.access
        name, mask = placed.name.lower().replace(".", "_"), placed.layout.mask
        if f"{placed.block.name}.{placed.register.name}" in self.read_strobes:
            m.d.comb += self._port(placed, "_read").eq(bus.read & (bus.read_address == placed.address))
        if access not in (Access.RW, Access.W1C, Access.WO):
            return

        # Bits outside the fields are never assigned anything but zero, so that synthesis removes them.
        stored = Signal(DATA_BITS, name=name, init=placed.layout.reset, reset_less=access is Access.WO)
        written = Signal(name=f"{name}_write")
        m.d.comb += [
            Value.cast(self._port(placed)).eq(stored),
            written.eq(bus.write & (bus.write_address == placed.address)),
        ]
        match access:
            case Access.W1C:
                cleared = Value.cast(bus.write_data) & written.replicate(DATA_BITS)
                set_bits = Value.cast(self._port(placed, "_set"))
                m.d.sync += stored.eq(((stored & ~cleared) | set_bits) & mask)
            case _:
                with m.If(written):
                    m.d.sync += stored.eq(bus.write_data & mask)
                if access is Access.WO:
                    m.d.sync += self._port(placed, "_written").eq(written)
