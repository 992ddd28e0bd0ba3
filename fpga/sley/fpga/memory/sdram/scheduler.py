"""Which command of an SDRAM is issued next."""

from typing import Any

from amaranth import Array, Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from sley.fpga.memory.sdram.banks import Banks
from sley.fpga.memory.sdram.interlock import Interlock
from sley.fpga.memory.sdram.lookup import Lookup
from sley.fpga.memory.sdram.part import BANK_BITS, SdramPart
from sley.fpga.memory.sdram.pins import Command, sdram_signature
from sley.fpga.memory.sdram.refresh import Refresher
from sley.fpga.memory.sdram.timing import SdramTiming
from sley.fpga.memory.sdram.walk import place_signature

DIRECTION_WORDS = 64
"""Words after which the direction changes if the other one is ready."""
READ, WRITE = 0, 1


def requester_signature(part: SdramPart) -> wiring.Signature:
    """A requester of reads or of writes.

    ``head``: place of the next column burst, with its ``column``; ``ready``: it may be issued, and stays so until it
    is; ``issue``: its command is issued in this cycle. ``ahead``: what will be the head after this AXI burst.
    """
    place = place_signature(part)
    return wiring.Signature(
        {
            "head": Out(place),
            "ahead": Out(place),
            "column": Out(part.column_bits),
            "ready": Out(1),
            "issue": In(1),
        }
    )


class Scheduler(wiring.Component):
    """Issues the commands of an SDRAM: those of its refresher, and column and row commands of two requesters.

    Parameters
    ----------
    part : SdramPart
    timing : SdramTiming

    Members
    -------
    requesters : In(requester_signature(part)).array(2)
        Reads and writes.
    command, bank, address : Out
        As in ``sdram_signature``, from registers, 1 cycle after ``issue``.
    initialising : Out(1)
        The sequence after power-up is not complete.

    In each cycle the first that is possible of: the refresher's command; the column command of the current direction's
    head; precharge or activation of its bank; the same for the burst after it, else for the head of the other
    direction, in another bank. A head beyond the end of the memory is issued at the pace of the others, without a
    command.
    """

    requesters: list[Any]
    command: Signal
    bank: Signal
    address: Signal
    initialising: Signal

    def __init__(self, part: SdramPart, timing: SdramTiming) -> None:
        self._part, self._timing = part, timing
        pins = sdram_signature(part.row_bits).members
        super().__init__(
            {
                "requesters": In(requester_signature(part)).array(2),
                **{name: pins[name] for name in ("command", "bank", "address")},
                "initialising": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        part, timing = self._part, self._timing
        m.submodules.banks = banks = Banks(part, timing, 2 * len(self.requesters))
        m.submodules.refresher = refresher = Refresher(timing)
        m.submodules.between_banks = between_banks = Interlock(timing.bank_to_bank)
        m.submodules.between_reads = between_reads = Interlock(timing.burst, timing.burst)
        m.submodules.between_writes = between_writes = Interlock(timing.burst, timing.read_to_write)
        lookups: dict[str, list[Lookup]] = {"head": [], "ahead": []}
        for number, requester in enumerate(self.requesters):
            for name, group in lookups.items():
                m.submodules[f"{name}_{number}"] = lookup = Lookup(part, banks)
                group.append(lookup)
                connect(m, flipped(getattr(requester, name)), lookup.place)

        granted = refresher.granted
        direction = self._direction(m)
        heads = [requester.head for requester in self.requesters]
        bank = Signal(BANK_BITS)
        issue = Signal()
        reads = Signal()
        writes = Signal()
        m.d.comb += [bank.eq(Mux(direction, heads[WRITE].bank, heads[READ].bank)), issue.eq(reads | writes)]
        for number, (requester, spaced, strobe) in enumerate(
            zip(self.requesters, (between_reads.ready, between_writes.ready), (reads, writes), strict=True)
        ):
            head, lookup = requester.head, lookups["head"][number]
            m.d.comb += [
                strobe.eq(granted & (direction == number) & requester.ready & spaced & (head.refused | lookup.hit)),
                requester.issue.eq(strobe),
            ]
        refused = Mux(direction, heads[WRITE].refused, heads[READ].refused)

        # Row commands: of the head, of what follows it, of the other direction's head. They are chosen in parallel with
        # ``issue``, which suppresses them.
        candidates = []
        for group, same_direction in ((lookups["head"], True), (lookups["ahead"], True), (lookups["head"], False)):
            options = []
            for lookup in group:
                place = lookup.place
                activate = lookup.closed & between_banks.ready
                other_bank = place.bank != bank
                options.append(Cat(activate, lookup.conflict, other_bank, place.valid, place.bank, place.row))
            chosen = Signal(len(options[0]))
            m.d.comb += chosen.eq(Mux(direction, *(reversed(options) if same_direction else options)))
            candidates.append(chosen)
        own, following, opposite = candidates
        wanted = Signal(2)  # to activate, to precharge
        with m.If(own[:2].any()):
            m.d.comb += wanted.eq(own)
        with m.Elif(following[3]):
            m.d.comb += wanted.eq(following[:2] & following[2].replicate(2))
        with m.Else():
            m.d.comb += wanted.eq(opposite[:2] & opposite[2].replicate(2))
        row_place = Mux(own[:2].any(), own, Mux(following[3], following, opposite))[4:]
        activates = Signal()
        precharges = Signal()
        m.d.comb += Cat(activates, precharges).eq(wanted & (granted & ~issue).replicate(2))
        minimum = ((reads, timing.read_to_precharge), (writes, timing.write_to_precharge))
        keeps_open = Cat(strobe for strobe, cycles in minimum if cycles > 1).any()  # for longer than this cycle
        touches = Signal()
        m.d.comb += touches.eq(granted & wanted.any())
        for index, lookup in enumerate((*lookups["head"], *lookups["ahead"])):
            at = lookup.place.bank
            aimed = Signal.like(touches)
            m.d.comb += [
                aimed.eq(touches & (row_place[:BANK_BITS] == at)),
                lookup.row_command.eq(aimed & ~issue),
                lookup.column_command.eq(keeps_open & (bank == at)),
                banks.lookup_bank[index].eq(at),
                lookup.open_row.eq(banks.open_row[index]),
            ]

        column = Mux(direction, self.requesters[WRITE].column, self.requesters[READ].column)
        command = Signal(Command)
        with m.If(~granted):
            m.d.comb += command.eq(refresher.command)
        with m.Elif(issue & ~refused):
            m.d.comb += command.eq(Mux(direction, Command.WRITE, Command.READ))
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
            banks.precharge_all.eq(refresher.precharge_all),
            refresher.may_precharge_all.eq(banks.may_precharge_all),
            self.initialising.eq(refresher.initialising),
        ]
        m.d.sync += [
            self.command.eq(command),
            self.bank.eq(Mux(issue, bank, Mux(granted, banks.bank, 0))),
            self.address.eq(Mux(granted, Mux(issue, column, Mux(wanted[1], 0, banks.row)), refresher.address)),
        ]
        return m

    def _direction(self, m: Module) -> Signal:
        """The requester that column commands are taken from."""
        bursts = DIRECTION_WORDS // self._timing.burst
        direction = Signal()
        remaining = Signal(range(bursts), init=bursts - 1)
        ready = Array(requester.ready for requester in self.requesters)
        moved = Cat(requester.issue for requester in self.requesters).any()
        with m.If(ready[~direction] & (~ready[direction] | (remaining == 0))):
            m.d.sync += [direction.eq(~direction), remaining.eq(bursts - 1)]
        with m.Elif(moved & (remaining != 0)):
            m.d.sync += remaining.eq(remaining - 1)
        return direction
