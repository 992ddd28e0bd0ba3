"""From runs of bytes and left-justified beats to write bursts."""

from amaranth import C, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from sley.abi.config import ChipConfig
from sley.abi.network import AccessError, RequestKind, Tag
from sley.abi.pages import CONTEXT_BITS
from sley.abi.timing import WRITER_BURSTS, WRITER_RUNS
from sley.hw.memory.run import Run
from sley.hw.memory.span import shift_left, span, span_layout
from sley.hw.noc.access import ERROR_BITS
from sley.hw.noc.messages import Source, ask_memory, request_data, request_flit, response_payload
from sley.hw.stream.count import step
from sley.hw.stream.fifo import StreamFIFO


class MemoryWriter(wiring.Component):
    """Writes runs of bytes at any alignment, in order; bytes outside a run are never touched.

    A run, and with it all that its ``more`` joins to it, becomes bursts of at most ``max_burst`` beats, split where
    addresses are multiples of the longest burst; a bus beat that joined runs share is written once. A burst is sent
    once all its data is here, so that a packet never waits on the network for its own sender.

    Parameters
    ----------
    config : ChipConfig
        The chip.
    tag : Tag, source : Source
        By which memory's answers find their way back.

    Members
    -------
    i : In(stream of Run)
        Runs of 1 to 65535 bytes.
    data : In(stream of bus_bytes)
        ceil(bytes / bus bytes) left-justified beats per run, in the order of the runs; what is past the end is ignored.
    cut : In(1)
        The run that the last ``more`` promised does not come; high until ``busy`` is low.
    request : Out(stream of request_flit(config))
        To the node's port: WRITE packets.
    response : In(stream of response_payload(config))
        The answers to ``tag``, always accepted.
    busy : Out(1)
        From the cycle after a run was accepted until memory has acknowledged all of it.
    error : Out(ERROR_BITS), error_phase : Out(1)
        An ``AccessError`` in the cycle in which an acknowledgement with one arrives, in which ``busy`` is still high;
        the group that it is of.
    phase : In(1), pending : Out(2)
        The group, of two, of the run at ``i``, the same for joined runs; like ``busy``, of each group.
    sent : Out(1)
        A bus beat of data leaves in this cycle, for counters.

    Rules
    -----
    1. A group may begin anew when nothing of it is pending.
    2. Memory acknowledges in order.

    Latency
    -------
    3 cycles from a burst's last data beat to its head.

    Throughput
    ----------
    A cycle for each bus beat of each run; on the network beats / (beats + 1) per burst, with up to 63 bursts
    unacknowledged.

    Cost
    ----
    ``max_burst`` + 2 bus beats of RAM and one of registers, a byte shifter.
    """

    i: stream.Interface
    data: stream.Interface
    cut: Signal
    request: stream.Interface
    response: stream.Interface
    busy: Signal
    error: Signal
    phase: Signal
    pending: Signal
    error_phase: Signal
    sent: Signal

    def __init__(self, config: ChipConfig, *, tag: Tag, source: Source) -> None:
        self._config = config
        self._tag = tag
        self._source = source
        super().__init__(
            {
                "i": In(stream.Signature(Run)),
                "data": In(stream.Signature(8 * config.bus_bytes)),
                "cut": In(1),
                "request": Out(stream.Signature(request_flit(config))),
                "response": In(stream.Signature(response_payload(config))),
                "busy": Out(1),
                "error": Out(ERROR_BITS),
                "phase": In(1),
                "pending": Out(2),
                "error_phase": Out(1),
                "sent": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        layout = span_layout(config)
        m.submodules.runs = runs = StreamFIFO(
            data.StructLayout(
                {name: layout[name].shape for name in ("window", "position", "windows", "last")}
                | {"more": 1, "shares": 1, "context": CONTEXT_BITS, "phase": 1}
            ),
            WRITER_RUNS,
        )
        m.submodules.beats = beats = StreamFIFO(request_data(config), config.max_burst + 2)
        self._align(m, runs.i, beats.i)
        self._send(m, runs, beats)
        return m

    def _align(self, m: Module, runs: stream.Interface, beats: stream.Interface) -> None:
        """Turns the data into place and joins neighbours: one bus beat per cycle."""
        config = self._config
        layout = span_layout(config)
        width, lanes = 8 * config.bus_bytes, config.bus_bytes
        incoming = span(m, config, self.i.payload, C(0), C(0))
        shares = self.i.payload.more & (incoming.end != lanes - 1)
        aligning = Signal()
        first = Signal()
        run = Signal(
            data.StructLayout(
                {name: layout[name].shape for name in ("offset", "end", "data_last", "extra")} | {"shares": 1}
            ),
            reset_less=True,
        )
        shifted = Signal(
            data.StructLayout(
                {
                    "data": width,
                    "offset": layout["offset"].shape,
                    "end": layout["end"].shape,
                    "first": 1,
                    "last": 1,
                    "shared": 1,  # with the next run
                }
            ),
            reset_less=True,
        )
        shifted_valid = Signal()
        before = Signal(width, reset_less=True)  # the data beat before
        partial = Signal(request_data(config), reset_less=True)  # a bus beat that the next run goes on with
        partial_valid = Signal()
        whole = Signal(request_data(config))

        final = Signal()
        flush = Signal()  # the last bus beat holds only what is left of the last data beat
        last_data = Signal(reset_less=True)
        room = Signal()
        step = Signal()
        m.d.comb += [
            final.eq(flush | (last_data & ~run.extra)),
            room.eq(~shifted_valid | shifted.shared | beats.ready),
            step.eq(aligning & room & (self.data.valid | flush)),
            self.data.ready.eq(aligning & room & ~flush),
            self.i.ready.eq((~aligning | (step & final)) & runs.ready),
            runs.valid.eq(self.i.valid & self.i.ready),
            *(runs.payload[name].eq(incoming[name]) for name in ("window", "position", "windows", "last")),
            runs.payload.context.eq(self.i.payload.context),
            runs.payload.more.eq(self.i.payload.more),
            runs.payload.shares.eq(shares),
            runs.payload.phase.eq(self.phase),
        ]
        with m.If(step):
            m.d.sync += [aligning.eq(~final), first.eq(0), flush.eq(last_data), run.data_last.eq(run.data_last - 1)]
            m.d.sync += [before.eq(self.data.payload), last_data.eq(run.data_last == 1)]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [aligning.eq(1), first.eq(1), flush.eq(0), run.shares.eq(shares)]
            m.d.sync += last_data.eq(self.i.payload.bytes <= lanes)
            m.d.sync += [run[name].eq(incoming[name]) for name in ("offset", "end", "data_last", "extra")]

        with m.If(room):
            m.d.sync += [
                shifted_valid.eq(step),
                shifted.data.eq(shift_left(Cat(before, self.data.payload), run.offset, lanes)),
                shifted.offset.eq(run.offset),
                shifted.end.eq(run.end),
                shifted.first.eq(first),
                shifted.last.eq(final),
                shifted.shared.eq(final & run.shares),
            ]
            with m.If(shifted_valid):
                m.d.sync += [partial.eq(whole), partial_valid.eq(shifted.shared)]
        for k in range(lanes):
            early = k < shifted.offset  # this lane has what the data beat before left, if there was one
            in_run = Signal(name=f"in_run_{k}")  # otherwise it belongs to a run before, or to none
            m.d.comb += [
                in_run.eq(shifted_valid & ~(shifted.first & early) & ~(shifted.last & (k > shifted.end))),
                whole.data.word_select(k, 8).eq(
                    Mux(in_run, shifted.data.word_select(k, 8), partial.data.word_select(k, 8))
                ),
                whole.strobe[k].eq(in_run | (partial_valid & partial.strobe[k])),
            ]
        left_over = partial_valid & ~shifted_valid & ~aligning & self.cut
        m.d.comb += [beats.payload.eq(whole), beats.valid.eq((shifted_valid & ~shifted.shared) | left_over)]
        with m.If(left_over & beats.ready):
            m.d.sync += partial_valid.eq(0)

    def _send(self, m: Module, runs: StreamFIFO, beats: StreamFIFO) -> None:
        """Joins runs, splits them into bursts and sends each when its data is complete."""
        config = self._config
        layout = span_layout(config)
        out = self.request

        active = Signal()
        window = Signal(layout["window"].shape, reset_less=True)
        position = Signal(layout["position"].shape, reset_less=True)
        windows = Signal(layout["windows"].shape, reset_less=True)  # to come behind this one
        last = Signal(layout["last"].shape, reset_less=True)
        rest = Signal(layout["last"].shape, reset_less=True)  # last - place
        more = Signal(reset_less=True)  # the next run continues them
        shared = Signal(reset_less=True)  # and begins in the last of them
        context = Signal(CONTEXT_BITS, reset_less=True)
        phase = Signal(reset_less=True)
        in_data = Signal()
        count = Signal(exact_log2(config.max_burst), reset_less=True)  # beats to follow in this burst, minus one
        outstanding = Signal(range(WRITER_BURSTS + 1))
        head_sent = Signal()  # a head, in the cycle before, that ``outstanding`` does not know yet

        final = Signal(reset_less=True)  # windows == 0
        following = Signal.like(windows)
        extends = Signal()  # the next run may make this burst longer
        burst = Signal(exact_log2(config.max_burst))
        data_complete = Signal()
        head = Signal()
        full = (outstanding == WRITER_BURSTS) | (head_sent & (outstanding == WRITER_BURSTS - 1))
        flit = out.payload
        m.d.comb += [
            burst.eq(Mux(final, rest, ~position)),
            data_complete.eq(beats.level > burst),
            extends.eq(active & more & final),
            runs.o.ready.eq(~active | extends),
        ]
        m.d.comb += ask_memory(
            flit,
            config,
            self._source,
            kind=RequestKind.WRITE,
            tag=self._tag,
            beats=burst,
            addr=Cat(position, window) << exact_log2(config.bus_bytes),
            context=context,
        )
        with m.If(in_data):
            m.d.comb += [
                flit.payload.beat.eq(beats.o.payload),
                flit.last.eq(count == 0),
                out.valid.eq(beats.o.valid),
                beats.o.ready.eq(out.ready),
                self.sent.eq(beats.o.valid & beats.o.ready),
            ]
            with m.If(out.valid & out.ready):
                m.d.sync += [count.eq(count - 1), in_data.eq(count != 0)]
        with m.Else():
            m.d.comb += [
                out.valid.eq(active & ~extends & data_complete & ~full),
                head.eq(out.valid & out.ready),
            ]
            with m.If(head):
                m.d.sync += [in_data.eq(1), count.eq(burst), active.eq(~final), window.eq(window + 1)]
                m.d.sync += [position.eq(0), rest.eq(last)]
        joins = runs.o.valid & runs.o.ready
        # A run that goes on behind the last bus beat of a window counts its windows from the next one.
        up, down = Signal(), Signal()
        m.d.comb += [
            up.eq(joins & active & last.all() & ~shared),
            down.eq(~joins),
            following.eq(Mux(joins, runs.o.payload.windows, windows) + step(up, down, len(windows))),
        ]
        with m.If(joins | head):
            m.d.sync += [windows.eq(following), final.eq(following == 0)]
        with m.If(joins):
            m.d.sync += [active.eq(1), more.eq(runs.o.payload.more), shared.eq(runs.o.payload.shares)]
            m.d.sync += last.eq(runs.o.payload.last)
            m.d.sync += rest.eq(runs.o.payload.last - Mux(active, position, runs.o.payload.position))
            with m.If(~active):
                m.d.sync += [
                    window.eq(runs.o.payload.window),
                    position.eq(runs.o.payload.position),
                    context.eq(runs.o.payload.context),
                    phase.eq(runs.o.payload.phase),
                ]
        with m.Elif(extends & self.cut & runs.empty):
            m.d.sync += more.eq(0)

        m.d.sync += [
            head_sent.eq(head),
            outstanding.eq(outstanding + step(head_sent, self.response.valid, len(outstanding))),
        ]
        m.d.comb += [
            self.response.ready.eq(1),
            self.error.eq(Mux(self.response.valid, self.response.payload.error, AccessError.NONE)),
            self.busy.eq(self.pending.any()),
        ]
        accepted = self.i.valid & self.i.ready
        head_sent_phase = Signal(reset_less=True)
        m.d.sync += head_sent_phase.eq(phase)
        nothing = Signal(2)  # of the group is unacknowledged
        oldest = Signal()  # the group that memory acknowledges first
        unacknowledged = [Signal.like(outstanding, name=f"unacknowledged{k}") for k in range(2)]
        for k, count in enumerate(unacknowledged):
            waiting = Signal(range(WRITER_RUNS + 2), name=f"waiting{k}")  # runs
            accepted_run, joined_run = accepted & (self.phase == k), joins & (runs.o.payload.phase == k)
            sent, acknowledged = head_sent & (head_sent_phase == k), self.response.valid & (self.error_phase == k)
            m.d.sync += [
                waiting.eq(waiting + step(accepted_run, joined_run, len(waiting))),
                count.eq(count + step(sent, acknowledged, len(count))),
            ]
            m.d.comb += [
                nothing[k].eq((count == 0) & ~sent),
                self.pending[k].eq((waiting != 0) | (active & (phase == k)) | ~nothing[k]),
            ]
        done = Mux(oldest, nothing[1], nothing[0])
        m.d.comb += self.error_phase.eq(oldest ^ done)
        with m.If(done & ~nothing.all()):
            m.d.sync += oldest.eq(~oldest)
