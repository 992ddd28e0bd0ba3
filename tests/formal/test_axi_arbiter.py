"""Two AXI4 managers on one memory: the rules of AXI on both sides, nothing mixed up, whose turn it is."""

from typing import Any

import pytest
from amaranth.hdl import Assert, Assume, Cat, Module, Signal

from sley.abi.config import preset
from sley.fpga.memory.arbiter import MANAGERS, WRITES, AxiArbiter
from sley.hw.memory.axi import BURST_INCR
from sley.hw.testing.axi_rules import AxiRules
from sley.hw.testing.mutation import mutated, planted
from sley.hw.testing.proof import Counterexample, Property, prove

CONFIG = preset("nano")
IN_FLIGHT = 4
"""Bursts of each way and manager that are not answered, in these proofs."""


def passes(bus: Any, channel: str) -> Any:
    return getattr(bus, f"{channel}valid") & getattr(bus, f"{channel}ready")


class Turns(Property):
    """While a manager offers an address, at most one of the other is taken; and its own is taken within two cycles in
    which the target, and for writes the list of open bursts, have room.

    Assumed: an address that is offered stays.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        dut = self.dut
        inner = self.inner(m, dut)
        self.free_inputs(m, dut)
        for channel in ("ar", "aw"):
            target = dut.target
            free = Signal(name=f"{channel}_free")
            m.d.comb += free.eq(~getattr(target, f"{channel}valid") | getattr(target, f"{channel}ready"))
            if channel == "aw":
                count = Signal(range(WRITES + 1))
                taken = Cat(passes(manager, "aw") for manager in dut.managers).any()
                ends = passes(target, "w") & target.wlast
                m.d.sync += count.eq(count + taken - ends)
                m.d.comb += [
                    Assert(count <= WRITES),
                    Assert(count == inner["count"]),
                    Assert(inner["room"] == (count != WRITES)),
                    Assert(inner["open_"] == (count != 0)),
                    Assert(target.wvalid <= (count != 0)),
                ]
            for k, manager in enumerate(dut.managers):
                waits = Signal(name=f"{channel}_{k}_waits")
                others, patience = Signal(2, name=f"{channel}_{k}_others"), Signal(3, name=f"{channel}_{k}_patience")
                valid = getattr(manager, f"{channel}valid")
                m.d.sync += waits.eq(valid & ~getattr(manager, f"{channel}ready"))
                m.d.comb += Assume(~waits | valid)
                room = free if channel == "ar" else free & (count != WRITES)
                with m.If(valid & ~getattr(manager, f"{channel}ready")):
                    m.d.sync += [others.eq(others + passes(dut.managers[1 - k], channel)), patience.eq(patience + room)]
                with m.Else():
                    m.d.sync += [others.eq(0), patience.eq(0)]
                m.d.comb += [
                    Assert(others <= 1),
                    Assert(patience <= 2),
                    # Lemmas.
                    Assert((others == 0) | (inner[f"{channel}_turn"] == k)),
                    Assert(patience + inner[f"{channel}.spare_valid"] + (inner[f"{channel}_turn"] != k) <= 2),
                ]
        return m


class Shared(Property):
    """The rules of AXI4, of the target's side and of the side of one manager. Each address of it goes to the target
    once, in its turn, with its length and the manager's number as ID; so do its data, in the order in which the
    addresses of both were taken; each answer with that ID goes to it, and no other.

    Assumed: the managers and the target keep the rules; the managers use ID 0 and
    INCR bursts of full width, and no exclusive accesses.
    """

    def __init__(self, dut: Any, number: int) -> None:
        super().__init__(dut)
        self.number = number

    def elaborate(self, platform: object) -> Module:
        m = Module()
        dut, number = self.dut, self.number
        m.submodules.dut = dut
        self.free_inputs(m, dut)
        self.mine, self.target = dut.managers[number], dut.target
        self.read_turn, self.write_turn = Signal(), Signal()
        self.picks = {
            channel: passes(self.mine, channel) & self.free(1, f"choose_{channel}") for channel in ("ar", "aw")
        }
        own = AxiRules(
            *(m, self, self.mine),
            name="manager",
            outstanding=IN_FLIGHT,
            choose_read=self.picks["ar"],
            choose_write=self.picks["aw"],
        )
        other = AxiRules(m, self, dut.managers[1 - number], name="other", outstanding=IN_FLIGHT)
        self.rules = AxiRules(
            *(m, self, self.target),
            name="target",
            outstanding=2 * IN_FLIGHT,
            choose_read=self.read_turn,
            choose_write=self.write_turn,
        )
        m.d.comb += [
            *(Assert(rule) for rule in own.subordinate),
            *(Assert(rule) for rule in self.rules.manager),
            *(Assert(rule) for rule in self.rules.limits),
            *(Assume(rule) for rule in [*own.manager, *other.manager, *self.rules.subordinate]),
            *(Assume(limit) for limit in [*own.limits, *other.limits]),
            Assume((self.rules.read_id == number) & (self.rules.write_id == number)),
            Assume((own.read_id == 0) & (own.write_id == 0)),
        ]
        for manager in dut.managers:
            m.d.comb += Assume(Cat(manager.arid, manager.awid, manager.arlock, manager.awlock) == 0)
            for channel in ("ar", "aw"):
                size, burst = getattr(manager, f"{channel}size"), getattr(manager, f"{channel}burst")
                m.d.comb += Assume((1 << size == CONFIG.bus_bytes) & (burst == BURST_INCR))
        self.own = own
        self.reads(m)
        self.writes(m)
        return m

    def address(self, m: Module, channel: str, waiting: Any, passing: Any) -> tuple[Any, Any, Any]:
        """An address that the solver chooses. Whether it is under way, its turn has come, it passes at the target.
        ``waiting``: those that are not at the target yet and that it may not overtake; ``passing``: one gets there."""
        chosen, gone = Signal(name=f"{channel}_chosen"), Signal(name=f"{channel}_gone")
        before = Signal(5, name=f"{channel}_before")
        head = [getattr(self.mine, channel + field) for field in ("addr", "len")]
        kept = [Signal.like(value, name=f"{channel}_kept_{k}") for k, value in enumerate(head)]
        with m.If(self.picks[channel] & ~chosen):
            m.d.sync += [
                chosen.eq(1),
                before.eq(waiting - passing),
                *(x.eq(value) for x, value in zip(kept, head, strict=True)),
            ]
        with m.Elif(chosen & passing & ~gone):
            m.d.sync += [before.eq(before - (before != 0)), gone.eq(before == 0)]
        turn = chosen & ~gone & (before == 0)
        seen = [getattr(self.target, channel + field) for field in ("addr", "len")]
        m.d.comb += Assert(
            ~(turn & passing) | ((Cat(seen) == Cat(kept)) & (getattr(self.target, f"{channel}id") == self.number))
        )
        return chosen, turn, turn & passing

    def count(self, m: Module, name: str, up: Any, down: Any) -> Signal:
        count = Signal(5, name=name)
        m.d.sync += count.eq(count + up - down)
        return count

    def reads(self, m: Module) -> None:
        mine, target, number = self.mine, self.target, self.number
        passing = passes(target, "ar") & (target.arid == number)
        waiting = self.count(m, "reads_waiting", passes(mine, "ar"), passing)
        _, _, now = self.address(m, "ar", waiting, passing)
        beat = target.rvalid & (target.rid == number)
        same = (mine.rdata == target.rdata) & (mine.rresp == target.rresp) & (mine.rlast == target.rlast)
        m.d.comb += [
            self.read_turn.eq(now),
            Assert(~passing | (waiting != 0)),
            Assert(mine.rvalid == beat),
            Assert(~beat | ((target.rready == mine.rready) & same)),
        ]

    def writes(self, m: Module) -> None:
        dut, mine, target, number = self.dut, self.mine, self.target, self.number
        taken = [passes(manager, "aw") for manager in dut.managers]
        sent = [passes(manager, "w") for manager in dut.managers]
        addresses = self.count(m, "writes_waiting", Cat(taken).any(), passes(target, "aw"))
        ends = passes(target, "w") & target.wlast
        bursts = self.count(m, "bursts", Cat(taken).any(), ends)
        chosen, turn, _ = self.address(m, "aw", addresses, passes(target, "aw"))

        before, complete = Signal(5, name="data_before"), Signal(name="data_complete")
        with m.If(self.picks["aw"] & ~chosen):
            m.d.sync += before.eq(bursts - ends)
        with m.Elif(chosen & ends & ~complete):
            m.d.sync += [before.eq(before - (before != 0)), complete.eq(before == 0)]
        its = chosen & ~complete & (before == 0)
        same = (mine.wdata == target.wdata) & (mine.wstrb == target.wstrb) & (mine.wlast == target.wlast)
        answer = target.bvalid & (target.bid == number)
        unanswered = self.count(m, "unanswered", passes(mine, "w") & mine.wlast, answer & mine.bready)
        m.d.comb += [
            # The rules assume it of the chosen write; it holds of each.
            Assume(~answer | (unanswered != 0)),
            self.write_turn.eq(chosen & (turn | (before == self.rules.inside_data))),
            Assert(~Cat(taken).all() & ~Cat(sent).all()),
            Assert(passes(target, "w") == Cat(sent).any()),
            Assert(~passes(mine, "w") | same),
            Assert(~(its & passes(target, "w")) | passes(mine, "w")),
            Assert(~target.wvalid | (bursts != 0)),
            Assert(mine.bvalid == answer),
            Assert(~answer | (target.bready == mine.bready)),
            Assert(~answer | (mine.bresp == target.bresp)),
        ]


def test_turns() -> None:
    prove(Turns(AxiArbiter(CONFIG)), 1)


@planted(
    {
        "no turns": ("with m.If(other & (~asks | (buffer.i.ready & room))):", "with m.If(other & ~asks):"),
        "waits for the other": (
            "with m.If(other & (~asks | (buffer.i.ready & room))):",
            "with m.If(other & asks & buffer.i.ready & room):",
        ),
        "alone yet waits": (
            "with m.If(other & (~asks | (buffer.i.ready & room))):",
            "with m.If(asks & buffer.i.ready & room):",
        ),
        "one write": ('self._addresses(m, "aw", room)', 'self._addresses(m, "aw", count == 0)'),
        "list overrun": ('self._addresses(m, "aw", room)', 'self._addresses(m, "aw", 1)'),
    }
)
def test_turns_finds(line: str, bug: str) -> None:
    with pytest.raises(Counterexample):
        prove(Turns(mutated(AxiArbiter, line, bug)(CONFIG)), 12, induction=False)


@pytest.mark.some(1, "campaign")
@pytest.mark.parametrize("number", range(MANAGERS))
@pytest.mark.parametrize("depth", [7, pytest.param(11, marks=pytest.mark.campaign)])
def test_shared(depth: int, number: int) -> None:
    prove(Shared(AxiArbiter(CONFIG), number), depth, induction=False)


@planted(
    {
        "too wide": ("exact_log2(self._config.bus_bytes)", "exact_log2(self._config.bus_bytes) + 1"),
        "data of nobody": ("managers[0].wvalid) & open_", "managers[0].wvalid)"),
        "owner of the next": ("owner = owners[0]", "owner = owners[1]"),
        "place": ("owners.bit_select(place, 1).eq(turn)", "owners.bit_select(count, 1).eq(turn)"),
        "owner stays": ("m.d.sync += owners.eq(owners >> 1)", "pass"),
        "one beat": ("ends.eq(target.wvalid & target.wready & target.wlast)", "ends.eq(target.wvalid & target.wready)"),
        "data of both": (
            "manager.wready.eq(target.wready & open_ & (owner == number))",
            "manager.wready.eq(target.wready & open_)",
        ),
        "answer to both": (
            "manager.bvalid.eq(target.bvalid & (target.bid == number))",
            "manager.bvalid.eq(target.bvalid)",
        ),
        "data to both": (
            "manager.rvalid.eq(target.rvalid & (target.rid == number))",
            "manager.rvalid.eq(target.rvalid)",
        ),
        "ready of the other": ("target.rready.eq(Mux(target.rid,", "target.rready.eq(Mux(target.bid,"),
        "no number": ("buffer.i.payload.id.eq(turn)", "buffer.i.payload.id.eq(0)"),
        "too many": ("buffer.i.valid.eq(asks & room)", "buffer.i.valid.eq(asks)"),
        "both taken": ("eq(buffer.i.ready & room & (turn == number))", "eq(buffer.i.ready & room)"),
        "length lost": (
            'for field in ("addr", "len"):\n            choice',
            'for field in ("addr",):\n            choice',
        ),
        "withdrawn": ('buffer.o.ready.eq(getattr(target, f"{channel}ready"))', "buffer.o.ready.eq(1)"),
    }
)
def test_shared_finds(line: str, bug: str) -> None:
    with pytest.raises(Counterexample):
        prove(Shared(mutated(AxiArbiter, line, bug)(CONFIG), 1), 9, induction=False)
