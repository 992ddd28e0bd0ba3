"""From runs of bytes to read bursts, and from their data to left-justified beats."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from sley.abi.config import ChipConfig
from sley.abi.instructions import Share
from sley.abi.network import RequestKind, Tag
from sley.abi.pages import CONTEXT_BITS
from sley.abi.timing import CROWDED_REQUESTS, JOINED_BEATS, READER_BEATS, READER_RUNS
from sley.hw.memory.run import Run, beat
from sley.hw.memory.span import reaches_further, shift_right, span, span_layout
from sley.hw.noc.access import ERROR_BITS
from sley.hw.noc.messages import SHARE_BITS, Source, ask_memory, request_flit, response_payload
from sley.hw.stream.buffer import StreamBuffer
from sley.hw.stream.fifo import StreamFIFO
from sley.hw.stream.prefetch import PrefetchFIFO


class MemoryReader(wiring.Component):
    """Reads runs of bytes at any alignment, in order.

    A run becomes bursts of at most ``max_burst`` beats, split where addresses are multiples of the longest burst. A
    bus beat that a run shares with the one that it joins is read once. Where requests have to wait, bursts shorter
    than ``JOINED_BEATS`` that are not shared grow by what joins them, if bursts may be that long. The requests of later
    runs go out while the data of earlier ones arrive. Room for a burst's data is reserved before it is requested, so
    that ``response`` is always accepted, whatever ``o`` does.

    Parameters
    ----------
    config : ChipConfig
        The chip.
    tag : Tag, source : Source
        By which memory's answers find their way back.
    depth : int
        Runs in flight.
    beats : int
        Bus beats in flight, at least two of the longest bursts.

    Members
    -------
    i : In(stream of Run)
        Runs of 1 to 65535 bytes, whose ``share`` goes into their requests.
    o : Out(stream of beat(config))
        Their beats.
    request : Out(stream of request_flit(config))
        To the node's port: heads of READ packets.
    response : In(stream of response_payload(config))
        The answers to ``tag``, always accepted.
    busy : Out(1)
        From the cycle after a run was accepted until its last beat left.

    Raises
    ------
    ValueError
        If ``depth`` or ``beats`` is too small.

    Latency
    -------
    1 cycle from run to request, 5 from response to ``o``.

    Throughput
    ----------
    One bus beat per cycle, also when every run is a single beat (the defaults hide a round trip of 64 cycles for
    single-beat runs, of about 110 for bursts of 16).

    Cost
    ----
    ``beats`` bus beats of block RAM, ``depth`` run records, a byte shifter.
    """

    i: stream.Interface
    o: stream.Interface
    request: stream.Interface
    response: stream.Interface
    busy: Signal

    def __init__(
        self, config: ChipConfig, *, tag: Tag, source: Source, depth: int = READER_RUNS, beats: int = READER_BEATS
    ) -> None:
        if depth < 2:
            raise ValueError(f"depth is {depth}; it must be at least 2 runs")
        if beats < 2 * config.max_burst:
            raise ValueError(f"beats is {beats}; two bursts of max_burst = {config.max_burst} must fit")
        self._config = config
        self._tag = tag
        self._source = source
        self._depth = depth
        self._beats = beats
        super().__init__(
            {
                "i": In(stream.Signature(Run)),
                "o": Out(stream.Signature(beat(config))),
                "request": Out(stream.Signature(request_flit(config))),
                "response": In(stream.Signature(response_payload(config))),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        layout = span_layout(self._config)
        m.submodules.runs = runs = PrefetchFIFO(
            data.StructLayout(
                {name: layout[name].shape for name in ("offset", "data_last", "tail", "extra")}
                | {"single": 1}  # left-justified beat
                | {"shared": 1, "shares": 1}  # a bus beat: the first with the run before, the last with the next one
            ),
            self._depth,
        )
        m.submodules.arrived = arrived = StreamFIFO(
            data.StructLayout({"data": 8 * self._config.bus_bytes, "error": ERROR_BITS}), self._beats
        )
        m.d.comb += [
            arrived.i.payload.data.eq(self.response.payload.data),
            arrived.i.payload.error.eq(self.response.payload.error),
            arrived.i.valid.eq(self.response.valid),
            self.response.ready.eq(arrived.i.ready),
        ]
        requesting = self._requests(m, runs.i, arrived.o.valid & arrived.o.ready)
        aligning = self._align(m, runs.o, arrived.o)
        m.d.comb += self.busy.eq(requesting | ~runs.empty | aligning)
        return m

    def _requests(self, m: Module, runs: stream.Interface, freed: Signal) -> Signal:
        """Splits runs into bursts; returns whether one is in progress."""
        config = self._config
        layout = span_layout(config)
        out = self.request
        up, down = Signal(), Signal()  # windows, of a run that shares
        run = span(m, config, self.i.payload, up, down)

        active = Signal()
        window = Signal(layout["window"].shape, reset_less=True)
        position = Signal(layout["position"].shape, reset_less=True)
        windows = Signal(layout["windows"].shape, reset_less=True)  # to come behind this one
        last = Signal(layout["last"].shape, reset_less=True)
        context = Signal(CONTEXT_BITS, reset_less=True)
        execute = Signal(reset_less=True)
        share = Signal(SHARE_BITS, reset_less=True)
        free = Signal(range(self._beats + 1))
        counted = Signal.like(free, init=self._beats)  # without what the cycle before changed
        returned = Signal()  # a beat, from the room of those that arrived
        taken = Signal(len(position) + 1)  # what was asked for: -(beats + 1), in ones' complement, or 0
        more = Signal(reset_less=True)  # of the last run
        shares = Signal(reset_less=True)  # its last bus beat is the next one's first
        shared = Signal()
        offered = Signal()  # a request that was not taken, which must stay as it is
        back_pressure = Signal(range(CROWDED_REQUESTS + 1))
        extends = Signal()  # the run that is here makes this burst longer
        # What cores of a gang ask for together must be the same, whatever their ways to memory are like.
        unshared = share == Share.NONE if config.cores > 1 else 1
        may_grow = config.max_burst >= JOINED_BEATS

        ends = Signal()  # no request of this run is to come behind this one, or there is none
        room = Signal()
        final = Signal()
        rest = Signal.like(position)
        in_next_window = Signal()  # the last bus beat is in the next window
        burst = Signal.like(position)
        issue = Signal()
        accept = self.i.valid & self.i.ready
        m.d.comb += [
            final.eq(windows == 0),
            Cat(rest, in_next_window).eq(last - position),
            burst.eq(Mux(final, rest, ~position)),
            extends.eq(
                (
                    active
                    & (rest < JOINED_BEATS - 1)
                    & (windows == in_next_window)
                    & ~offered
                    & (back_pressure != 0)
                    & unshared
                )
                & (may_grow & more & self.i.valid & self.i.payload.joins & runs.ready)
            ),
            out.valid.eq(active & ~extends & room),
            issue.eq(out.valid & out.ready),
            ends.eq(~active | (final & room & out.ready)),
            self.i.ready.eq((ends | extends) & runs.ready),
            runs.valid.eq(accept),
            shared.eq(self.i.payload.joins & shares),
            runs.payload.shared.eq(shared),
            runs.payload.shares.eq(self.i.payload.more & (run.end != config.bus_bytes - 1)),
            runs.payload.single.eq(self.i.payload.bytes <= config.bus_bytes),
        ]
        m.d.comb += [runs.payload[name].eq(run[name]) for name in ("offset", "data_last", "tail", "extra")]
        flit = out.payload
        m.d.comb += [
            *ask_memory(
                flit,
                config,
                self._source,
                kind=RequestKind.READ,
                tag=self._tag,
                beats=burst,
                addr=Cat(position, window) << exact_log2(config.bus_bytes),
                context=context,
                execute=execute,
            ),
            flit.last.eq(1),
        ]
        if config.cores > 1:
            m.d.comb += flit.payload.head.share.eq(share)
        m.d.sync += offered.eq(out.valid & ~out.ready)
        with m.If(out.valid & ~out.ready):
            m.d.sync += back_pressure.eq(CROWDED_REQUESTS)
        with m.Elif(free == self._beats):  # nothing is on its way
            m.d.sync += back_pressure.eq(0)
        with m.Elif(issue & (back_pressure != 0)):
            m.d.sync += back_pressure.eq(back_pressure - 1)
        with m.If(accept):
            m.d.sync += [more.eq(self.i.payload.more), shares.eq(runs.payload.shares), last.eq(run.last)]
        # Without a request in progress, what this says of one need not be right.
        with m.If(~active | (issue & final)):
            m.d.sync += [
                share.eq(self.i.payload.share),
                context.eq(self.i.payload.context),
                execute.eq(self.i.payload.execute),
            ]
        begins = accept & ~extends & (~shared | reaches_further(config, self.i.payload))
        with m.If(begins):
            m.d.sync += active.eq(1)
        with m.Elif(issue & final):
            m.d.sync += active.eq(0)
        # A run that shares goes on behind the last bus beat of the run before, and counts its windows from that, which
        # may be in the next one of a burst so short, or from the one behind it.
        at_window_end = last.all()
        with m.If(begins | (issue & ~final)):
            with m.If((~active | final) & ~shared):
                m.d.sync += [window.eq(run.window), position.eq(run.position)]
            with m.Else():
                m.d.sync += window.eq(window + (at_window_end | (active & ~final)))
                m.d.sync += position.eq(Mux(~active | final, last + 1, 0))
        m.d.comb += [
            up.eq(extends & (windows[0] | (at_window_end & ~shared))),
            down.eq(~extends & at_window_end & shared),
        ]
        with m.If(~active | extends | (room & out.ready)):
            m.d.sync += windows.eq(Mux(~active | final | extends, run.windows, windows - 1))
        # The room that is free is that which was counted, and what the cycle before made of it.
        carry = (Cat(returned, counted[: len(position)]) + Cat(returned, taken[:-1]))[len(position) + 1]
        above = counted[len(position) :]
        m.d.comb += [
            free.eq((Cat(returned, counted) + Cat(returned, taken, taken[-1].replicate(len(free) - len(taken))))[1:]),
            room.eq((above > 1) | (above[0] & (carry | ~taken[-1])) | (carry & ~taken[-1])),
        ]
        m.d.sync += [
            counted.eq(free),
            returned.eq(freed),
            taken.eq(Cat(~burst, 1) & issue.replicate(len(taken))),
        ]
        return active

    def _align(self, m: Module, runs: stream.Interface, arrived: stream.Interface) -> Signal:
        """Joins neighbouring bus beats and turns them into place; returns whether a beat is in progress.

        ``current`` is the bus beat in which the next output beat starts. Each cycle at most one bus beat moves on. At
        the end of a run that shares its last one with the next, it stays; should the next share nothing, it is dropped.
        """
        config = self._config
        layout = span_layout(config)
        width, lanes = 8 * config.bus_bytes, config.bus_bytes
        run = runs.payload
        current = Signal(data.StructLayout({"data": width, "error": ERROR_BITS}), reset_less=True)
        current_valid = Signal()
        current_ended = Signal()  # it is the run's that ended
        first = Signal(init=1)
        ends = Signal(reset_less=True)  # with this beat, if it is not the first
        left = Signal(layout["data_last"].shape, reset_less=True)  # beats of the run, if it is not the first
        following = Signal.like(left)
        stages = range(len(run.offset))
        before, behind = stages[len(stages) // 2 :], stages[: len(stages) // 2]  # of the register
        joined = Signal(
            data.StructLayout(
                {
                    "data": 8 * (lanes + (1 << len(behind)) - 1),
                    "error": ERROR_BITS,
                    "last": 1,
                    "offset": len(behind),
                    "tail": layout["tail"].shape,
                }
            ),
            reset_less=True,
        )
        joined_valid = Signal()
        m.submodules.aligned = aligned = StreamBuffer(beat(config))
        wiring.connect(m, aligned.o, wiring.flipped(self.o))

        final = Signal()
        needs_next = Signal()
        unneeded = Signal()
        stays = Signal()
        move = Signal()
        m.d.comb += [
            final.eq(Mux(first, run.single, ends)),
            following.eq(Mux(first, run.data_last, left) - 1),
            needs_next.eq((run.offset != 0) & (~final | run.extra)),
            unneeded.eq(runs.valid & current_ended & ~run.shared),
            stays.eq(final & run.shares),
            move.eq(
                runs.valid
                & current_valid
                & ~unneeded
                & (arrived.valid | ~needs_next)
                & (~joined_valid | aligned.i.ready),
            ),
            runs.ready.eq(move & final),
            arrived.ready.eq(~current_valid | unneeded | (move & (~stays | run.extra))),
        ]
        with m.If(arrived.ready):
            m.d.sync += [current.eq(arrived.payload), current_valid.eq(arrived.valid), current_ended.eq(0)]
        with m.If(move & final & run.extra & ~run.shares):
            m.d.sync += current_valid.eq(0)  # the next beat was the end of this run and is used up
        with m.If(move):
            m.d.sync += [first.eq(final), ends.eq(following == 0), left.eq(following), current_ended.eq(stays)]

        with m.If(~joined_valid | aligned.i.ready):
            m.d.sync += [
                joined_valid.eq(move),
                joined.data.eq(
                    shift_right(Cat(current.data, arrived.payload.data), run.offset, lanes, reversed(before))
                ),
                joined.error.eq(Mux(current.error.any() | ~needs_next, current.error, arrived.payload.error)),
                joined.last.eq(final),
                joined.offset.eq(run.offset[: len(behind)]),
                joined.tail.eq(run.tail),
            ]
        shifted = shift_right(joined.data, joined.offset, lanes, reversed(behind))
        mask = Cat((~joined.last | (k <= joined.tail)).replicate(8) for k in range(lanes))
        m.d.comb += [
            aligned.i.valid.eq(joined_valid),
            aligned.i.payload.data.eq(shifted & mask),
            aligned.i.payload.last.eq(joined.last),
            aligned.i.payload.error.eq(joined.error),
        ]
        return joined_valid | aligned.o.valid
