"""Transposition of square blocks of elements on a stream of rows."""

from amaranth import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2


class BlockTransposer(wiring.Component):
    """Takes n rows of C pieces, a piece a transfer, and gives n rows of C pieces back: piece c of row j holds elements
    j of the pieces c of all rows.

    Elements lie skewed in n banks, so that a piece of a row and a piece of a column both touch every bank once. The
    banks have two halves: a block fills one while the block before leaves the other.

    Parameters
    ----------
    size : int
        n: elements in a piece, rows in a block; a power of two, at least 2.
    element_bits : int
    columns : int
        Largest C, a power of two.

    Members
    -------
    i : In(stream of {row: n elements, columns: C})
        Row by row, piece by piece. C is the same for all pieces of a block.
    o : Out(stream of n elements)
    columns : Out
        C of the block on ``o``.
    level : Out(2)
        Blocks that are complete and have not left.
    idle : Out(1)
        Nothing is here.

    Latency n * C + 1 cycles, throughput one piece a cycle. Cost: n memories of 2 * n * columns elements and two
    rotators of n elements.
    Source of the method: skewed storage, D. J. Kuck, "ILLIAC IV software and application programming", IEEE
    Transactions on Computers C-17(8), 1968.
    """

    i: stream.Interface
    o: stream.Interface
    columns: Signal
    level: Signal
    idle: Signal

    def __init__(self, size: int, element_bits: int, columns: int) -> None:
        if size < 2 or size & (size - 1):
            raise ValueError(f"size is {size}; a block has a power of two of rows, at least 2")
        if columns < 1 or columns & (columns - 1):
            raise ValueError(f"columns is {columns}; it must be a power of two")
        self._size, self._bits, self._columns = size, element_bits, columns
        row = data.ArrayLayout(element_bits, size)
        super().__init__(
            {
                "i": In(stream.Signature(data.StructLayout({"row": row, "columns": range(columns + 1)}))),
                "o": Out(stream.Signature(row)),
                "columns": Out(range(columns + 1)),
                "level": Out(2),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        n, bits = self._size, self._bits
        full = Array(Signal(name=f"full_{half}") for half in range(2))
        width = Array(Signal.like(self.i.payload.columns, name=f"width_{half}", reset_less=True) for half in range(2))

        def walk(name: str, columns: Value, step: Signal) -> tuple[Signal, Signal, Signal, Signal]:
            """Half, row, and column of a piece, and whether it is the last of its block."""
            half, row = Signal(name=f"{name}_half"), Signal(range(n), name=f"{name}_row")
            column, end = Signal(range(self._columns), name=f"{name}_column"), Signal(name=f"{name}_end")
            last = column == columns - 1
            m.d.comb += end.eq(last & (row == n - 1))
            with m.If(step):
                m.d.sync += [column.eq(Mux(last, 0, column + 1)), row.eq(row + last), half.eq(half ^ end)]
            return half, row, column, end

        # In: piece c of row i goes to address (half, c, i) of every bank, element e to bank (e + i) mod n.
        take, fetch = Signal(), Signal()
        fill, fill_row, fill_column, fill_end = walk("fill", self.i.payload.columns, take)
        m.d.comb += [self.i.ready.eq(~full[fill]), take.eq(self.i.valid & self.i.ready)]
        begun = Signal()  # some of a block is here, and not all of it
        with m.If(take):
            m.d.sync += begun.eq(~fill_end)
        with m.If(take & fill_end):
            m.d.sync += [full[fill].eq(1), width[fill].eq(self.i.payload.columns)]

        # Out: element i of column j is in bank (i + j) mod n at the address of row i.
        columns = Signal.like(self.i.payload.columns)
        drain, drain_row, drain_column, drain_end = walk("drain", columns, fetch)
        fetched_row = Signal.like(drain_row, reset_less=True)
        m.d.comb += [columns.eq(width[drain]), fetch.eq(full[drain] & (~self.o.valid | self.o.ready))]
        with m.If(fetch):
            m.d.sync += [fetched_row.eq(drain_row), self.columns.eq(columns)]
            with m.If(drain_end):
                m.d.sync += full[drain].eq(0)
        with m.If(~self.o.valid | self.o.ready):
            m.d.sync += self.o.valid.eq(fetch)

        skewed = self._rotate(self.i.payload.row.as_value(), fill_row, left=True)
        found = []
        for b in range(n):
            m.submodules[f"bank{b}"] = bank = Memory(shape=bits, depth=2 * n * self._columns, init=[])
            write, read = bank.write_port(), bank.read_port()
            row = Signal.like(drain_row, name=f"row_{b}")
            m.d.comb += [
                write.en.eq(take),
                write.addr.eq(Cat(fill_row, fill_column, fill)),
                write.data.eq(skewed.word_select(b, bits)),
                row.eq(b - drain_row),
                read.en.eq(fetch),
                read.addr.eq(Cat(row, drain_column, drain)),
            ]
            found.append(read.data)
        m.d.comb += [
            self.o.payload.eq(self._rotate(Cat(found), fetched_row, left=False)),
            self.level.eq(full[0] + full[1]),
            self.idle.eq(~full[0] & ~full[1] & ~self.o.valid & ~begun),
        ]
        return m

    def _rotate(self, row: Value, places: Value, *, left: bool) -> Value:
        """Element e of the result is element e - ``places`` (left) or e + ``places`` of the row, modulo n."""
        for step in range(exact_log2(self._size)):
            by = self._bits << step
            row = Mux(places[step], row.rotate_left(by) if left else row.rotate_right(by), row)
        return row
