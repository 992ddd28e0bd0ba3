"""On-chip memory: the rules of AXI; every beat is answered for its own address, with what was written there last."""

from typing import Any

import pytest
from amaranth.hdl import Assert, Assume, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In

from sley.abi.config import preset
from sley.fpga.memory.block_ram import BlockMemory
from sley.fpga.memory.storage import storage_signature
from sley.hw.bus.axi_lite import AxiResponse
from sley.hw.memory.axi import BURST_INCR
from sley.hw.testing.axi_rules import AxiRules
from sley.hw.testing.mutation import mutated, planted
from sley.hw.testing.proof import Counterexample, Property, prove

CONFIG = preset("nano")
LANES = CONFIG.bus_bytes
LANE_BITS = LANES.bit_length() - 1
ROWS = 2048
IN_FLIGHT = 3  # reads of one beat: asked for, fetched, shown


class OneRow:
    """Storage that remembers one ``row`` and reads every other as ``other``. A proof with any of both holds for each
    row of whole storage. If ``single_port`` it must not be told to read and to write in one cycle."""

    def __init__(self, row: Signal, other: Signal, single_port: bool) -> None:
        self.row, self.other, self.single_port = row, other, single_port

    def __call__(self, depth: int, width: int) -> Any:
        return _OneRow(self, depth, width)


class _OneRow(wiring.Component):
    port: Any

    def __init__(self, storage: OneRow, depth: int, width: int) -> None:
        self._storage, self._width = storage, width
        super().__init__({"port": In(storage_signature(depth, width))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        port, row = self.port, self._storage.row
        stored, taken, output = (
            Signal(self._width, name=name, reset_less=True) for name in ("stored", "taken", "output")
        )
        m.d.comb += port.data.eq(output)
        with m.If(port.advance):
            m.d.sync += output.eq(taken)
        with m.If(port.read):
            m.d.sync += taken.eq(Mux(port.read_row == row, stored, self._storage.other))
        with m.If(port.write_row == row):
            m.d.sync += stored.eq(written(stored, port.write_data, port.strobe))
        if self._storage.single_port:
            m.d.comb += Assert(~(port.read & port.strobe.any()))
        return m


def written(old: Any, new: Any, strobe: Any) -> Any:
    """A word after a write."""
    mask = Cat(bit.replicate(8) for bit in Value.cast(strobe))
    return (old & ~mask) | (new & mask)


class Stored(Property):
    """The rules of AXI4. A write is answered in the cycle after its last beat, a beat of a read comes within three
    cycles in which the one before is taken and, with a single port, no write goes first. Each answer has the ID of its
    address and is DECERR if that lies behind the end, else OKAY. A beat of a read is the row of its address as it was
    when the address was taken, with what was written before that cycle's end, unless it was written again; nothing
    behind the end is written.

    Assumed: bursts are INCR, of full width and within 4 KiB; the manager keeps the rules of AXI4.
    """

    def __init__(self, component: Any = BlockMemory, *, single_port: bool = False) -> None:
        super().__init__(None)
        self.row = self.constant(range(ROWS), "row")
        self.single_port = single_port
        storage = OneRow(self.row, self.free(8 * LANES, "other"), single_port)
        self.dut = component(CONFIG, ROWS * LANES, storage)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus = self.dut.bus
        self.registers = self.inner(m, self.dut)
        self.free_inputs(m, self.dut)
        self.passes = {name: Signal(name=f"{name}_passes") for name in ("aw", "w", "b", "ar", "r")}
        for name, passes in self.passes.items():
            m.d.comb += passes.eq(getattr(bus, f"{name}valid") & getattr(bus, f"{name}ready"))
        self.axi = AxiRules(m, self, bus, outstanding=IN_FLIGHT, choose_read=self.free(1, "choose"))
        m.d.comb += self.axi.rules(manager=False)
        for channel in ("aw", "ar"):
            size, burst = getattr(bus, f"{channel}size"), getattr(bus, f"{channel}burst")
            m.d.comb += Assume(~getattr(bus, f"{channel}valid") | ((size == LANE_BITS) & (burst == BURST_INCR)))
        self.writes(m)
        self.reads(m)
        return m

    def split(self, address: Any) -> tuple[Any, Any]:
        """The row of an address, and whether it lies behind the end."""
        return address[LANE_BITS:][: self.row.shape().width], address >= ROWS * LANES

    def writes(self, m: Module) -> None:
        bus, passes = self.dut.bus, self.passes
        row, behind = self.split(bus.awaddr)
        open_, place, outside, number = Signal(), Signal.like(self.row), Signal(), Signal()
        answer, refused, of = Signal(), Signal(), Signal()
        with m.If(passes["b"]):
            m.d.sync += answer.eq(0)
        with m.If(passes["aw"]):
            m.d.sync += [open_.eq(1), place.eq(row), outside.eq(behind), number.eq(bus.awid)]
        with m.Elif(passes["w"]):
            m.d.sync += [open_.eq(~bus.wlast), place.eq(place + 1)]
            with m.If(bus.wlast):
                m.d.sync += [answer.eq(1), refused.eq(outside), of.eq(number)]
        self.hit = Signal()
        self.now, self.then = Signal(8 * LANES), Signal(8 * LANES, reset_less=True)  # the row after and in this cycle
        m.d.comb += [
            self.hit.eq(passes["w"] & ~outside & (place == self.row)),
            self.now.eq(Mux(self.hit, written(self.then, bus.wdata, bus.wstrb), self.then)),
            Assert(bus.bvalid == answer),
            Assert(~answer | ((bus.bid == of) & (bus.bresp == self.response(refused)))),
            Assert(~bus.awready | ~open_),
            Assert(~bus.wready | open_),
        ]
        m.d.sync += self.then.eq(self.now)

        # Lemmas: what the block holds, and what the counters of the rules have to do with it.
        inner, axi = self.registers, self.axi
        mine_answered, mine_open = answer & (of == axi.write_id), open_ & (number == axi.write_id)
        picked, addressed, complete = axi.write_picked, axi.write_addressed, axi.write_complete
        followed, waits = axi.write_followed, axi.write_followed & ~axi.write_answered
        facts = [
            inner["storage.stored"] == self.then,
            inner["writing"] == open_,
            ~open_ | (inner["write_row"] == place),
            ~open_ | (inner["write_id"] == number),
            ~open_ | (inner["write_refused"] == outside),
            axi.addresses_ahead == open_,
            ~axi.inside_data | open_,
            axi.all_addresses == answer + open_,
            axi.all_data == answer,
            axi.writes == mine_answered + mine_open,
            picked | ~addressed,
            addressed | ~(complete | followed | (axi.write_beats != 0)),
            ~picked | (axi.addresses_before == 0),
            ~picked | (axi.data_before == (open_ & ~addressed)),
            ~addressed | complete | (open_ & (axi.inside_data == (axi.write_beats != 0))),
            ~addressed | complete | (axi.write_beats <= axi.write_length),
            ~complete | (axi.write_beats == axi.write_length + 1),
            ~axi.write_answered | (followed & complete),
            ~waits | complete | (mine_open & (axi.answers_before == mine_answered)),
            ~waits | ~complete | (mine_answered & (axi.answers_before == 0)),
        ]
        m.d.comb += [Assert(fact) for fact in facts]

    def response(self, refused: Any) -> Any:
        return Mux(refused, AxiResponse.DECERR, AxiResponse.OKAY)

    def reads(self, m: Module) -> None:
        bus, axi, passes = self.dut.bus, self.axi, self.passes
        row, behind = self.split(bus.araddr)
        start, outside = Signal.like(self.row), Signal(name="read_outside")
        word, changed = Signal(8 * LANES), Signal()
        picked = Signal()  # ``axi`` picks this read
        m.d.comb += picked.eq(passes["ar"] & (bus.arid == axi.read_id) & self.inputs["choose"] & ~axi.read_picked)
        with m.If(picked):
            m.d.sync += [start.eq(row), outside.eq(behind), word.eq(self.now), changed.eq(0)]
        with m.Elif(self.hit):
            m.d.sync += changed.eq(1)
        mine = bus.rvalid & (bus.rid == axi.read_id) & axi.read_picked & ~axi.read_done & (axi.reads_before == 0)
        known = ~outside & ~changed & ((start + axi.read_beats)[: len(start)] == self.row)
        patience = Signal(2)
        with m.If(bus.rvalid | (axi.all_reads == 0)):
            m.d.sync += patience.eq(0)
        with m.Elif(~(self.single_port & passes["w"])):
            m.d.sync += patience.eq(patience + 1)
        m.d.comb += [
            Assert(~mine | (bus.rresp == self.response(outside))),
            Assert(~(mine & known) | (bus.rdata == word)),
            Assert((patience < 2) | bus.rvalid),
        ]

        # Lemmas: beats on their way, the oldest first, and the read whose beats are not all on their way.
        inner = self.registers
        beat = data.StructLayout({"id": 1, "refused": 1, "last": 1})
        shown, fetched = (data.View(beat, inner[name]) for name in ("shown", "fetched"))
        asked = data.View(beat, Cat(inner["read_id"], inner["read_refused"], 1))
        stages = [(bus.rvalid, shown), (inner["fetched_valid"], fetched), (inner["reading"], asked)]
        kept = [inner["storage.output"], inner["storage.taken"]]
        ends: list[Any] = [Const(0)]  # of reads
        same_ends: list[Any] = [Const(0)]  # of those with the ID that is looked at
        index: Any = axi.read_beats  # of the beat in the chosen read
        for k, (there, item) in enumerate(stages):
            same = there & (item.id == axi.read_id)
            its, place = Signal(name=f"its_{k}"), Signal.like(self.row, name=f"place_{k}")
            m.d.comb += [
                its.eq(same & axi.read_picked & ~axi.read_done & (sum(same_ends) == axi.reads_before)),
                place.eq(start + index),
                Assert(~its | (item.refused == outside)),
            ]
            if item is asked:
                rest = (inner["left"] + index == axi.read_length) & (inner["read_row"] == place)
                m.d.comb += Assert(~its | rest)
            else:
                known = ~outside & ~changed & (place == self.row)
                newer = (
                    Mux(stages[1][0], Value.cast(fetched), Value.cast(asked)) if item is shown else Value.cast(asked)
                )
                more = Cat(there for there, _ in stages[k + 1 :]).any()
                goes_on = more & (newer[:-1] == Value.cast(item)[:-1])  # but for ``last``
                m.d.comb += [
                    Assert(~(its & known) | (kept[k] == word)),
                    Assert(~its | (item.last == (index == axi.read_length))),
                    Assert(~there | item.last | goes_on),
                ]
            ends.append(there & item.last)
            same_ends.append(same & item.last)
            index = index + its
        m.d.comb += [
            Assert(axi.all_reads == sum(ends)),
            Assert(axi.reads == sum(same_ends)),
            Assert(~axi.read_picked | axi.read_done | (axi.reads > axi.reads_before)),
            Assert(axi.read_picked | ~axi.read_done & (axi.read_beats == 0)),
            Assert(axi.read_done | (axi.read_beats <= axi.read_length) | ~axi.read_picked),
            Assert(axi.read_done | (axi.reads_before == 0) | (axi.read_beats == 0)),
            Assert(~axi.read_picked | changed | (self.then == word)),
            Assert((patience == 0) | bus.rvalid | inner["fetched_valid"]),
        ]


PORTS = [pytest.param(False, id="two ports"), pytest.param(True, id="one port")]


@pytest.mark.some(1)
@pytest.mark.parametrize("single_port", PORTS)
def test_block_memory(single_port: bool) -> None:
    prove(Stored(single_port=single_port), 2)


@pytest.mark.slow
@planted(
    {
        "refused by the other channel": ("read_refused.eq(behind(bus.araddr))", "read_refused.eq(behind(bus.awaddr))"),
        "refused by the next": ("fetched.refused.eq(read_refused)", "fetched.refused.eq(behind(bus.araddr))"),
        "the highest address": ("return address[address_bits:].any()", "return address[address_bits:-1].any()"),
        "far behind is inside": ("return address[address_bits:].any()", "return address[address_bits]"),
        "refusal not told": ("answer_refused.eq(write_refused)", "answer_refused.eq(0)"),
        "written behind the end": ("Mux(accepted & ~write_refused, bus.wstrb, 0)", "Mux(accepted, bus.wstrb, 0)"),
        "written early": (
            "Mux(accepted & ~write_refused, bus.wstrb, 0)",
            "Mux(bus.wvalid & ~write_refused, bus.wstrb, 0)",
        ),
        "answer lost": ("bus.wready.eq(writing & ~bus.bvalid)", "bus.wready.eq(writing)"),
        "ID of the next write": ("bus.bid.eq(write_id)", "bus.bid.eq(bus.awid)"),
        "withdrawn": ("moves.eq(~bus.rvalid | bus.rready)", "moves.eq(1)"),
        "slow": ("moves.eq(~bus.rvalid | bus.rready)", "moves.eq(~bus.rvalid)"),
        "length": ("fetched.last.eq(left == 0)", "fetched.last.eq(left == 1)"),
        "ID of the next read": ("fetched.id.eq(read_id)", "fetched.id.eq(bus.arid)"),
        "ID too early": ("bus.rid.eq(shown.id)", "bus.rid.eq(fetched.id)"),
        "one beat": ("reading.eq(left != 0)", "reading.eq(0)"),
        "one row read": ("read_row.eq(read_row + 1)", "read_row.eq(read_row)"),
        "one row written": ("m.d.sync += write_row.eq(write_row + 1)", "pass"),
        "data not kept": ("port.advance.eq(moves)", "port.advance.eq(1)"),
        "fetched data not kept": ("port.read.eq(issue)", "port.read.eq(reading)"),
    }
)
def test_block_memory_finds(line: str, bug: str) -> None:
    with pytest.raises(Counterexample):
        prove(Stored(mutated(BlockMemory, line, bug)), 10, induction=False)


def test_block_memory_finds_the_race_of_one_port() -> None:
    with pytest.raises(Counterexample):
        prove(
            Stored(
                mutated(BlockMemory, "issue.eq(reading & moves & ~accepted)", "issue.eq(reading & moves)"),
                single_port=True,
            ),
            8,
            induction=False,
        )
