"""Streams: no transfer is dropped, doubled, changed or reordered, and a payload waits unchanged."""

from typing import Any

import pytest
from amaranth.hdl import Assert, Assume, Module, Mux, Signal, Value
from amaranth.lib import data

from sley.hw.stream.arbiter import PacketArbiter
from sley.hw.stream.buffer import StreamBuffer
from sley.hw.stream.fifo import StreamFIFO
from sley.hw.stream.prefetch import PrefetchFIFO
from sley.hw.stream.wide import WideFIFO
from sley.hw.testing.fifo_facts import fifo_facts
from sley.hw.testing.in_order import InOrder
from sley.hw.testing.mutation import mutated, planted
from sley.hw.testing.proof import Counterexample, prove


class Queued(InOrder):
    """A queue of any kind.

    The block takes an item if it holds fewer than ``accepts``, never holds more than ``holds``, and offers one
    ``latency`` cycles after it came at the latest. What it offers stays until it is taken. ``level`` is how many it
    holds by its own account, ``lemma`` what else its registers keep, each of them by name, ``held`` items by their
    places in the order.
    """

    held: Any = staticmethod(lambda inner: [])

    def __init__(
        self, dut: Any, level: Any, lemma: Any = lambda inner: [], *, accepts: int, holds: int, latency: int
    ) -> None:
        super().__init__(dut)
        self.level, self.lemma, self.accepts, self.holds, self.latency = level, lemma, accepts, holds, latency

    def elaborate(self, platform: object) -> Module:
        m = Module()
        dut = self.dut
        inner = self.inner(m, dut)
        m.d.comb += [Assert(fact) for fact in self.lemma(inner)]
        self.free_inputs(m, dut)
        come, go = dut.i.valid & dut.i.ready, dut.o.valid & dut.o.ready
        inside = Signal(range(self.holds + 2))
        m.d.sync += inside.eq(inside + come - go)

        chosen, place, item = self.follow(m, inside, come, dut.i.payload, go, dut.o.payload)
        m.d.comb += [Assert(~chosen | (place != k) | (held == item)) for k, held in self.held(inner)]

        patience = Signal(range(self.latency + 2))
        m.d.sync += patience.eq(0)
        with m.If((inside != 0) & ~dut.o.valid):
            m.d.sync += patience.eq(patience + 1)

        waits, offered = Signal(), Signal(dut.o.payload.shape(), reset_less=True)
        m.d.sync += waits.eq(dut.o.valid & ~dut.o.ready)
        with m.If(dut.o.valid & ~dut.o.ready):
            m.d.sync += offered.eq(dut.o.payload)
        m.d.comb += [
            Assert(inside == self.level),
            Assert(inside <= self.holds),
            Assert(dut.i.ready | (inside >= self.accepts)),
            Assert(~dut.o.valid | (inside != 0)),
            Assert(patience < self.latency),
            Assert(~waits | (dut.o.valid & (dut.o.payload == offered))),
        ]
        return m


def buffer(component: Any = StreamBuffer) -> Queued:
    dut = component(1)
    return Queued(dut, dut.o.valid + ~dut.i.ready, accepts=2, holds=2, latency=1)


def fifo(depth: int, component: Any = StreamFIFO) -> Queued:
    dut = component(1, depth)

    def facts(inner: Any) -> list[Any]:
        fetch = inner["some"] & (~dut.o.valid | dut.o.ready)
        both = dut.i.valid & dut.i.ready & fetch & (inner["write_index"] == inner["read_index"])
        return [*fifo_facts(inner, depth), dut.empty == (dut.level == 0), ~both]  # as memory is told

    return Queued(dut, dut.level, facts, accepts=depth, holds=depth + 1, latency=2)


def prefetch(depth: int, component: Any = PrefetchFIFO) -> Queued:
    dut = component(1, depth)

    def facts(inner: Any) -> list[Any]:
        some, ahead, offered = inner["some"], inner["ahead_valid"], dut.o.valid
        stored = (dut.level - ahead - offered)[: len(dut.level)]
        read, write = inner["read_index"], inner["write_index"]
        fetch = some & (~ahead | ~offered | dut.o.ready)
        return [
            *(dut.level >= ahead + offered, stored <= depth, read < depth, write < depth),
            *(write == (read + stored) % depth, some == (stored != 0), inner["full"] == (stored == depth)),
            *(ahead | (stored <= 1), offered | ~ahead, ahead | ~some | (inner["newest"] == inner["oldest"])),
            dut.empty == (dut.level == 0),
            ~(dut.i.valid & dut.i.ready & fetch & (read == write)),
        ]

    queued = Queued(dut, dut.level, facts, accepts=depth, holds=depth + 2, latency=2)
    queued.held = lambda inner: [
        (0, Mux(dut.o.valid, dut.o.payload, inner["oldest"])),
        (dut.o.valid, Mux(inner["ahead_valid"], inner["ahead"], inner["oldest"])),
        (dut.o.valid + inner["ahead_valid"], inner["oldest"]),
    ]
    return queued


def wide(depth: int, component: Any = WideFIFO) -> Queued:
    dut = component(1, depth)

    def facts(inner: Any) -> list[Any]:
        read, write = inner["read_index"], inner["write_index"]
        return [
            *(dut.level <= depth, read < depth, write < depth, write == (read + dut.level) % depth),
            *(inner["some"] == (dut.level != 0), inner["full"] == (dut.level == depth), dut.empty == ~inner["some"]),
            *(inner["some"] | ~dut.o.valid, dut.o.valid | (dut.level <= 1)),
        ]

    return Queued(dut, dut.level, facts, accepts=depth, holds=depth, latency=2)


def test_buffer() -> None:
    prove(buffer(), 10)


@planted(
    {
        "overrun": ("self.i.ready.eq(~spare_valid)", "self.i.ready.eq(1)"),
        "spare ignored": ("payload.eq(spare)", "payload.eq(self.i.payload)"),
        "spare lost": ("spare_valid.eq(1)", "spare_valid.eq(0)"),
        "spare doubled": ("| spare_valid), spare_valid.eq(0)", "| spare_valid)"),
        "no wait": ("m.If(~self.o.valid | self.o.ready)", "m.If(1)"),
        "spare overwritten": ("with m.If(self.i.ready):", "with m.If(1):"),
    }
)
def test_buffer_finds(line: str, bug: str) -> None:
    with pytest.raises(Counterexample):
        prove(buffer(mutated(StreamBuffer, line, bug)), 8)


@pytest.mark.parametrize("depth", [2, pytest.param(3, marks=pytest.mark.campaign)])
def test_fifo(depth: int) -> None:
    prove(fifo(depth), 6 * depth)


@pytest.mark.some(1, "campaign")
@pytest.mark.parametrize("depth", [2, 3])
def test_fifo_with_sums(depth: int) -> None:
    """As queues with long indices are."""
    prove(fifo(depth, mutated(StreamFIFO, "len(index) <= SHORT", "False")), 6 * depth)


@planted(
    {
        "wrap": ("Mux(index == self._depth - 1, 0", "Mux(index == self._depth - 2, 0"),
        "overrun": ("self.i.ready.eq(~full)", "self.i.ready.eq(1)"),
        "underrun": ("fetch = some & (~self.o.valid | self.o.ready)", "fetch = ~self.o.valid | self.o.ready"),
        "no wait": ("fetch = some & (~self.o.valid | self.o.ready)", "fetch = some"),
        "never empty": ("some.eq(~last)", "some.eq(1)"),
        "full too late": ("full.eq(next_write == read_index)", "full.eq(write_index == read_index)"),
        "doubled": ("m.Elif(fetch & ~push)", "m.Elif(fetch)"),
        "dropped": ("self.o.valid.eq(fetch)", "self.o.valid.eq(fetch & ~self.i.valid)"),
    }
)
def test_fifo_finds(line: str, bug: str) -> None:
    with pytest.raises(Counterexample):
        prove(fifo(3, mutated(StreamFIFO, line, bug)), 12)


@pytest.mark.some(1, "campaign")
@pytest.mark.parametrize("depth", [2, 3])
def test_prefetch(depth: int) -> None:
    prove(prefetch(depth), 6 * depth)


@planted(
    {
        "doubled": ("ahead_valid.eq(ahead_valid & some)", "ahead_valid.eq(some)"),
        "never past": ("Mux(ahead_valid, ahead, newest)", "ahead"),
        "always past": ("Mux(ahead_valid, ahead, newest)", "newest"),
        "kept": ("some & (~ahead_valid | leaves)", "some & ~ahead_valid"),
        "not read": ("with m.Elif(some):", "with m.Elif(0):"),
        "late": ("self.o.valid.eq(ahead_valid | some)", "self.o.valid.eq(ahead_valid)"),
    }
)
def test_prefetch_finds(line: str, bug: str) -> None:
    with pytest.raises(Counterexample):
        prove(prefetch(3, mutated(PrefetchFIFO, line, bug)), 12)


@pytest.mark.parametrize("depth", [pytest.param(3, marks=pytest.mark.campaign), 4])
def test_wide(depth: int) -> None:
    prove(wide(depth), 6 * depth)


@planted(
    {
        "dropped": ("self.o.valid & self.o.ready", "self.o.ready"),
        "underrun": ("some & ~(leaves & last)", "some"),
        "late": ("some & ~(leaves & last)", "some & ~leaves"),
        "no wait": ("self.o.valid & self.o.ready", "self.o.valid"),
    }
)
def test_wide_finds(line: str, bug: str) -> None:
    with pytest.raises(Counterexample):
        prove(wide(3, mutated(WideFIFO, line, bug)), 12)


FLIT = data.StructLayout({"source": 1, "data": 1, "last": 1})


class Merged(InOrder):
    """Packets of two sources into one stream: those of each source in order, and whole."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        dut = self.dut
        inner = self.inner(m, dut)
        self.free_inputs(m, dut)
        for k, port in enumerate(dut.i):
            m.d.comb += Assume(port.payload.source == k)

        source = self.constant(1, "source")
        spare = data.View(FLIT, Value.cast(inner["buffer.spare"]))
        come, came = Signal(), Signal(FLIT)
        go, offers, keeps = Signal(), Signal(), Signal()
        for k, port in enumerate(dut.i):
            with m.If(source == k):
                m.d.comb += [come.eq(port.valid & port.ready), came.eq(port.payload)]
        m.d.comb += [
            offers.eq(dut.o.valid & (dut.o.payload.source == source)),
            keeps.eq(inner["buffer.spare_valid"] & (spare.source == source)),
            go.eq(offers & dut.o.ready),
        ]
        inside = Signal(2)
        m.d.sync += inside.eq(inside + come - go)
        m.d.comb += [
            Assert(inside == offers + keeps),
            Assert(dut.o.valid | ~inner["buffer.spare_valid"]),
        ]
        self.follow(m, inside, come, came, go, dut.o.payload)

        taken = [port.valid & port.ready for port in dut.i]
        m.d.comb += Assert(~(taken[0] & taken[1]))
        unfinished, owner = Signal(), Signal()
        with m.If(dut.o.valid & dut.o.ready):
            m.d.sync += [unfinished.eq(~dut.o.payload.last), owner.eq(dut.o.payload.source)]
            m.d.comb += Assert(~unfinished | (dut.o.payload.source == owner))

        # Lemma: the rule holds from flit to flit inside, up to the packet to which the inputs are locked.
        for valid, flit in ((dut.o.valid, dut.o.payload), (inner["buffer.spare_valid"], spare)):
            m.d.comb += Assert(~valid | ~unfinished | (flit.source == owner))
            unfinished, owner = Mux(valid, ~flit.last, unfinished), Mux(valid, flit.source, owner)
        m.d.comb += [
            Assert(inner["grant.eligible"] == Mux(unfinished, Mux(owner, 2, 1), 3)),
            Assert(~unfinished | (inner["grant.owner"] == Mux(owner, 2, 1))),
        ]
        return m


def test_packet_arbiter() -> None:
    prove(Merged(PacketArbiter(FLIT, 2)), 8)


@planted(
    {
        "dropped": ("port.ready.eq(grant.grant[k] & output.ready)", "port.ready.eq(output.ready)"),
        "interleaved": ("eligible.eq(self.grant | self.last.replicate(n))", "eligible.eq(~0)"),
        "invented": ("output.valid.eq(grant.grant.any())", "output.valid.eq(grant.requests.any())"),
        "wrong source": ("Mux(grant.grant[k], Value", "Mux(grant.requests[k], Value"),
    }
)
def test_packet_arbiter_finds(line: str, bug: str) -> None:
    with pytest.raises(Counterexample):
        prove(Merged(mutated(PacketArbiter, line, bug)(FLIT, 2)), 8)
