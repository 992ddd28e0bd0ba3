"""Which command an SDRAM is given next."""

from typing import Any

from amaranth import Array, Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from sley.fpga.memory.sdram.banks import Banks
from sley.fpga.memory.sdram.hold import Hold
from sley.fpga.memory.sdram.lookup import Lookup
from sley.fpga.memory.sdram.part import BANK_BITS, SdramPart
from sley.fpga.memory.sdram.pins import Command, sdram_signature
from sley.fpga.memory.sdram.timing import SdramTiming
from sley.fpga.memory.sdram.upkeep import Upkeep
from sley.fpga.memory.sdram.walk import place_signature

TURN_WORDS = 64
"""Words after which a turn ends if the other side has something to move."""
READ, WRITE = 0, 1


def requester_signature(part: SdramPart) -> wiring.Signature:
    """A side that wants to read or to write.

    ``head``: where; ``column``; ``able``: the next column burst may be moved, and stays so until it is; ``issue``: its
    command is given in this cycle. ``ahead``: what will be the head after this burst.
    """
    place = place_signature(part)
    return wiring.Signature(
        {
            "head": Out(place),
            "ahead": Out(place),
            "column": Out(part.column_bits),
            "able": Out(1),
            "issue": In(1),
        }
    )


class Scheduler(wiring.Component):
    """Gives the commands of an SDRAM: those of upkeep, and column and row commands for two requesters.

    Parameters: ``part``, ``timing``.
    Members: ``requesters``: reads and writes; ``command``, ``bank``, ``address``: for the part, from registers, 1 cycle
    after ``issue``; ``asleep``: power-up is not over.

    In each cycle the first that is possible of: upkeep; the column command of the head whose turn it is; precharge or
    activation of its bank; the same for the burst after it, else for the head of the other side, in another bank.
    A head behind the end is issued at the pace of the others, without a command.
    """

    requesters: list[Any]
    command: Signal
    bank: Signal
    address: Signal
    asleep: Signal

    def __init__(self, part: SdramPart, timing: SdramTiming) -> None:
        self._part, self._timing = part, timing
        pins = sdram_signature(part.row_bits).members
        super().__init__(
            {
                "requesters": In(requester_signature(part)).array(2),
                **{name: pins[name] for name in ("command", "bank", "address")},
                "asleep": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        part, timing = self._part, self._timing
        m.submodules.banks = banks = Banks(part, timing, 2 * len(self.requesters))
        m.submodules.upkeep = upkeep = Upkeep(timing)
        m.submodules.between_banks = between_banks = Hold(timing.bank_to_bank)
        m.submodules.between_reads = between_reads = Hold(timing.burst, timing.burst)
        m.submodules.between_writes = between_writes = Hold(timing.burst, timing.read_to_write)
        lookups: dict[str, list[Lookup]] = {"head": [], "ahead": []}
        for number, requester in enumerate(self.requesters):
            for name, found in lookups.items():
                m.submodules[f"{name}_{number}"] = lookup = Lookup(part, banks)
                found.append(lookup)
                connect(m, flipped(getattr(requester, name)), lookup.place)

        turn = self._turns(m)
        heads = [requester.head for requester in self.requesters]
        bank = Signal(BANK_BITS)
        issue = Signal()
        reads = Signal()
        writes = Signal()
        m.d.comb += [bank.eq(Mux(turn, heads[WRITE].bank, heads[READ].bank)), issue.eq(reads | writes)]
        for number, (requester, free, strobe) in enumerate(
            zip(self.requesters, (between_reads.free, between_writes.free), (reads, writes), strict=True)
        ):
            head, lookup = requester.head, lookups["head"][number]
            m.d.comb += [
                strobe.eq(upkeep.granted & (turn == number) & requester.able & free & (head.refused | lookup.hit)),
                requester.issue.eq(strobe),
            ]
        refused = Mux(turn, heads[WRITE].refused, heads[READ].refused)

        # Row commands: of the head, of what follows it, of the other side's head. All is known beside ``issue``, which
        # forbids them.
        wanting = []
        for found, mine in ((lookups["head"], True), (lookups["ahead"], True), (lookups["head"], False)):
            options = []
            for lookup in found:
                place = lookup.place
                activate = lookup.closed & between_banks.free
                away = place.bank != bank
                options.append(Cat(activate, lookup.other, away, place.valid, place.bank, place.row))
            chosen = Signal(len(options[0]))
            m.d.comb += chosen.eq(Mux(turn, *(reversed(options) if mine else options)))
            wanting.append(chosen)
        own, following, other = wanting
        wish = Signal(2)  # to activate, to precharge
        with m.If(own[:2].any()):
            m.d.comb += wish.eq(own)
        with m.Elif(following[3]):
            m.d.comb += wish.eq(following[:2] & following[2].replicate(2))
        with m.Else():
            m.d.comb += wish.eq(other[:2] & other[2].replicate(2))
        row_place = Mux(own[:2].any(), own, Mux(following[3], following, other))[4:]
        activates = Signal()
        precharges = Signal()
        m.d.comb += Cat(activates, precharges).eq(wish & (upkeep.granted & ~issue).replicate(2))
        held = ((reads, timing.read_to_precharge), (writes, timing.write_to_precharge))
        holds = Cat(strobe for strobe, cycles in held if cycles > 1).any()  # a row open, for longer than this cycle
        touches = Signal()
        m.d.comb += touches.eq(upkeep.granted & wish.any())
        for index, lookup in enumerate((*lookups["head"], *lookups["ahead"])):
            at = lookup.place.bank
            aimed = Signal.like(touches)
            m.d.comb += [
                aimed.eq(touches & (row_place[:BANK_BITS] == at)),
                lookup.taken.eq(aimed & ~issue),
                lookup.used.eq(holds & (bank == at)),
                banks.looked[index].eq(at),
                lookup.found.eq(banks.found[index]),
            ]

        column = Mux(turn, self.requesters[WRITE].column, self.requesters[READ].column)
        command = Signal(Command)
        with m.If(~upkeep.granted):
            m.d.comb += command.eq(upkeep.command)
        with m.Elif(issue & ~refused):
            m.d.comb += command.eq(Mux(turn, Command.WRITE, Command.READ))
        with m.Elif(activates):
            m.d.comb += command.eq(Command.ACTIVATE)
        with m.Elif(precharges):
            m.d.comb += command.eq(Command.PRECHARGE)
        m.d.comb += [
            between_banks.events.eq(activates),
            between_reads.events.eq(Cat(reads, writes)),
            between_writes.events.eq(Cat(writes, reads)),
            banks.activate.eq(activates),
            banks.precharge.eq(precharges),
            banks.read.eq(reads),
            banks.write.eq(writes),
            banks.column_bank.eq(bank),
            Cat(banks.bank, banks.row).eq(row_place),
            banks.close.eq(upkeep.close),
            upkeep.may_close.eq(banks.may_close),
            self.asleep.eq(upkeep.asleep),
        ]
        m.d.sync += [
            self.command.eq(command),
            self.bank.eq(Mux(issue, bank, Mux(upkeep.granted, banks.bank, 0))),
            self.address.eq(Mux(upkeep.granted, Mux(issue, column, Mux(wish[1], 0, banks.row)), upkeep.address)),
        ]
        return m

    def _turns(self, m: Module) -> Signal:
        """Returns whose turn it is."""
        bursts = TURN_WORDS // self._timing.burst
        turn = Signal()
        left = Signal(range(bursts), init=bursts - 1)
        able = Array(requester.able for requester in self.requesters)
        moved = Cat(requester.issue for requester in self.requesters).any()
        with m.If(able[~turn] & (~able[turn] | (left == 0))):
            m.d.sync += [turn.eq(~turn), left.eq(bursts - 1)]
        with m.Elif(moved & (left != 0)):
            m.d.sync += left.eq(left - 1)
        return turn
