"""Transposition of square blocks of elements on a stream of rows."""

from dataclasses import dataclass

from amaranth import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from sley.abi.timing import TRANSPOSER_SMALL

LUT_RAM_WORDS = 16
"""Words of a memory in LUTs that need no multiplexer behind them."""
TAG_BITS = 2


@dataclass(frozen=True)
class _Place:
    """Where a piece of a block is."""

    half: Signal
    row: Signal
    column: Signal


class BlockTransposer(wiring.Component):
    """Takes n rows of C pieces, a piece a transfer, and gives n rows of C pieces back: piece c of row j holds elements
    j of the pieces c of all rows.

    A large block is stored skewed in n banks, an element wide, so that a piece of a row and a piece of a column both
    touch every bank once. Of a small one each row has a bank of its own, whole rows wide and in LUTs: a column is an
    element of each, which takes one multiplexer and no rotators. The banks have two halves: a block fills one while the
    block before leaves the other.

    Parameters
    ----------
    size : int
        n: elements in a piece, rows in a block; a power of two, at least 2.
    element_bits : int
        Width of an element.
    columns : int
        Largest C, a power of two.

    Members
    -------
    i : In(stream of {row: n elements, last, tag})
        Row by row, piece by piece; ``last`` of its row. C is the same for all rows of a block; the tag is that of its
        last piece.
    o : Out(stream of n elements)
        Piece by piece of the transposed block.
    tag : Out(TAG_BITS)
        Of the block on ``o``.
    row_end, block_end, middle : Out(1)
        The piece on ``o`` is the last one of its row, of its block, of the first half of its row.
    complete : Out(1)
        A complete block is here.
    idle : Out(1)
        Nothing is here.

    Raises
    ------
    ValueError
        If ``size`` or ``columns`` is no power of two.

    Latency
    -------
    n * C + 1 cycles, one more with n above TRANSPOSER_SMALL.

    Throughput
    ----------
    One piece a cycle.

    Cost
    ----
    n memories of 2 * n * columns elements and two rotators of n elements, the second with a register where n is above
    TRANSPOSER_SMALL; or a multiplexer of n elements in n places.

    Source
    ------
    Skewed storage, D. J. Kuck, "ILLIAC IV software and application programming", IEEE Transactions on Computers
    C-17(8), 1968.
    """

    i: stream.Interface
    o: stream.Interface
    tag: Signal
    row_end: Signal
    block_end: Signal
    middle: Signal
    complete: Signal
    idle: Signal

    def __init__(self, size: int, element_bits: int, columns: int) -> None:
        if size < 2 or size & (size - 1):
            raise ValueError(f"size is {size}; a block has a power of two of rows, at least 2")
        if columns < 1 or columns & (columns - 1):
            raise ValueError(f"columns is {columns}; it must be a power of two")
        self._size, self._bits, self._columns = size, element_bits, columns
        row = data.ArrayLayout(element_bits, size)
        piece = data.StructLayout({"row": row, "last": 1, "tag": TAG_BITS})
        super().__init__(
            {
                "i": In(stream.Signature(piece)),
                "o": Out(stream.Signature(row)),
                "tag": Out(TAG_BITS),
                "row_end": Out(1),
                "block_end": Out(1),
                "middle": Out(1),
                "complete": Out(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        n = self._size
        some = Signal()  # blocks are complete and have not left
        both = Signal()  # two of them
        width = Array(Signal(range(self._columns), name=f"width_{half}", reset_less=True) for half in range(2))
        tags = Array(Signal(TAG_BITS, name=f"tag_{half}", reset_less=True) for half in range(2))

        def walk(name: str, last: Value, step: Signal) -> tuple[_Place, Signal]:
            """Where a piece is, and whether it is the last of its block."""
            half, row = Signal(name=f"{name}_half"), Signal(range(n), name=f"{name}_row")
            column, end = Signal(range(self._columns), name=f"{name}_column"), Signal(name=f"{name}_end")
            m.d.comb += end.eq(last & row.all())
            with m.If(step):
                m.d.sync += [column.eq(column + 1), row.eq(row + last), half.eq(half ^ end)]
                with m.If(last):
                    m.d.sync += column.eq(0)
            return _Place(half, row, column), end

        take, fetch = Signal(), Signal()
        fill, fill_end = walk("fill", self.i.payload.last, take)
        m.d.comb += [self.i.ready.eq(~both), take.eq(self.i.valid & self.i.ready)]
        begun = Signal()  # some of a block is here, and not all of it
        with m.If(take):
            m.d.sync += begun.eq(~fill_end)
            m.d.sync += [width[fill.half].eq(fill.column), tags[fill.half].eq(self.i.payload.tag)]

        drained = Signal(range(self._columns))  # the last column of the block that leaves
        row_end = Signal()
        read = Signal()  # a piece is on the outputs of the banks
        moves = Signal()  # and moves on, if it is there
        drain, drain_end = walk("drain", row_end, fetch)
        m.d.comb += [
            drained.eq(width[drain.half]),
            row_end.eq(drain.column == drained),
            fetch.eq(some & (~read | moves)),
        ]
        tags_out = Cat(self.tag, self.row_end, self.block_end, self.middle)
        tags_found = Signal.like(tags_out, reset_less=True)
        with m.If(fetch):
            m.d.sync += tags_found.eq(Cat(tags[drain.half], row_end, drain_end, drain.column == drained >> 1))
        arrives, leaves = take & fill_end, fetch & drain_end
        with m.If(arrives & ~leaves):
            m.d.sync += [some.eq(1), both.eq(some)]
        with m.If(leaves & ~arrives):
            m.d.sync += [some.eq(both), both.eq(0)]
        with m.If(~read | moves):
            m.d.sync += read.eq(fetch)

        in_luts = n <= TRANSPOSER_SMALL and 2 * self._columns <= LUT_RAM_WORDS
        store = self._banks_of_rows if in_luts else self._skewed_banks
        piece = store(m, take, fill, fetch, drain)
        if n <= TRANSPOSER_SMALL:
            m.d.comb += [
                self.o.valid.eq(read),
                moves.eq(self.o.ready),
                self.o.payload.eq(piece),
                tags_out.eq(tags_found),
            ]
        else:
            # Behind a block RAM, which answers late, so large a rotator is enough for a cycle.
            payload = Signal.like(piece, reset_less=True)
            m.d.comb += [moves.eq(~self.o.valid | self.o.ready), self.o.payload.eq(payload)]
            with m.If(moves):
                m.d.sync += [self.o.valid.eq(read), payload.eq(piece), tags_out.eq(tags_found)]
        m.d.comb += [
            self.complete.eq(some | read | self.o.valid),
            self.idle.eq(~some & ~read & ~self.o.valid & ~begun),
        ]
        return m

    def _banks_of_rows(self, m: Module, take: Value, fill: _Place, fetch: Value, drain: _Place) -> Value:
        """Row i is in bank i, and a column is read from all banks at one address."""
        tags_found = []
        for b in range(self._size):
            memory = Memory(shape=self._bits * self._size, depth=2 * self._columns, init=[])
            m.submodules[f"bank{b}"] = memory
            write, read = memory.write_port(), memory.read_port(domain="comb")
            m.d.comb += [
                write.en.eq(take & (fill.row == b)),
                write.addr.eq(Cat(fill.column, fill.half)),
                write.data.eq(self.i.payload.row),
                read.addr.eq(Cat(drain.column, drain.half)),
            ]
            tags_found.append(read.data.word_select(drain.row, self._bits))
        payload = Signal(self._bits * self._size, reset_less=True)
        with m.If(fetch):
            m.d.sync += payload.eq(Cat(tags_found))
        return payload

    def _skewed_banks(self, m: Module, take: Value, fill: _Place, fetch: Value, drain: _Place) -> Value:
        """Piece c of row i is at address (half, c, i) of every bank, element e in bank (e + i) mod n; so element i of
        column j is in bank (i + j) mod n at the address of row i."""
        n, bits = self._size, self._bits
        fetched_row = Signal.like(drain.row, name="fetched_row", reset_less=True)
        with m.If(fetch):
            m.d.sync += fetched_row.eq(drain.row)
        skewed = self._rotate(self.i.payload.row.as_value(), fill.row, left=True)
        tags_found = []
        for b in range(n):
            # A block is read when it is complete, so no address is read and written at a time. Yosys believes it only
            # where the register behind the memory is one of its own.
            bank = Memory(shape=bits, depth=2 * n * self._columns, init=[], attrs={"no_rw_check": 1})
            m.submodules[f"bank{b}"] = bank
            write, read = bank.write_port(), bank.read_port(domain="comb")
            row = Signal.like(drain.row, name=f"row_{b}")
            m.d.comb += [
                write.en.eq(take),
                write.addr.eq(Cat(fill.row, fill.column, fill.half)),
                write.data.eq(skewed.word_select(b, bits)),
                row.eq(b - drain.row),
                read.addr.eq(Cat(row, drain.column, drain.half)),
            ]
            element = Signal(bits, name=f"element_{b}", reset_less=True)
            with m.If(fetch):
                m.d.sync += element.eq(read.data)
            tags_found.append(element)
        return self._rotate(Cat(tags_found), fetched_row, left=False)

    def _rotate(self, row: Value, places: Value, *, left: bool) -> Value:
        """Element e of the result is element e - ``places`` (left) or e + ``places`` of the row, modulo n."""
        for step in range(exact_log2(self._size)):
            by = self._bits << step
            row = Mux(places[step], row.rotate_left(by) if left else row.rotate_right(by), row)
        return row
