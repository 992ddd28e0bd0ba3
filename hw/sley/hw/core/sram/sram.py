"""Banked on-chip memory: ports as its users see them, and the memory itself."""

from collections.abc import Sequence
from functools import reduce
from operator import or_

from amaranth import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, Signature

from sley.abi.timing import SRAM_READ


def read_port(rows: int, width: int, parts: int = 1) -> Signature:
    """A reader's port: the read of ``row`` is granted in a cycle with ``valid`` and ``ready``; ``data``, one of
    ``parts`` equal parts of it, is valid exactly SRAM_READ cycles later and not held. The row must exist. A reader
    may take ``valid`` back."""
    return Signature(
        {
            "row": Out(range(rows)),
            "part": Out(range(parts)),
            "valid": Out(1),
            "ready": In(1),
            "data": In(width // parts),
        }
    )


def write_port(rows: int, width: int, granules: int) -> Signature:
    """A writer's port: granted like a read; ``enable`` has one bit per granule, each width / granules bits. A read
    granted in a later cycle sees the new data. One of the same row granted in the same cycle is a race that nobody
    may rely on: simulation shows the old data, but block RAMs do not promise it."""
    return Signature(
        {
            "row": Out(range(rows)),
            "valid": Out(1),
            "ready": In(1),
            "data": Out(width),
            "enable": Out(granules),
        }
    )


class BankedSram(wiring.Component):
    """Row-addressed memory in banks, shared by readers and writers under a fixed priority.

    For synthesis the banks are marked ``no_rw_check``: a defined result of a read and a write of one row in one cycle
    would cost a bypass around each bank.

    Parameters
    ----------
    rows, width : int
        Size; ``rows`` is a power of two.
    banks : int
        A power of two, each bank at least two rows. The high bits of a row number select its bank: a bank is a
        contiguous range of rows.
    granules : int
        Separately writable parts of a row; divides ``width``.
    readers : sequence of int
        Of each reader, the parts of a row of which it gets one: 1, 2, 4, ..., parts of ``width``.
    writers : int
        Number of writers.
    zeros : bool
        The data of reader 0, which reads whole rows, are 0 in every cycle for which it has read nothing: who adds them
        need not ask.

    Members
    -------
    read : In(read_port(rows, width, parts)), one for each reader
        Ports ``read0``, ``read1``, ...
    write : In(write_port(rows, width, granules)).array(writers)
        One for each writer.
    clear : In(1), clearing : Out(1)
        All rows become zero, one of each bank a cycle: from the cycle after ``clear`` for ``rows / banks`` cycles, in
        which ``clearing`` is high and no port may ask for anything. ``clear`` may not come again while it is.

    Raises
    ------
    ValueError
        If sizes, parts or numbers of ports do not go together.

    Rules
    -----
    1. Each bank serves one read and one write a cycle: of the requests, the reader, and the writer, with the lowest
       number.
    2. ``ready`` depends on ``row`` and on ``row`` and ``valid`` of the ports with lower numbers alone; port 0 is always
       granted.
    3. Reads see every write of an earlier cycle.
    4. The memory starts as zeros and has no reset.

    Latency
    -------
    SRAM_READ cycles of a read.

    Cost
    ----
    ``banks`` simple dual-port memories of ``rows / banks`` rows, an output register of ``width`` bits for each, and for
    each reader a multiplexer of ``banks`` to one behind them: for 4 banks two LUTs a bit. If there are readers of
    parts, another register of ``width`` bits for each bank, and its parts are joined by OR once for all of them.
    """

    read: list[wiring.PureInterface]
    write: list[wiring.PureInterface]
    clear: Signal
    clearing: Signal

    def __init__(
        self,
        rows: int,
        width: int,
        banks: int,
        granules: int,
        readers: Sequence[int],
        writers: int,
        zeros: bool = False,
    ) -> None:
        for name, value in (("rows", rows), ("banks", banks)):
            if value < 1 or value & (value - 1):
                raise ValueError(f"{name} is {value}; it must be a power of two")
        if rows < 2 * banks:
            raise ValueError(f"banks is {banks}; {rows} rows allow at most {rows // 2}")
        if granules < 1 or width < 1 or width % granules:
            raise ValueError(f"granules is {granules}; it must divide the width, {width}")
        for name, value in (("readers", len(readers)), ("writers", writers)):
            if value < 1:
                raise ValueError(f"{name}: {value}; the memory needs at least one")
        for reader, parts in enumerate(readers):
            if parts < 1 or parts & (parts - 1) or width % parts:
                raise ValueError(f"parts of reader {reader} are {parts}; a power of two must divide the width, {width}")
        if zeros and readers[0] > 1:
            raise ValueError(f"zeros is set and reader 0 reads one of {readers[0]} parts; it must read whole rows")
        self._rows = rows
        self._width = width
        self._banks = banks
        self._granules = granules
        self._readers = readers
        self._zeros = zeros
        super().__init__(
            {
                **{f"read{k}": In(read_port(rows, width, parts)) for k, parts in enumerate(readers)},
                "write": In(write_port(rows, width, granules)).array(writers),
                "clear": In(1),
                "clearing": Out(1),
            }
        )
        self.read = [getattr(self, f"read{k}") for k in range(len(readers))]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        depth = self._rows // self._banks
        index_bits = (depth - 1).bit_length()
        for ports in (self.read, self.write):
            for k, port in enumerate(ports):
                blocked = [p.valid & (p.row[index_bits:] == port.row[index_bits:]) for p in ports[:k]]
                m.d.comb += port.ready.eq(~Cat(blocked).any())

        cleared = Signal(range(depth))  # 0 again behind the last one
        with m.If(self.clearing):
            m.d.sync += [self.clearing.eq(cleared != depth - 1), cleared.eq(cleared + 1)]
        with m.If(self.clear):
            m.d.sync += self.clearing.eq(1)
        # Nobody asks while rows are cleared, so what is chosen then is the last port's.
        write_rows = [port.row[:index_bits] for port in self.write]
        write_rows[-1] = Mux(self.clearing, cleared, write_rows[-1])
        write_data = [port.data for port in self.write]
        write_data[-1] = Mux(self.clearing, 0, write_data[-1])
        write_enables = [port.enable for port in self.write]
        write_enables[-1] = write_enables[-1] | self.clearing.replicate(self._granules)

        registers = []
        words: list[dict[int, Value]] = []  # of each bank, by the parts of which it is one
        for b in range(self._banks):
            m.submodules[f"bank{b}"] = memory = Memory(
                shape=unsigned(self._width), depth=depth, init=[], attrs={"no_rw_check": 1}
            )
            # A port with a register of its own would be one that shows the old data in a race, whatever the attribute.
            read = memory.read_port(domain="comb")
            write = memory.write_port(granularity=self._width // self._granules)
            register = Signal(self._width, name=f"register{b}", reset_less=True)
            output = Signal(self._width, name=f"output{b}", reset_less=True)
            m.d.sync += [register.eq(read.data), output.eq(register)]
            registers.append(register)
            reads, writes = self._requests(m, "read", b), self._requests(m, "write", b)
            m.d.comb += [
                read.addr.eq(_first_of(reads, [port.row[:index_bits] for port in self.read])),
                write.addr.eq(_first_of(writes, write_rows)),
                write.data.eq(_first_of(writes, write_data)),
            ]
            with m.If(Cat(writes).any() | self.clearing):
                m.d.comb += write.en.eq(_first_of(writes, write_enables))
            words.append({1: output, **self._parts(m, b, register, reads)})

        for k, (port, parts) in enumerate(zip(self.read, self._readers, strict=True)):
            bank: Value = port.row[index_bits:]
            inverse: Value = ~bank
            for i in range(SRAM_READ):
                later = Signal(len(bank), name=f"reader{k}_bank{i}", reset_less=True)
                other = Signal.like(later, name=f"reader{k}_inverse{i}", reset_less=True)
                m.d.sync += [later.eq(bank), other.eq(inverse)]
                bank, inverse = later, other
            m.d.comb += port.data.eq(_at([word[parts] for word in words], bank, inverse))
        if self._zeros:
            self._zero(m, registers)
        return m

    def _parts(self, m: Module, bank: int, register: Value, requests: list[Signal]) -> dict[int, Value]:
        """For each number of parts that readers know, the part that the first of those who asked reads.

        Beside the output register is another one in which all is 0 but that part, so joining its parts takes an OR, and
        what is joined for few large parts is joined further for many small ones.
        """
        parts_of = {k: parts for k, parts in enumerate(self._readers) if parts > 1}
        if not parts_of:
            return {}
        most = max(parts_of.values())
        masks = [
            Cat(self.read[k].part == piece * parts // most for piece in range(most)) for k, parts in parts_of.items()
        ]
        selects = Signal(most, name=f"selects{bank}", reset_less=True)
        picked = Signal(self._width, name=f"picked{bank}", reset_less=True)
        m.d.sync += [selects.eq(_first_of([requests[k] for k in parts_of], masks)), picked.eq(register)]
        size = self._width // most
        for piece in range(most):
            with m.If(~selects[piece]):
                m.d.sync += picked.word_select(piece, size).eq(0)
        made: dict[int, Value] = {}
        word: Value = picked
        for parts in sorted(set(parts_of.values())):
            width = self._width // parts
            joined = Signal(width, name=f"part{bank}_of_{parts}")
            m.d.comb += joined.eq(reduce(or_, (word[at : at + width] for at in range(0, len(word), width))))
            made[parts] = word = joined
        return made

    def _zero(self, m: Module, registers: list[Signal]) -> None:
        """Data of reader 0 that are 0 unless a row arrives."""
        port = self.read[0]
        coming, arrives = Signal(), Signal()
        m.d.sync += [coming.eq(port.valid), arrives.eq(coming)]
        if self._banks > 1:
            # The multiplexer of two banks has an input to spare.
            with m.If(~arrives):
                m.d.comb += port.data.eq(0)
        else:
            own = Signal(self._width, reset_less=True)
            m.d.sync += own.eq(registers[0])
            with m.If(~coming):
                m.d.sync += own.eq(0)
            m.d.comb += port.data.eq(own)

    def _requests(self, m: Module, direction: str, bank: int) -> list[Signal]:
        """For each port, whether it asks the bank, which serves the first one."""
        index_bits = (self._rows // self._banks - 1).bit_length()
        ports = getattr(self, direction)
        requests = [Signal(name=f"{direction}{bank}_{k}") for k in range(len(ports))]
        m.d.comb += [
            request.eq(port.valid & (port.row[index_bits:] == bank))
            for request, port in zip(requests, ports, strict=True)
        ]
        return requests


def _first_of(requests: list[Signal], values: list[Value]) -> Value:
    """The value of the first port that asks; that of the last one if none does, when it does not matter."""
    value = values[-1]
    for request, earlier in reversed(list(zip(requests[:-1], values[:-1], strict=True))):
        value = Mux(request, earlier, value)
    return value


def _at(values: list[Value], index: Value, inverse: Value) -> Value:
    """``values[index]``; ``inverse`` is ``~index`` from registers of its own.

    Of four values, two LUTs do it: if the value is none of the first two, what the first LUT gives is the select of the
    second. Synthesis would see through this and make three, were the same registers used in both.
    """
    if len(values) == 1:
        return values[0]
    if len(values) == 2:
        return Mux(index[0], values[1], values[0])
    groups = [values[k : k + 4] for k in range(0, len(values), 4)]
    width = len(values[0])
    firsts = [Mux(index[1], index[0].replicate(width), Mux(index[0], b, a)) for a, b, _, _ in groups]
    chosen = [Mux(inverse[1], x, (x & d) | (~x & c)) for x, (_, _, c, d) in zip(firsts, groups, strict=True)]
    return _at(chosen, index[2:], inverse[2:])
