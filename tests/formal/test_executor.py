"""The host bridge as a manager of two buses: the rules of AXI, also after a bus was given up."""

from typing import Any

import pytest
from amaranth.hdl import Assert, Assume, Cat, Module, Signal

from sley.abi.config import preset
from sley.fpga.bridge.executor import CommandExecutor
from sley.fpga.bridge.frames import Code, Identity
from sley.hw.testing.axi_rules import AxiRules
from sley.hw.testing.mutation import mutated, planted
from sley.hw.testing.proof import Counterexample, Property, prove

CONFIG = preset("nano")
IDENTITY = Identity(b"FPGA", 1, CONFIG.bus_bytes, 240, 511, 8192, 1000)
PATIENCE = 2
"""Cycles after which a bus is given up, in these proofs."""


class Asked(Property):
    """The rules of AXI4-Lite and of AXI4, at any time, whatever frames come. On both buses together one access is under
    way at most, and none is begun when one was given up. The answer of an access that was not given up is taken in
    the cycle after it comes, while the executor waits for it, and ends the wait in that cycle.

    Assumed: what is on the buses keeps the rules and has ID 0.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        dut = self.dut
        inner = self.inner(m, dut)
        self.free_inputs(m, dut)
        timer = inner["timer"]
        given_up = timer[-1]
        has_asked = inner["waits"]
        waits = inner["fsm_state"] == state(inner["fsm_state"], "BUS")
        writing = [code.value for code in (Code.WRITE_MEMORY, Code.WRITE_REGISTER, Code.CLEAR_MEMORY)]
        accesses: Any = 0
        answers, valids = [], []
        for name in ("registers", "memory"):
            bus = getattr(dut, name)
            axi = AxiRules(m, self, bus, name=name, outstanding=1)
            m.d.comb += axi.rules(manager=True)
            if name == "memory":
                # The rules assume it of the chosen read; it holds of each.
                m.d.comb += Assume(~bus.rvalid | bus.rlast)
                m.d.comb += Assume((axi.write_id == 0) & (axi.read_id == 0) & (bus.bid == 0) & (bus.rid == 0))
            writes, reads = bus.awvalid + axi.all_addresses, bus.arvalid + axi.all_reads
            accesses = accesses + writes + reads
            answers += [bus.bvalid & bus.bready, bus.rvalid & bus.rready]
            valids += [bus.bvalid, bus.rvalid]
            m.d.comb += [
                *axi.lemmas(),
                Assert(writes == bus.wvalid + axi.all_data),
                Assert(~bus.wvalid | given_up | inner["code"].matches(*writing)),
                Assert(~axi.inside_data & (axi.write_beats == axi.write_complete)),
                Assert(~axi.write_addressed | (axi.write_length == 0)),
            ]
        under_way, answered, comes = Signal(6), Signal(), Signal()
        m.d.comb += [under_way.eq(accesses), answered.eq(Cat(answers).any())]
        m.d.comb += comes.eq(Cat(valids).any() & ~answered)
        was_given_up, before, ended, came = Signal(), Signal.like(under_way), Signal(), Signal()
        m.d.sync += [was_given_up.eq(given_up), before.eq(under_way), ended.eq(answered & ~given_up), came.eq(comes)]
        m.d.comb += [
            Assert(under_way <= 1),
            Assert(~was_given_up | (under_way <= before)),
            Assert(~answered | given_up | waits),
            Assert(~ended | (under_way == 0) & ~has_asked),
            Assert(answered == came),
            # Lemmas.
            Assert(inner["done"] == came),
            Assert((timer == 0) | given_up | waits),
            Assert(given_up | (has_asked == (timer != 0))),
            Assert(timer <= PATIENCE),
            Assert((timer != 0) | (under_way == 0)),
        ]
        return m


def state(register: Any, name: str) -> int:
    """The number of a state of a machine."""
    return next(number for number in range(1 << len(register)) if register.decoder(number).startswith(f"{name}/"))


def executor(line: str = "BUS_CYCLES = 1 << 16", bug: str = f"BUS_CYCLES = {PATIENCE}") -> Asked:
    component = mutated(CommandExecutor, line, bug)
    component.elaborate.__globals__.update(BUS_CYCLES=PATIENCE)
    return Asked(component(CONFIG, IDENTITY))


def test_executor() -> None:
    prove(executor(), 1)


@planted(
    {
        "withdrawn": ("                with m.Elif(ready):\n", "                with m.Elif(valid):\n"),
        "address changes": ("registers.araddr.eq(asked)", "registers.araddr.eq(address)"),
        "data change": ("with m.If((load | shift) & ~given_up):", "with m.If(load | shift):"),
        "asks a bus that was given up": ("ask.eq(~waits & ~given_up)", "ask.eq(~waits)"),
        "asks again": ("ask.eq(~waits & ~given_up)", "ask.eq(~given_up)"),
        "does not wait": ("answered.eq(done & waits)", "answered.eq(waits)"),
        "reads what it writes": ('("ar", code == read)', '("ar", 1)'),
        "takes an answer twice": ("done.eq(Cat(valids).any() & ~done)", "done.eq(Cat(valids).any())"),
        "no last beat": ("memory.wlast.eq(1)", "memory.wlast.eq(0)"),
    }
)
def test_executor_finds(line: str, bug: str) -> None:
    with pytest.raises(Counterexample):
        prove(executor(line, bug), 36, induction=False)
