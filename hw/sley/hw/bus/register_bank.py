"""The registers of the chip, generated from their description."""

from collections.abc import Collection
from functools import reduce
from operator import or_

from amaranth.hdl import Module, Mux, Signal, Value, ValueLike
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Member, Out, Signature
from amaranth.utils import exact_log2

from sley.abi.registers import Access, PlacedRegister, Register, RegisterBlock, RegisterMap
from sley.hw.bus.axi_lite import DATA_BITS, RegisterBus
from sley.hw.elaboration.layouts import struct

WINDOW = 64
"""Bytes of the map whose registers share a word of the answer: all registers of a queue."""


def bank_members(
    registers: RegisterMap, read_strobes: Collection[str] = (), shared: Collection[str] = ()
) -> dict[str, Member]:
    """The registers as the bank offers them to the rest of the chip.

    One member per block, in lower case (``chip``); a block that comes once per queue is an array (``queue[1]``).
    Inside, by access kind of each register (name in lower case, shape from its layout):

    * CONST: nothing. RO: ``name`` in.
    * RW: ``name`` out, what software wrote last.
    * W1C: ``name`` out, the pending bits; ``name_set`` in, bits to set (setting wins over clearing).
    * WO: ``name`` out and ``name_written``, high for the one cycle in which ``name`` holds a value just written.

    A register named in ``read_strobes`` (``CHIP.TIME_LO``) has an output ``name_read`` besides, high in the cycle in
    which the bank samples it.

    Of a register named in ``shared`` (``QUEUE.WATCHDOG``) the chip sees one copy at a time. These are in a member of
    their own, not an array (``queue_shared``):

    * ``read_index`` out, the copy that software reads; RO: ``name`` in, the value of that copy.
    * ``index`` in, a copy; RW: ``name`` out, the value of that copy, and ``name_read``, of the one that software reads.
    * WO: ``name`` out and ``name_written``, with a bit per copy.
    """
    _check_names(registers, "read_strobes", read_strobes, tuple(Access))
    _check_names(registers, "shared", shared, (Access.RO, Access.RW, Access.WO))
    members: dict[str, Member] = {}
    for block in registers.blocks:
        inner: dict[str, Member] = {}
        common: dict[str, Member] = {}
        for register in block.registers:
            name, shape, full = register.name.lower(), struct(register.layout), f"{block.name}.{register.name}"
            if full in shared:
                common |= _shared_members(block, register)
                continue
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
            if full in read_strobes:
                inner[f"{name}_read"] = Out(1)
        member = Out(Signature(inner))
        if inner or not common:
            members[block.name.lower()] = member.array(block.count) if is_array(block) else member
        if common:
            members[f"{block.name.lower()}_shared"] = Out(Signature(common))
    return members


def _shared_members(block: RegisterBlock, register: Register) -> dict[str, Member]:
    name, shape, index = register.name.lower(), struct(register.layout), range(max(block.count, 2))
    match register.access:
        case Access.RO:
            return {"read_index": Out(index), name: In(shape)}
        case Access.RW:
            return {"read_index": Out(index), "index": In(index), name: Out(shape), f"{name}_read": Out(shape)}
        case _:
            return {name: Out(shape), f"{name}_written": Out(block.count)}


def _check_names(registers: RegisterMap, option: str, names: Collection[str], kinds: Collection[Access]) -> None:
    known = {f"{b.name}.{r.name}" for b in registers.blocks for r in b.registers if r.access in kinds}
    if unknown := set(names) - known:
        allowed = "/".join(kind.name for kind in kinds)
        raise ValueError(f"{option} names {', '.join(sorted(unknown))}; the map has no such register of kind {allowed}")


def is_array(block: RegisterBlock) -> bool:
    """Whether a block's copies are numbered in names."""
    return block.count > 1 or block.name != "CHIP"


class RegisterBank(wiring.Component):
    """Storage and address decoder of every register of a chip.

    Parameters
    ----------
    registers : RegisterMap
        The map.
    read_strobes, shared : collection of str
        See ``bank_members``.

    Members
    -------
    bus : In(RegisterBus)
        The software side.
    chip, queue_shared, doorbell_shared : Out(see bank_members)
        The chip's side. The last two, and others of their kind, exist if ``shared`` names registers of their blocks.
    queue, context, doorbell : Out(see bank_members).array(copies)
        The chip's side of blocks that come several times.

    Raises
    ------
    ValueError
        If ``read_strobes`` or ``shared`` names what the map does not have.

    Rules
    -----
    1. Addresses that no register has, misaligned ones included, are errors.
    2. Writes to CONST and RO registers do nothing.
    3. Bits of RW and W1C registers that belong to no field are not stored and read as zero.

    Latency
    ------- Reads and write errors answer one cycle after the command, an RW output changes in that cycle, and
    ``name_written`` is high in it.

    Cost
    ---- The RW, W1C and WO fields; for each window of WINDOW bytes a multiplexer over its registers and a word of
    flip-flops, so that the wires of a queue's registers end beside that queue. Of shared registers RW is LUT RAM with a
    flip-flop for each copy, WO one register, and all of a block have one multiplexer.
    """

    bus: wiring.PureInterface
    chip: wiring.PureInterface
    queue: list[wiring.PureInterface]
    context: list[wiring.PureInterface]
    doorbell: list[wiring.PureInterface]
    queue_shared: wiring.PureInterface
    doorbell_shared: wiring.PureInterface

    def __init__(
        self, registers: RegisterMap, read_strobes: Collection[str] = (), shared: Collection[str] = ()
    ) -> None:
        self.map = registers
        self.read_strobes = frozenset(read_strobes)
        self.shared = frozenset(shared)
        super().__init__(
            {
                "bus": In(RegisterBus(exact_log2(registers.size))),
                **bank_members(registers, read_strobes, shared),
            }
        )

    def is_shared(self, block: RegisterBlock, register: Register) -> bool:
        """Whether the chip sees one copy of this register at a time."""
        return f"{block.name}.{register.name}" in self.shared

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus = self.bus
        windows: dict[int, list[PlacedRegister]] = {}
        for placed in self.map:
            if not self.is_shared(placed.block, placed.register):
                self._connect(m, placed)
                windows.setdefault(placed.address // WINDOW, []).append(placed)
        words = [self._window(m, number, registers) for number, registers in windows.items()]
        for block in self.map.blocks:
            if shared := [register for register in block.registers if self.is_shared(block, register)]:
                words.append(self._shared_window(m, block, shared))
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

    def _port(self, placed: PlacedRegister, suffix: str = "") -> ValueLike:
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

    def _shared_window(self, m: Module, block: RegisterBlock, registers: list[Register]) -> Signal:
        """State and outputs of the shared registers of a block, and what the last read found in one of them, or 0."""
        bus, port = self.bus, getattr(self, f"{block.name.lower()}_shared")
        word = Signal(DATA_BITS, name=f"{block.name.lower()}_shared_word", reset_less=True)
        if "read_index" in port.signature.members:
            m.d.comb += port.read_index.eq(_copy(block, bus.read_address))
        values: list[tuple[list[int], ValueLike]] = []
        for register in registers:
            name = register.name.lower()
            addresses = [block.base + k * block.stride + register.offset for k in range(block.count)]
            written = Signal(block.count, name=f"{block.name.lower()}_{name}_write")
            m.d.comb += [
                bit.eq(bus.write & (bus.write_address == a)) for bit, a in zip(written, addresses, strict=True)
            ]
            match register.access:
                case Access.RO:
                    values.append((addresses, Value.cast(getattr(port, name)) & register.layout.mask))
                case Access.RW:
                    self._keep(m, block, register, written)
                    values.append((addresses, getattr(port, f"{name}_read")))
                case _:
                    stored = Signal(DATA_BITS, name=f"{block.name.lower()}_{name}", reset_less=True)
                    with m.If(written.any()):
                        m.d.sync += stored.eq(bus.write_data & register.layout.mask)
                    m.d.sync += getattr(port, f"{name}_written").eq(written)
                    m.d.comb += Value.cast(getattr(port, name)).eq(stored)
        with m.If(bus.read), m.Switch(bus.read_address):
            for addresses, value in values:
                with m.Case(*addresses):
                    m.d.sync += word.eq(value)
            with m.Default():
                m.d.sync += word.eq(0)
        return word

    def _keep(self, m: Module, block: RegisterBlock, register: Register, written: Signal) -> None:
        """All copies of a shared RW register. RAM has no reset: which copies were written since then is a flip-flop.
        One copy is a register."""
        name, layout = register.name.lower(), register.layout
        port = getattr(self, f"{block.name.lower()}_shared")
        if block.count == 1:
            stored = Signal(DATA_BITS, name=f"{block.name.lower()}_{name}", init=layout.reset)
            with m.If(written):
                m.d.sync += stored.eq(self.bus.write_data & layout.mask)
            m.d.comb += [Value.cast(getattr(port, output)).eq(stored) for output in (name, f"{name}_read")]
            return
        known = Signal(block.count, name=f"{block.name.lower()}_{name}_known")
        m.d.sync += known.eq(known | written)
        memory = Memory(shape=DATA_BITS, depth=block.count, init=[])
        m.submodules[f"{block.name.lower()}_{name}"] = memory
        write = memory.write_port()
        m.d.comb += [
            write.en.eq(written.any()),
            write.addr.eq(_copy(block, self.bus.write_address)),
            write.data.eq(self.bus.write_data & layout.mask),
        ]
        for index, output in ((port.index, name), (port.read_index, f"{name}_read")):
            read = memory.read_port(domain="comb")
            value = Mux(known.bit_select(index, 1), read.data, layout.reset)
            m.d.comb += [read.addr.eq(index), Value.cast(getattr(port, output)).eq(value)]


def _copy(block: RegisterBlock, address: Value) -> Value:
    """Which copy of a block has this address, if any has."""
    number: Value = address[exact_log2(block.stride) :] - block.base // block.stride
    return number
