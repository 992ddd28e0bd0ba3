"""Round robin: the choice itself, and the merge of packet streams."""

from itertools import combinations

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from sley.hw.stream.buffer import StreamBuffer


def lowest(requests: Value) -> Value:
    """One-hot: the lowest bit that is set, or nothing."""
    return requests & ~higher(requests)


def higher(bits: Value) -> Value:
    """Every bit above the lowest that is set. Without the carries of a sum: most of these words are short."""
    return Cat(bits[:k].any() for k in range(len(bits)))


class PacketGrant(wiring.Component):
    """Chooses one of ``n`` requesters, round robin, and stays with it until its packet has ended.

    Parameters
    ----------
    n : int
        Requesters, at least 1.
    weights : tuple of int
        For each requester the packets that it may send in a row, if it requests again at once; 1 if not given.

    Members
    -------
    requests : In(n)
        One bit per requester.
    grant : Out(n)
        One-hot, combinational, never a requester without a request.
    moved : In(1), last : In(1)
        The granted requester's item passes in this cycle; that item ends the packet.

    Raises
    ------
    ValueError
        If ``n`` is below 1, or ``weights`` is not one number, at least 1, for each requester.

    Rules
    -----
    1. Within a packet its requester alone is granted.
    2. Between packets the one served last wins if it has weight left, else the first requester above it, then the
       lowest.
    """

    requests: Signal
    grant: Signal
    moved: Signal
    last: Signal

    def __init__(self, n: int, weights: tuple[int, ...] = ()) -> None:
        if n < 1:
            raise ValueError(f"n is {n}; there must be at least 1 requester")
        if weights and (len(weights) != n or min(weights) < 1):
            raise ValueError(f"turns is {weights}; there must be one number, at least 1, for each of {n} requesters")
        self._n = n
        self._weights = weights or (1,) * n
        super().__init__({"requests": In(n), "grant": Out(n), "moved": In(1), "last": In(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        n = self._n
        if n == 1:  # nobody else could come between
            m.d.comb += self.grant.eq(self.requests)
            return m
        owner = Signal(n)
        eligible = Signal(n, init=-1)  # be granted: all between packets, else the owner
        weight_left = Signal(n)  # for each requester: if it is served now, it has turns left
        above = Signal(n)  # if an item moves: those to whom the round comes before it ends, first of all an owner
        m.d.comb += above.eq(higher(self.grant) | (self.grant & (weight_left | ~self.last.replicate(n))))
        # Which of two goes first is in a register, so that a choice is a matter of who asks.
        behind: list[Value] = [Const(0, 1)] * n  # one that goes before it asks
        for j, k in combinations(range(n), 2):
            passed = Signal(name=f"passed{j}_{k}")  # the lower number is, in this round, and the other one is not
            with m.If(self.moved):
                m.d.sync += passed.eq(above[k] & ~above[j])
            behind[k] = behind[k] | (self.requests[j] & ~passed)
            behind[j] = behind[j] | (self.requests[k] & passed)
        m.d.comb += self.grant.eq(self.requests & eligible & ~Cat(behind))
        with m.If(self.moved):
            m.d.sync += [owner.eq(self.grant), eligible.eq(self.grant | self.last.replicate(n))]
        if max(self._weights) > 1:
            count = Signal(range(max(self._weights) + 1))  # packets in a row of the one served last
            used = Signal.like(count)  # with the one that it may send now
            m.d.comb += used.eq(count + (eligible.all() & (count < max(self._weights))))
            for k, weights in enumerate(self._weights):
                m.d.comb += weight_left[k].eq(Mux(owner[k], used < weights, weights > 1))
            with m.If(self.moved):
                m.d.sync += count.eq(Mux((self.grant & owner).any(), used, 1))
        return m


class PacketArbiter(wiring.Component):
    """Merges ``n`` streams of packets into one; packets stay whole.

    Parameters
    ----------
    shape : data.Layout
        A struct layout with a field ``last`` that ends a packet.
    n : int
        Inputs, at least 1.
    weights : tuple of int
        As of ``PacketGrant``.

    Members
    -------
    i : In(stream of shape).array(n)
        The inputs, round robin between packets (see ``PacketGrant``). ``ready`` depends on the ``valid`` of all of
        them.
    o : Out(stream of shape)
        The packets; from registers.

    Raises
    ------
    ValueError
        If ``n`` is below 1.

    Latency
    -------
    1 cycle.

    Throughput
    ----------
    1 flit per cycle, no gap between packets.

    Cost
    ----
    An n-to-1 multiplexer and a ``StreamBuffer``.
    """

    i: list[stream.Interface]
    o: stream.Interface

    def __init__(self, shape: data.Layout, n: int, weights: tuple[int, ...] = ()) -> None:
        if n < 1:
            raise ValueError(f"n is {n}; there must be at least 1 input")
        self._shape = shape
        self._n = n
        self._weights = weights
        super().__init__({"i": In(stream.Signature(shape)).array(n), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.buffer = buffer = StreamBuffer(self._shape)
        m.submodules.grant = grant = PacketGrant(self._n, self._weights)
        select_packet(m, self.i, buffer.i, grant)
        wiring.connect(m, buffer.o, wiring.flipped(self.o))
        return m


def select_packet(m: Module, inputs: list[stream.Interface], output: stream.Interface, grant: PacketGrant) -> None:
    """Wire the streams through: the granted input to the output."""
    chosen = Value.cast(output.payload)
    selected: Value = Value.cast(inputs[0].payload)
    for k in range(1, len(inputs)):
        selected = Mux(grant.grant[k], Value.cast(inputs[k].payload), selected)
    for k, port in enumerate(inputs):
        m.d.comb += [grant.requests[k].eq(port.valid), port.ready.eq(grant.grant[k] & output.ready)]
    m.d.comb += [
        chosen.eq(selected),
        output.valid.eq(grant.grant.any()),
        grant.moved.eq(output.valid & output.ready),
        grant.last.eq(output.payload.last),
    ]
