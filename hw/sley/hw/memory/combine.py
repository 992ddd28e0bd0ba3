"""Where loads that cores of a gang share become one read of memory."""

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.instructions import Share
from sley.abi.network import AccessError
from sley.abi.placement import core_node
from sley.abi.timing import READER_BEATS
from sley.hw.noc.access import ERROR_BITS
from sley.hw.noc.messages import BEATS_BITS, SHARE_BITS, Coordinate, request_head
from sley.hw.stream.arbiter import PacketGrant
from sley.hw.stream.buffer import StreamBuffer
from sley.hw.stream.fifo import StreamFIFO

_REQUEST = data.StructLayout({"addr": 32, "beats": BEATS_BITS, "share": SHARE_BITS, "error": ERROR_BITS})

COMBINED = data.StructLayout(
    {"addr": 32, "beats": BEATS_BITS, "near": Coordinate, "far": Coordinate, "error": ERROR_BITS}
)
"""A read for all nodes from ``near`` to ``far``. One with an ``error`` (``AccessError``) is answered so, not read."""


class ReadCombiner(wiring.Component):
    """Queues the reads of each core's Load and joins those that cores of a gang share.

    Parameters
    ----------
    config : ChipConfig
        The chip, with several cores.

    Members
    -------
    i : In(stream of request_head(config))
        Heads of READ requests of cores, always accepted.
    o : Out(stream of COMBINED)
        The reads that go on.
    ended : In(cores)
        One bit per core: its block of the gang has ended and requests nothing any more.

    Raises
    ------
    ValueError
        If the chip has one core.

    Rules
    -----
    1. The oldest read of a core goes on when it is not shared, or when the oldest reads of all cores of its row, of its
       column or of the chip are the same one: address, beats, ``Share``, and error if it has one.
    2. Reads of one core stay in order.
    3. Among cores whose oldest read can go on it is round robin; a shared one is requested by its first core.
    4. Shared reads that cannot be joined do not wait for ever. When every core either waits with a shared read or has
       ended its block of the gang, and none of these reads can be joined, nothing that is still to come could change
       that: then the oldest read of one core is *lost*. It is answered with ``AccessError.BUS``, which stops its block,
       and so on until the gang has ended. It happens when a core has stopped at a fault, or when programs share what is
       not the same.

    Latency
    -------
    4 cycles.

    Throughput
    ----------
    One read a cycle.

    Cost
    ----
    A queue of ``READER_BEATS`` reads per core, as many as its reader can have outstanding, and a stream register; for
    each core but the first a comparator of 44 bits in its row and one in its column.
    """

    i: stream.Interface
    o: stream.Interface
    ended: Signal

    def __init__(self, config: ChipConfig) -> None:
        if config.cores == 1:
            raise ValueError("config has 1 core; there is nothing to combine with less than 2")
        self._config = config
        super().__init__(
            {
                "i": In(stream.Signature(request_head(config))),
                "o": Out(stream.Signature(COMBINED)),
                "ended": In(config.cores),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        c = self._config
        columns, rows = range(c.cores_x), range(c.cores_y)
        heads: list[data.View] = []
        waiting_read = Signal(c.cores)
        for k in range(c.cores):
            m.submodules[f"queue{k}"] = queue = StreamFIFO(_REQUEST, READER_BEATS)
            x, y = core_node(c, k)
            from_core = (self.i.payload.src.x == x) & (self.i.payload.src.y == y)
            m.d.comb += [
                queue.i.valid.eq(self.i.valid & from_core),
                *(queue.i.payload[name].eq(self.i.payload[name]) for name in ("addr", "beats", "share", "error")),
            ]
            with m.If(from_core):
                m.d.comb += self.i.ready.eq(queue.i.ready)
            m.submodules[f"head{k}"] = front = StreamBuffer(_REQUEST)
            wiring.connect(m, queue.o, front.i)
            heads.append(front.o)

        m.d.comb += [waiting_read[k].eq(head.valid) for k, head in enumerate(heads)]

        def same(a: int, b: int) -> Value:
            return waiting_read[b] & (heads[a].payload.as_value() == heads[b].payload.as_value())

        row_alike = Signal(c.cores_y)
        column_alike = Signal(c.cores_x)
        for y in rows:
            m.d.comb += row_alike[y].eq(Cat(same(y * c.cores_x, y * c.cores_x + x) for x in columns).all())
        for x in columns:
            m.d.comb += column_alike[x].eq(Cat(same(x, y * c.cores_x + x) for y in rows).all())

        ready = Signal(c.cores)  # the oldest read can go on, and this core asks for all that share it
        waits = Signal(c.cores)  # it is shared
        for k in range(c.cores):
            y, x = divmod(k, c.cores_x)
            share = heads[k].payload.share
            m.d.comb += waits[k].eq(waiting_read[k] & (share != Share.NONE))
            with m.Switch(share):
                with m.Case(Share.NONE):
                    m.d.comb += ready[k].eq(waiting_read[k])
                if x == 0:
                    with m.Case(Share.ROW):
                        m.d.comb += ready[k].eq(row_alike[y])
                if y == 0:
                    with m.Case(Share.COLUMN):
                        m.d.comb += ready[k].eq(column_alike[x])
                if k == 0:
                    with m.Case(Share.ALL):
                        m.d.comb += ready[k].eq(row_alike.all() & column_alike[0])

        deadlocked = Signal()  # nothing has changed since no read could go on
        m.submodules.grant = grant = PacketGrant(c.cores)
        m.submodules.out = out = StreamBuffer(COMBINED)
        wiring.connect(m, out.o, wiring.flipped(self.o))
        m.d.comb += [
            grant.requests.eq(Mux(deadlocked, waiting_read, ready)),
            grant.last.eq(1),
            grant.moved.eq(out.i.valid & out.i.ready),
            out.i.valid.eq(grant.grant.any()),
        ]
        m.d.sync += deadlocked.eq(
            ~grant.grant.any() & waiting_read.any() & (waits | (self.ended & ~waiting_read)).all()
        )
        for k in range(c.cores):
            y, x = divmod(k, c.cores_x)
            share = heads[k].payload.share
            granted_read = out.i.payload
            with m.If(grant.grant[k]):
                m.d.comb += [
                    granted_read.addr.eq(heads[k].payload.addr),
                    granted_read.beats.eq(heads[k].payload.beats),
                    granted_read.error.eq(Mux(deadlocked, AccessError.BUS, heads[k].payload.error)),
                ]
                near, far = core_node(c, k), core_node(c, k)
                m.d.comb += [
                    granted_read.near.x.eq(near[0]),
                    granted_read.near.y.eq(near[1]),
                    granted_read.far.x.eq(far[0]),
                    granted_read.far.y.eq(far[1]),
                ]
                (left, top), (right, bottom) = core_node(c, 0), core_node(c, c.cores - 1)
                with m.If(share[0] & ~deadlocked):
                    m.d.comb += [granted_read.near.x.eq(left), granted_read.far.x.eq(right)]
                with m.If(share[1] & ~deadlocked):
                    m.d.comb += [granted_read.near.y.eq(top), granted_read.far.y.eq(bottom)]
            first = {Share.ROW: y * c.cores_x, Share.COLUMN: x, Share.ALL: 0}
            taken = grant.grant[k]
            for kind, first_core in first.items():
                together = (share == kind) & (heads[first_core].payload.share == kind) & ~deadlocked
                taken = taken | (grant.grant[first_core] & together)
            m.d.comb += heads[k].ready.eq(out.i.ready & waiting_read[k] & taken)
        return m
