"""Small blocks of control: reset of the chip, where a node meets its router, the cutting of ranges."""

import pytest
from amaranth.hdl import Assert, Assume, Module, Mux, Signal, Value

from sley.abi.config import preset
from sley.abi.network import Tag
from sley.hw.command.splitter import RunSplitter
from sley.hw.memory.node import NodePort
from sley.hw.reset import ResetControl
from sley.hw.testing.mutation import mutated, planted
from sley.hw.testing.proof import Counterexample, Property, prove


class Drained(Property):
    """Nothing is reset before the bus was seen quiet while it was drained; it stays drained until the reset is over. A
    request begins at once. Once the bus is quiet the reset comes in the next cycle and lasts one; with it all ends."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = self.dut
        self.free_inputs(m, dut)
        busy, quiet = Signal(), Signal()  # by the words of the data sheet
        with m.If(~busy):
            m.d.sync += busy.eq(dut.request)
        with m.Elif(quiet):
            m.d.sync += [busy.eq(0), quiet.eq(0)]
        with m.Elif(dut.drained):
            m.d.sync += quiet.eq(1)
        m.d.comb += [
            Assert(dut.resetting == busy),
            Assert(dut.drain == busy),
            Assert(dut.reset == quiet),
            Assert(~quiet | busy),
        ]
        return m


def test_reset_control() -> None:
    prove(Drained(ResetControl()), 2)


@planted(
    {
        "not drained": ("[state.eq(_State.DRAIN), self.drain.eq(1)]", "[state.eq(_State.DRAIN), self.drain.eq(0)]"),
        "at once": ("with m.Case(_State.DRAIN), m.If(self.drained):", "with m.Case(_State.DRAIN):"),
        "for ever": ("self.reset.eq(0), self.drain.eq(0)", "self.drain.eq(0)"),
        "drained for ever": ("self.reset.eq(0), self.drain.eq(0)", "self.reset.eq(0)"),
        "early": (
            "[state.eq(_State.RESET), self.reset.eq(1)]",
            "[state.eq(_State.RESET), self.reset.eq(1), self.drain.eq(0)]",
        ),
    }
)
def test_reset_control_finds(line: str, bug: str) -> None:
    with pytest.raises(Counterexample):
        prove(Drained(mutated(ResetControl, line, bug)()), 6)


TAGS = [Tag.FETCH, Tag.LOAD, Tag.STORE]


class HandedOut(Property):
    """An answer is offered to the part with its tag, unchanged, and to no other; it is taken when that part takes it,
    and at once if no part has its tag. (Requests pass a ``PacketArbiter``.)"""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = self.dut
        self.free_inputs(m, dut)
        answer = dut.response_o
        tag = answer.payload.payload.tag
        nobody = Signal(init=1)
        m.d.comb += nobody.eq(1)
        for part, own in zip(dut.response, TAGS, strict=True):
            m.d.comb += [
                Assert(part.valid == (answer.valid & (tag == own))),
                Assert(~part.valid | (Value.cast(part.payload) == Value.cast(answer.payload.payload))),
            ]
            with m.If(tag == own):
                m.d.comb += [nobody.eq(0), Assert(~answer.valid | (answer.ready == part.ready))]
        m.d.comb += Assert(~(answer.valid & nobody) | answer.ready)
        return m


def test_node_port() -> None:
    prove(HandedOut(NodePort(preset("nano"), TAGS)), 1)


@planted(
    {
        "several": ("self.response_o.valid & (answer.tag == tag)", "self.response_o.valid"),
        "waits for others": (
            "with m.If(self.response[k].valid & ~self.response[k].ready):",
            "with m.If(~self.response[k].ready):",
        ),
        "lost": ("self.response_o.ready.eq(~blocked)", "self.response_o.ready.eq(1)"),
    }
)
def test_node_port_finds(line: str, bug: str) -> None:
    with pytest.raises(Counterexample):
        prove(HandedOut(mutated(NodePort, line, bug)(preset("nano"), TAGS)), 2)


CHUNK = 16


class Cut(Property):
    """The runs of a range follow each other without gap or overlap and end where it ends; each has ``chunk`` bytes, but
    for the first, which has as many as it was told to, and the last, which has no more. There are none for a range of
    no bytes. What is offered stays until it is taken or another range starts.

    Assumed: the first run is not empty nor longer than ``chunk``.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        dut = self.dut
        inner = self.inner(m, dut)
        self.free_inputs(m, dut)
        first, size = dut.range.first, Signal(8)
        m.d.comb += Assume(~dut.start | ((first > 0) & (first <= CHUNK)))
        address, length, room = Signal(32), Signal(32), Signal(16)
        given, begun = Signal(32), Signal()  # bytes that runs had; a run was given
        left = length - given
        m.d.comb += size.eq(Mux(begun, CHUNK, room))
        with m.If(dut.o.valid & dut.o.ready):
            m.d.sync += [given.eq(given + dut.o.payload.bytes), begun.eq(1)]
        with m.If(dut.start):
            m.d.sync += [address.eq(dut.range.addr), length.eq(dut.range.bytes), room.eq(first)]
            m.d.sync += [given.eq(0), begun.eq(0)]
        run = dut.o.payload
        m.d.comb += [
            Assert(given <= length),
            Assert(dut.left == left[:32]),
            Assert(dut.busy == (given != length)),
            Assert(dut.o.valid == dut.busy),
            Assert(~dut.o.valid | (run.addr == (address + given)[:32])),
            Assert(~dut.o.valid | (run.bytes == Mux(left < size, left, size))),
            # Lemma.
            Assert(~dut.o.valid | ((inner["room"] == size) & (inner["addr"] == (address + given)[:32]))),
            Assert(~dut.o.valid | begun | ((room > 0) & (room <= CHUNK))),
            Assert(~dut.o.valid | (inner["whole"] == (left > size))),
        ]
        waits, offered = Signal(), Signal.like(Value.cast(run))
        m.d.sync += [waits.eq(dut.o.valid & ~dut.o.ready & ~dut.start), offered.eq(run)]
        m.d.comb += Assert(~waits | (dut.o.valid & (Value.cast(run) == offered)))
        return m


def test_run_splitter() -> None:
    prove(Cut(RunSplitter(CHUNK)), 2)


@planted(
    {
        "empty": ("self.o.valid.eq(self.busy)", "self.o.valid.eq(1)"),
        "long range": ("length[bits + 1 :].any() | ", ""),
        "first too long": ("(first - length[: bits + 1])[-1]", "(length[: bits + 1] > 1 << bits)"),
        "long rest": ("rest[bits + 1 :].any() | ", ""),
        "one that is none": ("(rest[bits] & rest[:bits].any())", "rest[bits]"),
        "gap": ("addr.eq(addr + size)", "addr.eq(addr + (1 << bits))"),
        "past the end": ("rest.eq(left - size)", "rest.eq(left - room)"),
        "all short": ("room.eq(1 << bits)", "room.eq(room)"),
    }
)
def test_run_splitter_finds(line: str, bug: str) -> None:
    with pytest.raises(Counterexample):
        prove(Cut(mutated(RunSplitter, line, bug)(CHUNK)), 6)
