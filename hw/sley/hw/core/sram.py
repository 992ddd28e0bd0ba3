"""Banked on-chip memory: ports as its users see them, and the memory itself."""

from typing import Any

from amaranth import Cat, Module, Signal, unsigned
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, Signature

READ_LATENCY = 2
"""Cycles from the one in which a read is granted to the one in which its data is valid: the memory's own register
and an output register behind it."""


def read_port(rows: int, width: int) -> Signature:
    """A reader's port: the read of ``row`` is granted in a cycle with ``valid`` and ``ready``; ``data`` is valid
    exactly READ_LATENCY cycles later and not held. The row must exist. A reader may take ``valid`` back."""
    return Signature(
        {
            "row": Out(range(rows)),
            "valid": Out(1),
            "ready": In(1),
            "data": In(width),
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

    Parameters
    ----------
    rows, width : int
        Size; ``rows`` is a power of two.
    banks : int
        A power of two, each bank at least two rows. The high bits of a row number select its bank: a bank is a
        contiguous range of rows.
    granules : int
        Separately writable parts of a row; divides ``width``.
    readers, writers : int
        Number of ports.

    Members
    -------
    read : In(read_port(rows, width)).array(readers)
    write : In(write_port(rows, width, granules)).array(writers)
    clear : In(1), clearing : Out(1)
        All rows become zero, one of each bank a cycle: from the cycle after ``clear`` for ``rows / banks`` cycles, in
        which ``clearing`` is high and no port may ask for anything.

    Each bank serves one read and one write a cycle: of those who ask, the reader, and the writer, with the lowest
    number. ``ready`` depends on ``row`` and on ``row`` and ``valid`` of the ports with lower numbers alone; port 0 is
    always granted. Reads take READ_LATENCY cycles and see every write of an earlier cycle. The memory starts as zeros
    and has no reset. For synthesis the banks are marked ``no_rw_check``: a defined result of a read and a write
    of one row in one cycle would cost a bypass around each bank.

    Cost: ``banks`` simple dual-port memories of ``rows / banks`` rows, an output register of ``width`` bits for each,
    and for each reader a multiplexer of ``banks`` to one behind them.
    """

    read: list[Any]
    write: list[Any]
    clear: Signal
    clearing: Signal

    def __init__(self, rows: int, width: int, banks: int, granules: int, readers: int, writers: int) -> None:
        for name, value in (("rows", rows), ("banks", banks)):
            if value < 1 or value & (value - 1):
                raise ValueError(f"{name} is {value}; it must be a power of two")
        if rows < 2 * banks:
            raise ValueError(f"banks is {banks}; {rows} rows allow at most {rows // 2}")
        if granules < 1 or width < 1 or width % granules:
            raise ValueError(f"granules is {granules}; it must divide the width, {width}")
        for name, value in (("readers", readers), ("writers", writers)):
            if value < 1:
                raise ValueError(f"{name} is {value}; the memory needs at least one")
        self._rows = rows
        self._width = width
        self._banks = banks
        self._granules = granules
        super().__init__(
            {
                "read": In(read_port(rows, width)).array(readers),
                "write": In(write_port(rows, width, granules)).array(writers),
                "clear": In(1),
                "clearing": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        depth = self._rows // self._banks
        index_bits = (depth - 1).bit_length()
        for ports in (self.read, self.write):
            for k, port in enumerate(ports):
                blocked = [p.valid & (p.row[index_bits:] == port.row[index_bits:]) for p in ports[:k]]
                m.d.comb += port.ready.eq(~Cat(blocked).any())

        cleared = Signal(range(depth))
        with m.If(self.clear):
            m.d.sync += [self.clearing.eq(1), cleared.eq(0)]
        with m.Elif(self.clearing):
            m.d.sync += [self.clearing.eq(cleared != depth - 1), cleared.eq(cleared + 1)]

        outputs = []
        for b in range(self._banks):
            m.submodules[f"bank{b}"] = memory = Memory(
                shape=unsigned(self._width), depth=depth, init=[], attrs={"no_rw_check": 1}
            )
            read = memory.read_port()
            write = memory.write_port(granularity=self._width // self._granules)
            output = Signal(self._width, name=f"output{b}", reset_less=True)
            m.d.sync += output.eq(read.data)
            outputs.append(output)
            m.d.comb += [read.en.eq(0), write.en.eq(0)]
            for ports, access in ((self.read, read), (self.write, write)):
                # The last assignment wins: the lowest port comes last.
                for port in reversed(ports):
                    with m.If(port.valid & (port.row[index_bits:] == b)):
                        m.d.comb += access.addr.eq(port.row[:index_bits])
                        if access is read:
                            m.d.comb += access.en.eq(1)
                        else:
                            m.d.comb += [access.data.eq(port.data), access.en.eq(port.enable)]

            with m.If(self.clearing):
                m.d.comb += [write.addr.eq(cleared), write.data.eq(0), write.en.eq(-1)]

        for k, port in enumerate(self.read):
            bank: Any = port.row[index_bits:]
            for i in range(READ_LATENCY):
                later = Signal(len(bank), name=f"reader{k}_bank{i}", reset_less=True)
                m.d.sync += later.eq(bank)
                bank = later
            with m.Switch(bank):
                for b, output in enumerate(outputs):
                    with m.Case(b) if self._banks > 1 else m.Default():
                        m.d.comb += port.data.eq(output)
        return m
