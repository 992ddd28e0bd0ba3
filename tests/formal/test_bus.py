"""The host's way to the registers: the AXI4-Lite target and the register bank."""

from collections.abc import Callable
from typing import Any

import pytest
from amaranth.hdl import Assert, Assume, Cat, Module, Mux, Signal, Value

from sley.abi.command import READ_STROBES, SHARED
from sley.abi.config import ChipConfig, preset
from sley.abi.registers import Access, PlacedRegister, RegisterBlock, RegisterMap
from sley.hw.bus.axi_lite import AxiLiteTarget, AxiResponse
from sley.hw.bus.register_bank import RegisterBank, is_array
from sley.hw.command.bank import command_bank
from sley.hw.testing.axi_rules import AxiRules
from sley.hw.testing.mutation import mutated, planted
from sley.hw.testing.proof import Counterexample, Property, prove


class Served(Property):
    """The rules of AXI4-Lite. A write with all strobes reaches the registers once, in the cycle after the later of its
    two handshakes or after the answer before it, with its address and data; another one does not. It is answered in the
    next cycle: SLVERR if it did not reach them or they say so. A read reaches them in the cycle after its handshake or
    after the answer before it, and is answered in the next cycle with what they say.

    Assumed: the manager keeps the rules; ``write_error``, ``read_data`` and ``read_error`` stay until the next command.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        dut = self.dut
        inner = self.inner(m, dut)
        self.free_inputs(m, dut)
        bus, registers = dut.bus, dut.registers
        axi = AxiRules(m, self, bus, outstanding=2)
        m.d.comb += axi.rules(manager=False)
        self.answers_stay(m, registers.write, registers.write_error)
        self.answers_stay(m, registers.read, Cat(registers.read_data, registers.read_error))

        there = {channel: Signal(name=f"{channel}_there") for channel in ("aw", "w", "ar")}
        address, word, strobe, where = Signal(16), Signal(32), Signal(4), Signal(16)
        for channel, kept in (
            ("aw", [(address, bus.awaddr)]),
            ("w", [(word, bus.wdata), (strobe, bus.wstrb)]),
            ("ar", [(where, bus.araddr)]),
        ):
            with m.If(getattr(bus, f"{channel}valid") & getattr(bus, f"{channel}ready")):
                m.d.sync += [there[channel].eq(1), *(register.eq(value) for register, value in kept)]
            # Nothing is taken while it could not be kept, and everything is taken that can.
            m.d.comb += Assert(getattr(bus, f"{channel}ready") == ~there[channel])

        writes, reads = Signal(), Signal()
        m.d.comb += [
            writes.eq(there["aw"] & there["w"] & ~bus.bvalid),
            reads.eq(there["ar"] & ~bus.rvalid),
            Assert(registers.write == (writes & strobe.all())),
            Assert(~registers.write | ((registers.write_address == address) & (registers.write_data == word))),
            Assert(registers.read == reads),
            Assert(~reads | (registers.read_address == where)),
        ]
        with m.If(writes):
            m.d.sync += [there["aw"].eq(0), there["w"].eq(0)]
        with m.If(reads):
            m.d.sync += there["ar"].eq(0)

        written, read, partial = Signal(), Signal(), Signal()
        with m.If(writes):
            m.d.sync += [written.eq(1), partial.eq(~strobe.all())]
        with m.Elif(bus.bready):
            m.d.sync += written.eq(0)
        with m.If(reads):
            m.d.sync += read.eq(1)
        with m.Elif(bus.rready):
            m.d.sync += read.eq(0)
        m.d.comb += [
            Assert(bus.bvalid == written),
            Assert(bus.rvalid == read),
            Assert(~written | (bus.bresp == self.response(partial | registers.write_error))),
            Assert(~read | (bus.rresp == self.response(registers.read_error))),
            Assert(~read | (bus.rdata == registers.read_data)),
        ]

        # Lemmas: what waits, and what the counters of the rules have to do with it.
        m.d.comb += [
            *axi.lemmas(),
            Assert(axi.all_addresses == there["aw"] + written),
            Assert(axi.all_data == there["w"] + written),
            Assert(axi.all_reads == there["ar"] + read),
            Assert(~there["aw"] | (inner["address"] == address)),
            Assert(~there["w"] | ((inner["word"] == word) & (inner["partial"] == ~strobe.all()))),
            Assert(~there["ar"] | (registers.read_address == where)),
            Assert(~written | (inner["refused"] == partial)),
        ]
        return m

    def response(self, error: Any) -> Any:
        return Mux(error, AxiResponse.SLVERR, AxiResponse.OKAY)

    def answers_stay(self, m: Module, command: Any, answer: Any) -> None:
        past, known, before = Signal(), Signal(), Signal.like(answer)
        m.d.sync += [past.eq(command), before.eq(answer), known.eq(1)]
        m.d.comb += Assume(past | ~known | (answer == before))


def test_axi_lite_target() -> None:
    prove(Served(AxiLiteTarget(16)), 2)


@planted(
    {
        "no data": ("execute.eq(address_full & data_full & ~bus.bvalid)", "execute.eq(address_full & ~bus.bvalid)"),
        "overrun": ("bus.awready.eq(~address_full)", "bus.awready.eq(1)"),
        "answer lost": ("execute.eq(address_full & data_full & ~bus.bvalid)", "execute.eq(address_full & data_full)"),
        "strobes": ("registers.write.eq(execute & ~partial)", "registers.write.eq(execute)"),
        "a strobe is enough": ("partial.eq(~bus.wstrb.all())", "partial.eq(~bus.wstrb.any())"),
        "not told": ("_response(refused | registers.write_error)", "_response(registers.write_error)"),
        "withdrawn": ("with m.If(bus.bvalid & bus.bready):", "with m.If(bus.bvalid):"),
        "read over an answer": ("registers.read.eq(read_full & ~bus.rvalid)", "registers.read.eq(read_full)"),
        "answered twice": ("m.d.sync += [read_full.eq(0), bus.rvalid.eq(1)]", "m.d.sync += [bus.rvalid.eq(1)]"),
    }
)
def test_axi_lite_target_finds(line: str, bug: str) -> None:
    with pytest.raises(Counterexample):
        prove(Served(mutated(AxiLiteTarget, line, bug)(16)), 8)


class Kept(Property):
    """Every register of the map: what software reads and writes of it, by its access kind, and what the chip sees.

    A read answers one cycle later with the value of its address and without error, or with zero and an error if no
    register has that address; the answer stays until the next read. RW and WO take what is written to their address,
    in the bits of their fields, and nothing else changes them; bits outside are zero. A W1C bit is cleared by a one
    written to it and set by the chip, which wins. CONST and RO are not changed by writes. After reset each has its
    reset value, but for WO, of which ``written`` is low.

    Assumed of shared registers, with ``looks`` "index": the chip looks at one copy all the time, any one; with
    "read_index": software does.
    """

    def __init__(self, dut: Any, looks: str = "index") -> None:
        super().__init__(dut)
        self.looks = looks

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = self.dut
        self.free_inputs(m, dut)
        for block in dut.map.blocks:
            common = self.common(block)
            if common and self.looks in common.signature.members:
                index = getattr(common, self.looks)
                m.d.comb += Assume(index == self.constant(len(index), block.name.lower()))
        bus = dut.bus
        known, write, address, word = Signal(), Signal(), Signal(16), Signal(32)
        read, value, there = Signal(), Signal(32), Signal()
        error, refused = Signal(), Signal()
        m.d.sync += [known.eq(1), write.eq(bus.write), address.eq(bus.write_address), word.eq(bus.write_data)]
        m.d.sync += read.eq(read | bus.read)
        m.d.comb += there.eq(0)
        with m.Switch(bus.read_address):
            for placed in dut.map:
                with m.Case(placed.address):
                    m.d.comb += [there.eq(1), value.eq(self.reads_as(placed))]
                    if dut.is_shared(placed.block, placed.register) and placed.register.access is not Access.WO:
                        common = self.common(placed.block)
                        m.d.comb += Assert(~bus.read | (common.read_index == placed.index))
        expected = Signal(32)
        with m.If(bus.read):
            m.d.sync += [expected.eq(value), error.eq(~there)]
        m.d.comb += Assert(~read | ((bus.read_data == expected) & (bus.read_error == error)))

        written = Signal()
        with m.If(bus.write):
            m.d.sync += [written.eq(1), refused.eq(~Cat(bus.write_address == a for a in dut.map.by_address).any())]
        m.d.comb += Assert(~written | (bus.write_error == refused))
        for placed in dut.map:
            self.keeps(m, placed, known, write & (address == placed.address), word)
        return m

    def common(self, block: RegisterBlock) -> Any:
        """The shared registers of a block, if it has any."""
        return getattr(self.dut, f"{block.name.lower()}_shared", None)

    def port(self, placed: PlacedRegister, suffix: str = "") -> Value:
        shared = self.dut.is_shared(placed.block, placed.register)
        block = self.common(placed.block) if shared else getattr(self.dut, placed.block.name.lower())
        if is_array(placed.block) and not shared:
            block = block[placed.index]
        port = Value.cast(getattr(block, placed.register.name.lower() + suffix))
        return port[placed.index] if shared and suffix == "_written" else port

    def reads_as(self, placed: PlacedRegister) -> Any:
        match placed.register.access:
            case Access.CONST:
                return placed.layout.reset
            case Access.WO:
                return 0
            case Access.RO:
                return self.port(placed) & placed.layout.mask
            case Access.RW if self.dut.is_shared(placed.block, placed.register):
                return self.port(placed, "_read")
            case _:
                return self.port(placed)

    def keeps(self, m: Module, placed: PlacedRegister, known: Any, written: Any, word: Any) -> None:
        access, mask, name = placed.register.access, placed.layout.mask, placed.name
        full = f"{placed.block.name}.{placed.register.name}"
        if full in self.dut.read_strobes:
            strobe = self.dut.bus.read & (self.dut.bus.read_address == placed.address)
            m.d.comb += Assert(self.port(placed, "_read") == strobe)
        if access in (Access.CONST, Access.RO):
            return
        if self.dut.is_shared(placed.block, placed.register):
            self.keeps_shared(m, placed, written, word & mask)
            return
        now, past = self.port(placed), Signal(32, name=f"{name}_past", init=placed.layout.reset)
        m.d.sync += past.eq(now)
        match access:
            case Access.RW:
                m.d.comb += Assert(now == Mux(written, word & mask, past))
            case Access.W1C:
                raised = Signal(32, name=f"{name}_raised")
                m.d.sync += raised.eq(self.port(placed, "_set"))
                m.d.comb += Assert(now == ((past & ~Mux(written, word, 0)) | raised) & mask)
            case Access.WO:
                m.d.comb += [
                    Assert(self.port(placed, "_written") == written),
                    Assert(~known | (now == Mux(written, word & mask, past))),
                ]

    def keeps_shared(self, m: Module, placed: PlacedRegister, written: Any, word: Any) -> None:
        """RW: the chip and software see the same."""
        common, now = self.common(placed.block), self.port(placed)
        if placed.register.access is Access.WO:
            m.d.comb += [
                Assert(self.port(placed, "_written") == written),
                Assert(~written | (now == word)),
            ]
            return
        past = Signal(32, name=f"{placed.name}_past", init=placed.layout.reset)
        expected = Mux(written, word, past)
        with m.If(getattr(common, self.looks) == placed.index):
            m.d.sync += past.eq(expected)
            with m.If(common.index == placed.index):
                m.d.comb += Assert(now == expected)
            with m.If(common.read_index == placed.index):
                m.d.comb += Assert(self.port(placed, "_read") == expected)


CONFIG = preset("nano")
LARGE = preset("quad").replace(queues=8, contexts=16)


def prove_shared(bank: Callable[[], Any], depth: int) -> None:
    """A bank with shared registers, whoever of its two sides looks at one copy."""
    for looks in ("index", "read_index"):
        prove(Kept(bank(), looks), depth)


@pytest.mark.campaign
@pytest.mark.parametrize(
    "config", [pytest.param(CONFIG, id="nano"), pytest.param(LARGE, id="large", marks=pytest.mark.campaign)]
)
def test_register_bank(config: ChipConfig) -> None:
    prove(Kept(RegisterBank(RegisterMap(config), READ_STROBES)), 2)
    prove_shared(lambda: command_bank(config), 2)


@planted(
    {
        "another copy": ("_copy(block, self.bus.write_address)", "_copy(block, self.bus.read_address)"),
        "without command": (
            "written.eq(bus.write & (bus.write_address == placed.address))",
            "written.eq(bus.write_address == placed.address)",
        ),
        "neighbour": (
            "written.eq(bus.write & (bus.write_address == placed.address))",
            "written.eq(bus.write & (bus.write_address[:9] == placed.address & 0x1FF))",
        ),
        "reserved bits": ("m.d.sync += stored.eq(bus.write_data & mask)", "m.d.sync += stored.eq(bus.write_data)"),
        "clearing wins": ("stored & ~cleared) | set_bits) & mask", "stored | set_bits) & ~cleared) & mask"),
        "any write clears": (
            "cleared = Value.cast(bus.write_data) & written",
            "cleared = Value.cast(bus.write_data) & bus.write",
        ),
        "constant": ("return placed.layout.reset\n            case Access.WO", "return 0\n            case Access.WO"),
        "reserved read": (
            "return Value.cast(self._port(placed)) & placed.layout.mask",
            "return Value.cast(self._port(placed))",
        ),
        "old data": ("m.d.sync += word.eq(0)\n            with m.If", "pass\n            with m.If"),
        "not reset": ("reset_less=access is Access.WO", "reset_less=True"),
        "unknown read": (
            "m.Switch(bus.read_address):\n            with m.Case(*self.map.by_address):",
            "m.Switch(bus.read_address):\n            with m.Case(*list(self.map.by_address)[1:]):",
        ),
        "unknown write": (
            "m.Switch(bus.write_address):\n            with m.Case(*self.map.by_address):",
            "m.Switch(bus.write_address):\n            with m.Case(*list(self.map.by_address)[1:]):",
        ),
        "every write": ('self._port(placed, "_written").eq(written)', 'self._port(placed, "_written").eq(bus.write)'),
        "strobe": ('_read").eq(bus.read & ', '_read").eq('),
        "old shared data": ("m.d.sync += word.eq(0)\n        return", "pass\n        return"),
        "forgotten": ("known.eq(known | written)", "known.eq(written)"),
        "what the chip reads": ("(port.read_index, f", "(port.index, f"),
        "another bell": ('f"{name}_written").eq(written)', 'f"{name}_written").eq(written << 1)'),
        "first copy": ("read_index.eq(_copy(block, bus.read_address))", "read_index.eq(0)"),
    }
)
def test_register_bank_finds(line: str, bug: str) -> None:
    bank = mutated(RegisterBank, line, bug)
    with pytest.raises(Counterexample):
        prove_shared(lambda: bank(RegisterMap(CONFIG), READ_STROBES, SHARED), 4)
