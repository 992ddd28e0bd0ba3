"""The block scheduler: hands the blocks of a grid to the cores."""

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode
from sley.abi.packets import INLINE_ARGS
from sley.hw.command.records import GRID_BITS, FaultRecord, LaunchResult, launch_command
from sley.hw.noc.messages import DoneWord, LaunchWord, RequestKind, Tag, request_flit, response_payload
from sley.hw.noc.placement import command_node, core_node


class BlockScheduler(wiring.Component):
    """Runs one grid at a time.

    Blocks go out x fastest, then y, then z, each to the free core with the lowest number. After the first fault no
    block is handed out; the grid ends when all running blocks have ended, with the record of the fault that arrived
    first. Blocks of a gang go out in this order too, the first when all cores are free, each to the next core: block
    (x, y, z) to the core in column x and row y. A gang that was begun is handed out whole.

    Members:

    * ``i``: a grid, taken when no other runs and the last result was taken.
    * ``o``: its end, one per grid.
    * ``message``: launch messages to cores: head, nine words, and the arguments or their address.
    * ``done``: done messages from cores, always taken.
    * ``retired``: high for a cycle for each block that ended.
    * ``ended``: of each core, whether its block of the current gang has ended.

    Latency: first flit in the cycle after ``i``; throughput: a block every 11 cycles, and one more for each argument
    from the packet or for the address of arguments in memory. Cost: the grid's description, one memory word per core
    (which block it runs), one bit per core.
    """

    i: stream.Interface
    o: stream.Interface
    message: stream.Interface
    done: stream.Interface
    retired: Signal
    ended: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        super().__init__(
            {
                "i": In(stream.Signature(launch_command(config))),
                "o": Out(stream.Signature(LaunchResult)),
                "message": Out(stream.Signature(request_flit(config))),
                "done": In(stream.Signature(response_payload(config))),
                "retired": Out(1),
                "ended": Out(config.cores),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        cores = config.cores

        grid = Signal(launch_command(config), reset_less=True)
        place = [Signal(GRID_BITS, name=f"block_{axis}", reset_less=True) for axis in "xyz"]
        block = Signal(32, reset_less=True)
        more = Signal()
        running = Signal(cores)
        core = Signal(range(max(cores, 2)), reset_less=True)
        following = Signal.like(core)  # the core behind it
        fault = Signal(FaultRecord)

        # Which block a core runs: written when it is handed out, read when the core reports.
        m.submodules.blocks = blocks = Memory(shape=unsigned(32), depth=max(cores, 2), init=[])
        write, read = blocks.write_port(), blocks.read_port()
        m.d.comb += [write.addr.eq(core), write.data.eq(block)]

        # 0 is the head of the message, then its words: one that is not sent has a number all the same.
        word = Signal(range(1 + len(LaunchWord) + INLINE_ARGS))
        in_memory = grid.arg_words > INLINE_ARGS
        inline = Mux(in_memory, 0, grid.arg_words)
        last_word = word == len(LaunchWord) + inline
        words: dict[Any, Any] = {
            LaunchWord.PROGRAM: grid.program,
            LaunchWord.TAG: grid.tag,
            LaunchWord.SIZES: Cat(grid.program_words, grid.arg_words, grid.gang),
            LaunchWord.ARGS: grid.args,
            LaunchWord.BLOCK_X: place[0],
            LaunchWord.BLOCK_Y: place[1],
            LaunchWord.BLOCK_Z: place[2],
            LaunchWord.GRID_X: grid.grid[0],
            LaunchWord.GRID_Y: grid.grid[1],
            LaunchWord.GRID_Z: grid.grid[2],
            **{len(LaunchWord) + k: grid.inline[k] for k in range(INLINE_ARGS)},
        }
        flit: Any = self.message.payload
        nodes = [core_node(config, index) for index in range(cores)]
        m.d.comb += [
            flit.dest.x.eq(Array(x for x, _ in nodes)[core]),
            flit.dest.y.eq(Array(y for _, y in nodes)[core]),
            flit.last.eq(last_word),
        ]
        with m.Switch(word):
            with m.Case(0):
                x, y = command_node(config)
                head = flit.payload.head
                m.d.comb += [
                    head.kind.eq(RequestKind.MESSAGE),
                    head.tag.eq(Tag.MESSAGE),
                    head.src.x.eq(x),
                    head.src.y.eq(y),
                    head.beats.eq(Mux(in_memory, len(LaunchWord) - 1, len(LaunchWord) - 2 + inline)),
                ]
            for number, value in words.items():
                with m.Case(number + 1):
                    m.d.comb += flit.payload.beat.data.eq(value)

        free = ~running
        m.d.comb += following.eq(Mux(core == cores - 1, 0, core + 1))
        at_end = [place[k] == grid.grid[k] - 1 for k in range(3)]
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.i.ready.eq(1)
                m.d.sync += [
                    grid.eq(self.i.payload),
                    *(p.eq(0) for p in place),
                    block.eq(0),
                    more.eq(1),
                    core.eq(0),
                    word.eq(0),
                    fault.eq(0),
                ]
                with m.If(self.i.valid):
                    m.next = "SEND"
            with m.State("CHOOSE"):
                m.d.sync += word.eq(0)
                for index in reversed(range(cores)):
                    with m.If(free[index] & ~grid.gang):
                        m.d.sync += core.eq(index)
                begun = grid.gang & (following != 0)
                going = begun | (more & (fault.code == FaultCode.NONE))
                with m.If(going & (begun | Mux(grid.gang, free.all(), free.any()))):
                    with m.If(grid.gang):
                        m.d.sync += core.eq(following)
                    m.next = "SEND"
                with m.Elif(~going & ~running.any()):
                    m.next = "REPORT"
            with m.State("SEND"):
                m.d.comb += [self.message.valid.eq(1), write.en.eq(word == 0)]
                with m.If(self.message.ready):
                    m.d.sync += word.eq(word + 1)
                    with m.If((word == LaunchWord.SIZES + 1) & ~in_memory):
                        m.d.sync += word.eq(LaunchWord.BLOCK_X + 1)
                    with m.If(last_word):
                        m.d.sync += block.eq(block + 1)
                        _advance(m, place, at_end)
                        m.d.sync += more.eq(~Cat(at_end).all())
                        m.next = "CHOOSE"
            with m.State("REPORT"):
                m.d.comb += self.o.valid.eq(1)
                with m.If(self.o.ready):
                    m.next = "IDLE"
        m.d.comb += [self.o.payload.queue.eq(grid.queue), self.o.payload.fault.eq(fault)]

        # Done messages: three words, one after another, from one core at a time.
        position = Signal(range(len(DoneWord)))
        value = self.done.payload.data[:32]
        pending = Signal(FaultRecord, reset_less=True)
        ended = Signal()
        m.d.comb += [
            self.done.ready.eq(1),
            read.addr.eq(value[:8]),
            read.en.eq(self.done.valid & (position == DoneWord.STATUS)),
            ended.eq(self.done.valid & (position == DoneWord.ADDRESS)),
            self.retired.eq(ended),
        ]
        with m.If(self.done.valid):
            m.d.sync += position.eq(Mux(ended, 0, position + 1))
            with m.Switch(position):
                with m.Case(DoneWord.STATUS):
                    m.d.sync += Cat(pending.core, pending.code, pending.unit).eq(value)
                with m.Case(DoneWord.PC):
                    m.d.sync += pending.pc.eq(value)
        with m.If(ended & (pending.code != FaultCode.NONE) & (fault.code == FaultCode.NONE)):
            m.d.sync += [fault.eq(pending), fault.block.eq(read.data), fault.address.eq(value)]
        for index in range(cores):
            # A core cannot report the block that is being sent to it, so the two never meet.
            with m.If(ended & (pending.core == index)):
                m.d.sync += running[index].eq(0)
                m.d.sync += self.ended[index].eq(1)
            with m.If(write.en & (core == index)):
                m.d.sync += running[index].eq(1)
        with m.If(write.en & (core == 0)):
            m.d.sync += self.ended.eq(0)
        return m


def _advance(m: Module, place: list[Signal], at_end: list[Any]) -> None:
    """The next block: x fastest."""
    carry: Any = Const(1)
    for axis, end in zip(place, at_end, strict=True):
        with m.If(carry):
            m.d.sync += axis.eq(Mux(end, 0, axis + 1))
        carry = carry & end
