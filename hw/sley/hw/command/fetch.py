"""Fetches a packet and checks it."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from sley.abi.config import ChipConfig
from sley.abi.faults import CODE_BITS, FaultCode
from sley.abi.network import RequestKind, Tag
from sley.abi.packets import PACKET_BYTES, PacketOp
from sley.abi.pages import CONTEXT_BITS
from sley.hw.command.check import PacketCheck
from sley.hw.command.queue import PACKET_ADDRESS_BITS, PACKET_SHIFT
from sley.hw.command.records import packet_beat
from sley.hw.noc.access import ERROR_BITS, fault_code
from sley.hw.noc.messages import Source, ask_memory, request_flit, response_payload

PacketPlace = data.StructLayout({"packet": PACKET_ADDRESS_BITS, "nested": 1, "context": CONTEXT_BITS})
"""Where a packet is: its address in units of packets, whether that is in a buffer, and in whose address space."""

CHOICES = 2
"""Groups of queues among which the place of a packet is chosen, each ahead of a register of its own."""


class PacketFetch(wiring.Component):
    """Reads one packet from memory, checks it, and keeps it until it is taken.

    Parameters
    ----------
    config : ChipConfig
        The chip.
    tag : Tag, source : Source
        By which memory's answers find their way back.

    Members
    -------
    start : In(1), place : In(PacketPlace).array(CHOICES)
        Fetch the packet at ``place``, not while ``busy``. Of all choices one is a place and the others are 0: they meet
        behind a register, as it is known late whose packet is fetched.
    busy : Out(1)
        A packet is here or in flight.
    ready : Out(1)
        It is here. The next outputs are valid with it.
    packet : Out(8 * PACKET_BYTES), launch : Out(1), indirect : Out(1)
        The packet, and what it is.
    bad : Out(1), code : Out(8), address : Out(32)
        Something is wrong with it: what ``PacketCheck`` found, or BAD_ADDRESS (beyond the chip's address width),
        BUS_ERROR, PAGE_FAULT or PERMISSION with the packet's address.
    drop : In(1)
        Forget it, also one in flight.
    beat : Out(packet_beat(config))
        Of the packet, in the cycle after it came from memory.
    request : Out(stream of request_flit(config)), response : In(stream of response_payload(config))
        To the node's port; the answers to ``tag``, always accepted.

    Latency
    -------
    ``start`` to ``request`` one cycle, the last beat to ``ready`` three; without a request, two from ``start``.

    Cost
    ----
    512 flip-flops and the check, which goes on as beats arrive.
    """

    start: Signal
    place: list[data.View]
    busy: Signal
    ready: Signal
    packet: Signal
    launch: Signal
    indirect: Signal
    bad: Signal
    code: Signal
    address: Signal
    drop: Signal
    beat: data.View
    request: stream.Interface
    response: stream.Interface

    def __init__(self, config: ChipConfig, *, tag: Tag, source: Source) -> None:
        self._config = config
        self._tag = tag
        self._source = source
        super().__init__(
            {
                "start": In(1),
                "place": In(PacketPlace).array(CHOICES),
                "busy": Out(1),
                "ready": Out(1),
                "packet": Out(8 * PACKET_BYTES),
                "launch": Out(1),
                "indirect": Out(1),
                "bad": Out(1),
                "code": Out(CODE_BITS),
                "address": Out(32),
                "drop": In(1),
                "beat": Out(packet_beat(config)),
                "request": Out(stream.Signature(request_flit(config))),
                "response": In(stream.Signature(response_payload(config))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        m.submodules.check = check = PacketCheck(config)

        choices = [Signal(PacketPlace, name=f"place{k}", reset_less=True) for k in range(CHOICES)]
        place = PacketPlace(reduce(or_, (Value.cast(choice) for choice in choices)))
        address = place.packet
        outside = Cat(choice.packet[config.addr_bits - PACKET_SHIFT :] for choice in choices).any()
        failed = Signal(ERROR_BITS)
        dropped = Signal()
        arrived = Signal()
        index = Signal.like(self.beat.index)
        m.d.sync += arrived.eq(self.response.valid)
        with m.If(arrived):
            m.d.sync += index.eq(index + 1)
        m.d.comb += [
            self.beat.valid.eq(arrived),
            self.beat.index.eq(index),
            self.beat.data.eq(self.packet[-len(self.beat.data) :]),
            check.beat.eq(self.beat),
            check.nested.eq(place.nested),
            self.response.ready.eq(1),
        ]

        # A beat is a part of a packet, or several packets are in a beat.
        beats = max(PACKET_BYTES // config.bus_bytes, 1)
        burst = min(beats, config.max_burst)
        requested = Signal(range(beats + 1))
        requesting = Signal()  # not all are asked for
        left = Signal(range(beats + 1))
        flit: data.View = self.request.payload
        start = address << PACKET_SHIFT
        m.d.comb += [
            *ask_memory(
                flit,
                config,
                self._source,
                kind=RequestKind.READ,
                tag=self._tag,
                beats=burst - 1,
                addr=(start & -config.bus_bytes) | requested << exact_log2(config.bus_bytes),
                context=place.context,
            ),
            flit.last.eq(1),
            self.request.valid.eq(requesting & ~outside),
        ]
        with m.If(self.response.valid):
            value = self.response.payload.data
            if len(value) > len(self.packet):
                value = value.word_select(address[: exact_log2(config.bus_bytes) - PACKET_SHIFT], len(self.packet))
                m.d.sync += self.packet.eq(value)
            elif len(value) == len(self.packet):
                m.d.sync += self.packet.eq(value)
            else:
                m.d.sync += self.packet.eq((value << len(self.packet) | self.packet) >> len(value))
            m.d.sync += left.eq(left - 1)
            with m.If(~failed.any()):
                m.d.sync += failed.eq(self.response.payload.error)

        m.d.sync += [
            self.launch.eq(self.packet[:8] == PacketOp.LAUNCH),
            self.indirect.eq(self.packet[:8] == PacketOp.INDIRECT),
        ]
        m.d.comb += [self.code.eq(check.code), self.address.eq(check.address)]
        m.d.comb += self.bad.eq(check.bad | outside | failed.any())
        with m.If(outside | failed.any()):
            m.d.comb += [self.code.eq(fault_code(failed)), self.address.eq(start)]
        with m.If(outside):
            m.d.comb += self.code.eq(FaultCode.BAD_ADDRESS)

        with m.FSM() as fsm:
            m.d.comb += self.busy.eq(~fsm.ongoing("IDLE"))
            with m.State("IDLE"):
                m.d.comb += check.restart.eq(1)
                m.d.sync += index.eq(0)
                m.d.sync += [requested.eq(0), requesting.eq(self.start), left.eq(beats), failed.eq(0), dropped.eq(0)]
                m.d.sync += [choice.eq(given) for choice, given in zip(choices, self.place, strict=True)]
                with m.If(self.start):
                    m.next = "ASK"
            with m.State("ASK"):
                with m.If(self.request.valid & self.request.ready):
                    m.d.sync += [requested.eq(requested + burst), requesting.eq(requested != beats - burst)]
                with m.If(self.drop):
                    m.d.sync += dropped.eq(1)
                with m.If(self.response.valid & (left == 1)):
                    m.next = "CHECK"
                with m.If(outside):
                    m.next = "READY"
                with m.If(outside & self.drop):
                    m.next = "IDLE"
            with m.State("CHECK"):
                with m.If(check.done):
                    m.next = "READY"
                with m.If(check.done & dropped):
                    m.next = "IDLE"
                with m.If(self.drop):
                    m.next = "IDLE"
            with m.State("READY"):
                m.d.comb += self.ready.eq(1)
                with m.If(self.drop):
                    m.next = "IDLE"
        return m
