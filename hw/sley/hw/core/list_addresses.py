"""Addresses of runs by a list of offsets in the accumulators."""

from amaranth import Const, Module, Mux, ResetInserter, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Member, Out
from amaranth.utils import exact_log2

from sley.abi.config import ChipConfig
from sley.abi.parameters import PARAMS, Param
from sley.abi.timing import SRAM_READ
from sley.hw.core.affine import POSITION_BITS, Loops
from sley.hw.core.sram.memories import accumulator_read
from sley.hw.stream.fifo import StreamFIFO

COUNT_BITS = 16
"""Of the runs of a slab."""
QUEUE = 4
"""Addresses in the memory of the queue; there is one more in its output register."""
WORDS_AHEAD = QUEUE + 1
"""Words read whose addresses have not been taken: covers the latencies of the memory, the queue and their count."""


def list_beyond(config: ChipConfig, row: Value, runs: Value) -> Value:
    """Whether a list from this row on, of so many runs, at least one, ends behind the accumulators."""
    lanes = exact_log2(config.array)
    end, bits = (row << lanes) + runs[:COUNT_BITS], exact_log2(config.accumulator_rows) + lanes
    return end[bits + 1 :].any() | (end[bits] & end[:bits].any())


def list_port(config: ChipConfig) -> dict[str, Member]:
    """The port of a unit to its lists, where the chip has ``gather``: a read of one lane of an accumulator row."""
    return {"list_read": Out(accumulator_read(config, config.array))} if config.gather else {}


def run_address(
    m: Module,
    config: ChipConfig,
    unit: wiring.Component,
    params: data.View,
    walked: Value,
    *,
    take: Value,
    by_list: Value,
    working: Value,
    step: Value,
) -> tuple[Value, Value]:
    """The address of the run at hand, and whether it is known: ``walked``, or that by a list.

    The ``unit`` takes its ``command`` with ``take`` and is ``working`` until its last run; ``step`` goes to the next.
    """
    if not config.gather:
        return walked, Const(1, 1)
    command = unit.command.payload
    m.submodules.list_addresses = addresses = ListAddresses(config)
    wiring.connect(m, addresses.read, wiring.flipped(unit.list_read))
    uses_list = Signal(reset_less=True)
    with m.If(take):
        m.d.sync += uses_list.eq(by_list)
    m.d.comb += [
        addresses.start.eq(take),
        addresses.enable.eq(working & uses_list),
        addresses.base.eq(command.a),
        addresses.runs.eq(command.c),
        addresses.row.eq(params.list_row),
        addresses.stride.eq(params.mem_stride2),
        addresses.o.ready.eq(step),
    ]
    return Mux(uses_list, addresses.o.payload, walked), ~uses_list | addresses.o.valid


class ListAddresses(wiring.Component):
    """Reads a list ahead of the runs and adds each word to the address of the slab, slab after slab without an end.

    A word is read by itself, a lane of a row, so no row is kept and nobody else's reads are held up for longer than
    the reader's rank among them says.

    Parameters
    ----------
    config : ChipConfig
        The chip, which has ``gather``.

    Members
    -------
    start : In(1)
        Captures ``base``, ``runs`` and ``row``; what was read before is forgotten.
    enable : In(1)
        Words may be read. Low from the end of a command to the next ``start``.
    base : In(32), runs : In(16)
        Where offsets count from in the first slab, and the words of the list, at least one.
    row : In(16), stride : In(signed(32))
        The first accumulator row of the list, whose rows exist, and bytes from slab to slab. Both must not change while
        ``enable`` is high.
    o : Out(stream of 32 bits)
        The address of each run, modulo 2**32.
    read : Out(read_port(...))
        One lane of an accumulator row.

    Latency
    -------
    LIST_LATENCY cycles from ``start`` to the first address, and one for each in which a read is not granted.

    Throughput
    ----------
    An address a cycle, from slab to slab, too.

    Cost
    ----
    Two adders of 32 bits, a register for one of them, a count and a place in the list, a queue of 4 addresses.
    """

    start: Signal
    enable: Signal
    base: Signal
    runs: Signal
    row: Signal
    stride: Signal
    o: stream.Interface
    read: wiring.PureInterface

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        super().__init__(
            {
                "start": In(1),
                "enable": In(1),
                "base": In(POSITION_BITS),
                "runs": In(COUNT_BITS),
                "row": In(PARAMS[Param.LIST_ROW].width),
                "stride": In(signed(POSITION_BITS)),
                "o": Out(stream.Signature(POSITION_BITS)),
                "read": Out(accumulator_read(config, config.array)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lanes = exact_log2(self._config.array)
        m.submodules.loops = loops = Loops((COUNT_BITS,))
        m.submodules.queue = queue = ResetInserter(self.start)(StreamFIFO(POSITION_BITS, QUEUE))
        wiring.connect(m, queue.o, wiring.flipped(self.o))
        place = Signal(len(self.read.row) + lanes, reset_less=True)  # lane and row
        first = Signal()
        room = Signal(range(WORDS_AHEAD + 1), init=WORDS_AHEAD)
        full = Signal()  # room is 0
        granted, moved = Signal(), Signal()
        m.d.comb += [
            loops.start.eq(self.start),
            loops.count_0.eq(self.runs),
            loops.step.eq(granted),
            self.read.valid.eq(self.enable & ~full),
            self.read.row.eq(place[lanes:]),
            self.read.part.eq(place[:lanes]),
            granted.eq(self.read.valid & self.read.ready),
            moved.eq(queue.o.valid & queue.o.ready),
            first.eq(self.start | (granted & loops.last[0])),
        ]
        with m.If(granted):
            m.d.sync += place.eq(place + 1)
        with m.If(first):
            m.d.sync += place.eq(self.row << lanes)
        m.d.sync += [room.eq(room - granted + moved), full.eq(~moved & (full | (granted & (room == 1))))]
        with m.If(self.start):
            m.d.sync += [room.eq(WORDS_AHEAD), full.eq(0)]

        valid: Value = granted & ~self.start
        last: Value = loops.last[0]
        for k in range(SRAM_READ):
            valid_next, last_next = Signal(name=f"valid_{k}"), Signal(name=f"last_{k}", reset_less=True)
            m.d.sync += [valid_next.eq(valid & ~self.start), last_next.eq(last)]
            valid, last = valid_next, last_next
        slab = Signal(POSITION_BITS, reset_less=True)  # its address
        m.d.comb += [queue.i.valid.eq(valid), queue.i.payload.eq(slab + self.read.data)]
        with m.If(self.start | (valid & last)):
            m.d.sync += slab.eq(Mux(self.start, self.base, slab + self.stride))
        return m
