"""The two messages of a block: the one that starts it and the one that reports its end."""

from amaranth import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.faults import CODE_BITS, FAULT, PC_BITS
from sley.abi.instructions import ARG_REGISTER, BLOCK_REGISTER
from sley.abi.network import LAUNCH_SIZES, QUEUE_BITS, DoneWord, LaunchWord, Tag
from sley.abi.packets import INLINE_ARGS
from sley.abi.pages import CONTEXT_BITS
from sley.abi.placement import command_node
from sley.hw.core.sequencer.fetch import FETCH_ORDER
from sley.hw.core.sequencer.register_file import REGISTER_WRITE
from sley.hw.elaboration.layouts import struct, widths
from sley.hw.noc.messages import request_flit, response_flit, to_node

CORE_BITS = FAULT.fields["core"].width
"""Width of a core's number."""

_STATUS = data.StructLayout(widths(FAULT, "core", "code", "unit"))
"""DoneWord.STATUS."""


class Launch(wiring.Component):
    """Takes a launch message apart and prepares the registers.

    Parameters
    ----------
    config : ChipConfig
        Sets the shape of a flit.

    Members
    -------
    i : In(stream of request_flit(config))
        The message: a head, then one word per flit.
    enable : In(1)
        Accept flits, one per cycle.
    begin : Out(1)
        The head is accepted in this cycle.
    done : Out(1)
        The last word is accepted in this cycle.
    order : Out(FETCH_ORDER)
        From the message; complete at ``start``, and stays until the next one.
    queue : Out(QUEUE_BITS), watchdog : Out(32)
        Whose block it is, and that queue's limit; likewise.
    start : Out(1)
        High for one cycle when ``order`` is complete, before the rest of the message is here.
    gang : Out(1)
        The block is of a gang; stays until the next message.
    register : Out(REGISTER_WRITE)
        As their words are accepted: block index and grid size to r1 to r6, arguments that the message
        brings to r8 and up.
    ready : Out(1)
        No message is in flight: ``register`` is not used.
    """

    i: stream.Interface
    enable: Signal
    begin: Signal
    done: Signal
    order: data.View
    queue: Signal
    watchdog: Signal
    start: Signal
    gang: Signal
    register: data.View
    ready: Signal

    def __init__(self, config: ChipConfig) -> None:
        super().__init__(
            {
                "i": In(stream.Signature(request_flit(config))),
                "enable": In(1),
                "begin": Out(1),
                "done": Out(1),
                "order": Out(FETCH_ORDER),
                "queue": Out(QUEUE_BITS),
                "watchdog": Out(32),
                "start": Out(1),
                "gang": Out(1),
                "register": Out(REGISTER_WRITE),
                "ready": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        word = Signal(32)
        sizes = data.View(struct(LAUNCH_SIZES), word)
        # Sizes, program and tag as they came, oldest first: each is compared with its like of the message before.
        names = [Signal(32, reset_less=True, name=name) for name in ("sizes", "program", "tag")]
        lengths, program, _ = names
        before = data.View(struct(LAUNCH_SIZES), lengths)
        args = Signal(32, reset_less=True)
        same = Signal(reset_less=True)
        tagged = Signal(reset_less=True)
        context = Signal(CONTEXT_BITS, reset_less=True)
        queue = Signal.like(self.queue, reset_less=True)
        watchdog = Signal(32, reset_less=True)
        inside = Signal()  # the head has passed
        position = Signal(range(len(LaunchWord) + INLINE_ARGS + 1))
        accepted = Signal()
        in_memory = Signal(reset_less=True)  # the arguments
        m.d.comb += [
            self.i.ready.eq(self.enable),
            accepted.eq(self.i.valid & self.i.ready),
            self.begin.eq(accepted & ~inside),
            self.done.eq(accepted & inside & self.i.payload.last),
            word.eq(self.i.payload.payload.beat.data),
            self.order.context.eq(context),
            self.order.program.eq(program),
            self.order.words.eq(before.program_words),
            self.order.tagged.eq(tagged),
            self.order.same.eq(same),
            self.order.args.eq(args),
            self.order.fetch_args.eq(in_memory),
            self.order.arg_words.eq(before.arg_words),
            self.queue.eq(queue),
            self.watchdog.eq(watchdog),
            self.ready.eq(~inside),
            self.register.valid.eq(accepted & inside & (position >= LaunchWord.BLOCK_X)),
            self.register.index.eq(position - LaunchWord.BLOCK_X + BLOCK_REGISTER),
            self.register.value.eq(word),
        ]
        with m.If(position > LaunchWord.GRID_Z):
            m.d.comb += self.register.index.eq(position - len(LaunchWord) + ARG_REGISTER)
        m.d.sync += self.start.eq(
            accepted & inside & ((position == LaunchWord.ARGS) | ((position == LaunchWord.TAG) & ~in_memory))
        )
        with m.If(accepted):
            m.d.sync += inside.eq(~self.i.payload.last)
            with m.If(inside):
                m.d.sync += position.eq(position + 1)
            with m.Else():
                m.d.sync += [position.eq(0), watchdog.eq(self.i.payload.payload.head.addr), same.eq(1)]
        # Of the sizes, only what belongs to a program counts.
        is_sizes = position == LaunchWord.SIZES
        equal = Mux(
            is_sizes,
            (sizes.program_words == before.program_words) & (sizes.context == before.context),
            word == lengths,
        )
        with m.If(accepted & inside & (position <= LaunchWord.TAG)):
            m.d.sync += [old.eq(new) for old, new in zip(names, [*names[1:], word], strict=True)]
            m.d.sync += same.eq(same & equal)
        with m.If(accepted & inside & (position == LaunchWord.TAG)):
            m.d.sync += tagged.eq(word != 0)
            with m.If(~in_memory):
                m.d.sync += position.eq(LaunchWord.BLOCK_X)
        with m.If(accepted & inside & is_sizes):
            m.d.sync += [
                in_memory.eq(sizes.arg_words > INLINE_ARGS),
                context.eq(sizes.context),
                queue.eq(sizes.queue),
                self.gang.eq(sizes.gang),
            ]
        with m.If(accepted & inside & (position == LaunchWord.ARGS)):
            m.d.sync += args.eq(word)
        return m


class Report(wiring.Component):
    """Sends the message that ends a block.

    Parameters
    ----------
    config : ChipConfig
        Sets the shape of a flit and the command processor's place.

    Members
    -------
    core : In(8)
        Number of this core.
    send : In(1)
        Send; held, with the fields below, until ``done``.
    code : In(8), unit : In(4), pc : In(16), address : In(32)
        The record: FaultCode, Unit, instruction index, address.
    o : Out(stream of response_flit(config))
        One flit per DoneWord.
    done : Out(1)
        The last flit is accepted in this cycle.
    """

    core: Signal
    send: Signal
    code: Signal
    unit: Signal
    pc: Signal
    address: Signal
    o: stream.Interface
    done: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._x, self._y = command_node(config)
        super().__init__(
            {
                "core": In(CORE_BITS),
                "send": In(1),
                "code": In(CODE_BITS),
                "unit": In(4),
                "pc": In(PC_BITS),
                "address": In(32),
                "o": Out(stream.Signature(response_flit(config))),
                "done": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        position = Signal(range(len(DoneWord)))
        status = Signal(_STATUS)
        last = position == len(DoneWord) - 1
        m.d.comb += [
            status.core.eq(self.core),
            status.code.eq(self.code),
            status.unit.eq(self.unit),
            self.o.valid.eq(self.send),
            *to_node(self.o.payload, self._x, self._y),
            self.o.payload.last.eq(last),
            self.o.payload.payload.tag.eq(Tag.MESSAGE),
            self.done.eq(self.send & self.o.ready & last),
        ]
        with m.Switch(position):
            for index, value in (
                (DoneWord.STATUS, status.as_value()),
                (DoneWord.PC, self.pc),
                (DoneWord.ADDRESS, self.address),
            ):
                with m.Case(index):
                    m.d.comb += self.o.payload.payload.data.eq(value)
        with m.If(self.send & self.o.ready):
            m.d.sync += position.eq(Mux(last, 0, position + 1))
        return m
