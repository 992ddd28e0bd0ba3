"""A command processor with its register bank, a memory and cores that only pretend to work.

host = CommandBench(preset("nano"), seed=1)

async def test(ctx):
    await host.open(ctx, 0, base=0x400, log2=2, readback=0x80)
    await host.submit(ctx, 0, encode_packet(PacketOp.NOP))
    await host.drained(ctx, 0)

host.run(test)
"""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, QueueState, Unit
from sley.abi.packets import INLINE_ARGS, PACKET_BYTES
from sley.abi.registers import RegisterMap
from sley.hw.bus.axi_lite import RegisterBus
from sley.hw.command.bank import command_bank
from sley.hw.command.debug import CoreDebug
from sley.hw.command.processor import CommandProcessor
from sley.hw.command.records import INDEX_BITS
from sley.hw.noc.messages import LaunchWord, Tag, request_flit, response_flit
from sley.hw.noc.placement import command_node, core_node
from sley.hw.stream.arbiter import PacketArbiter
from sley.hw.testing.memory import MemoryNode, to
from sley.hw.testing.streams import StreamBench, StreamError, compiled


class CommandSystem(wiring.Component):
    """Command processor and register bank; answers come from two sides, memory and cores.

    Parameters
    ----------
    config : ChipConfig
        The chip.

    Members
    -------
    bus : In(RegisterBus())
        The registers.
    request : Out(stream of request_flit(config))
        What the processor sends.
    memory, cores : In(stream of response_flit(config))
        Answers of memory, and of cores.
    core_debug : In(CoreDebug).array(cores)
        State of each core.
    states : Out(4).array(queues), read_indices : Out(INDEX_BITS).array(queues)
        Of each queue.
    irq : Out(1), reset_request : Out(1), resetting : In(1)
        As of ``CommandProcessor``.
    """

    bus: wiring.PureInterface
    request: stream.Interface
    memory: stream.Interface
    cores: stream.Interface
    core_debug: list[data.View]
    states: list[Signal]
    read_indices: list[Signal]
    irq: Signal
    reset_request: Signal
    resetting: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        super().__init__(
            {
                "bus": In(RegisterBus()),
                "request": Out(stream.Signature(request_flit(config))),
                "memory": In(stream.Signature(response_flit(config))),
                "cores": In(stream.Signature(response_flit(config))),
                "core_debug": In(CoreDebug).array(config.cores),
                "states": Out(4).array(config.queues),
                "read_indices": Out(INDEX_BITS).array(config.queues),
                "irq": Out(1),
                "reset_request": Out(1),
                "resetting": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.bank = bank = command_bank(self._config)
        m.submodules.processor = processor = CommandProcessor(self._config)
        m.submodules.merge = merge = PacketArbiter(response_flit(self._config), 2)
        wiring.connect(m, wiring.flipped(self.bus), bank.bus)
        wiring.connect(m, bank.chip, processor.chip)
        wiring.connect(m, bank.queue_shared, processor.queue_shared)
        wiring.connect(m, bank.doorbell_shared, processor.doorbell_shared)
        for k in range(self._config.queues):
            wiring.connect(m, bank.queue[k], processor.queue[k])
            m.d.comb += [
                self.states[k].eq(processor.queue[k].state.state),
                self.read_indices[k].eq(processor.queue[k].read_index.index),
            ]
        wiring.connect(m, processor.request, wiring.flipped(self.request))
        wiring.connect(m, wiring.flipped(self.memory), merge.i[0])
        wiring.connect(m, wiring.flipped(self.cores), merge.i[1])
        wiring.connect(m, merge.o, processor.response)
        for port, debug in zip(processor.core_debug, self.core_debug, strict=True):
            m.d.comb += port.eq(debug)
        m.d.comb += [
            self.irq.eq(processor.irq),
            self.reset_request.eq(processor.reset_request),
            processor.resetting.eq(self.resetting),
        ]
        return m


def _arguments(words: list[int]) -> int:
    """Their number, from a launch message."""
    return words[LaunchWord.SIZES] >> 16 & 0xFF


@dataclass
class BlockRun:
    """A block that a core was asked to run: the words of the message, and when it was running."""

    core: int
    words: list[int]
    start: int
    end: int
    fault: tuple[FaultCode, Unit, int, int] | None = None
    """Code, unit, pc, address."""
    reported: int = 0
    """Position of its done message among all, from 1; 0 before that."""

    @property
    def in_memory(self) -> bool:
        """Whether the message brings the address of the arguments."""
        return _arguments(self.words) > INLINE_ARGS

    @property
    def gang(self) -> bool:
        return bool(self.words[LaunchWord.SIZES] >> 31 & 1)

    def __getitem__(self, word: LaunchWord) -> int:
        return self.words[int(word) - (word > LaunchWord.ARGS and not self.in_memory)]

    @property
    def inline(self) -> list[int]:
        """Arguments that the message brings."""
        return [] if self.in_memory else self.words[len(LaunchWord) - 1 :]


@dataclass
class FakeCores:
    """Cores that answer launch messages: after a random delay in ``delay``, with the fault that ``judge`` gives."""

    bench: StreamBench
    config: ChipConfig
    messages: list[tuple[Any, list[int]]]
    delay: tuple[int, int]
    judge: Callable[[BlockRun], tuple[FaultCode, Unit, int, int] | None]
    runs: list[BlockRun] = field(default_factory=list)

    def answers(self) -> Iterator[dict[str, Any] | None]:
        """Items for the stream of done messages."""
        numbers = {core_node(self.config, k): k for k in range(self.config.cores)}
        while True:
            while len(self.runs) < len(self.messages):
                node, words = self.messages[len(self.runs)]
                core = numbers[node]
                count = _arguments(words)
                if len(words) != (len(LaunchWord) if count > INLINE_ARGS else len(LaunchWord) - 1 + count):
                    raise StreamError(f"launch message of {len(words)} words for {count} arguments")
                if any(run.core == core and not run.reported for run in self.runs):
                    raise StreamError(f"block sent to core {core}, which runs one")
                now = self.bench.cycle
                run = BlockRun(core, words, now, now + self.bench.rng.randint(*self.delay))
                run.fault = self.judge(run)
                self.runs.append(run)
            over = [run for run in self.runs if not run.reported and run.end <= self.bench.cycle]
            if not over:
                yield None
                continue
            run = self.bench.rng.choice(over)
            run.reported = 1 + max(other.reported for other in self.runs)
            code, unit, pc, address = run.fault or (FaultCode.NONE, Unit.SEQUENCER, 0, 0)
            x, y = command_node(self.config)
            for k, word in enumerate((run.core | code << 8 | unit << 16, pc, address)):
                tag: Any = Tag.MESSAGE
                payload = {"data": word, "tag": tag, "error": 0, "walk": 0}
                yield {"payload": payload, **to(self.config, (x, y)), "last": k == 2}


class CommandBench:
    """Host side of a ``CommandSystem``.

    Parameters: ``config``; ``seed``; ``timeout`` in cycles; ``core_delay``, ``judge``: see ``FakeCores``; all others go
    to ``MemoryNode``. Members: ``memory``, ``cores``, ``map``, ``bench``.
    """

    def __init__(
        self,
        config: ChipConfig,
        *,
        seed: int = 0,
        timeout: int = 20_000,
        core_delay: tuple[int, int] = (1, 60),
        judge: Callable[[BlockRun], tuple[FaultCode, Unit, int, int] | None] = lambda run: None,
        **memory: Any,
    ) -> None:
        self.config = config
        self.map = RegisterMap(config)
        self.bench = StreamBench(compiled(CommandSystem, config), seed=seed, timeout=timeout, settle=1)
        self.dut = self.bench.dut
        self.memory = MemoryNode(self.bench, config, self.dut.request, self.dut.memory, **memory)
        self.cores = FakeCores(self.bench, config, self.memory.messages, core_delay, judge)
        self.bench.send(self.dut.cores, self.cores.answers(), wait=False, name="done messages")
        self._base = [0] * config.queues
        self._length = [1] * config.queues
        self._write = [0] * config.queues
        self._readback = [0] * config.queues

    def run(self, test: Callable[[Any], Awaitable[None]]) -> None:
        """Run the test until it returns."""
        self.bench.add(test, wait=True)
        self.bench.run()

    def heads(self) -> list[tuple[int, str, int]]:
        """Every request so far: cycle of its head, kind, address."""
        requests = next(t for t in self.bench.traffic if t.name == "memory requests")
        heads, inside = [], False
        for cycle, flit in zip(requests.cycles, requests.items, strict=True):
            if not inside:
                heads.append((cycle, flit.payload.head.kind.name, flit.payload.head.addr))
            inside = not flit.last
        return heads

    def answers(self, *tags: str) -> list[int]:
        """Cycles of memory's answers to reads and writes with these tags, beat by beat."""
        answers = next(t for t in self.bench.traffic if t.name == "memory answers")
        cycles = zip(answers.cycles, answers.items, strict=True)
        answered = [(cycle, item["payload"]) for cycle, item in cycles]
        return [cycle for cycle, payload in answered if payload["tag"].name in tags and not payload.get("walk")]

    async def read(self, ctx: Any, name: str) -> int:
        """The register with this full name."""
        bus = self.dut.bus
        ctx.set(bus.read, 1)
        ctx.set(bus.read_address, self.map[name].address)
        await ctx.tick()
        ctx.set(bus.read, 0)
        assert not ctx.get(bus.read_error)
        return int(ctx.get(bus.read_data))

    async def fields(self, ctx: Any, name: str) -> dict[str, int]:
        """The register's fields."""
        return self.map[name].layout.unpack(await self.read(ctx, name))

    async def write(self, ctx: Any, name: str, **values: int) -> None:
        """Write the register from the values of its fields; has taken effect on return."""
        bus, placed = self.dut.bus, self.map[name]
        ctx.set(bus.write, 1)
        ctx.set(bus.write_address, placed.address)
        ctx.set(bus.write_data, placed.layout.pack(**values))
        await ctx.tick()
        ctx.set(bus.write, 0)
        await ctx.tick().repeat(2)

    async def open(self, ctx: Any, queue: int, *, base: int, log2: int, readback: int = 0) -> None:
        """Set a queue up and turn it on."""
        self._base[queue], self._length[queue], self._write[queue] = base, 1 << log2, 0
        self._readback[queue] = readback
        await self.write(ctx, f"QUEUE{queue}.BASE", address=base)
        await self.write(ctx, f"QUEUE{queue}.SIZE", log2=log2)
        await self.write(ctx, f"QUEUE{queue}.READBACK", address=readback)
        await self.write(ctx, f"QUEUE{queue}.CONTROL", enable=1)

    async def close(self, ctx: Any, queue: int) -> None:
        """Turn a queue off and wait until it is."""
        await self.write(ctx, f"QUEUE{queue}.CONTROL", enable=0)
        await self.state(ctx, queue, QueueState.DISABLED)

    def put(self, queue: int, packet: bytes) -> None:
        """Place a packet in the ring, without telling."""
        at = self._base[queue] + PACKET_BYTES * (self._write[queue] % self._length[queue])
        self.memory.data[at : at + PACKET_BYTES] = packet
        self._write[queue] = (self._write[queue] + 1) % (2 * self._length[queue])

    async def ring(self, ctx: Any, queue: int, index: int | None = None) -> None:
        """Ring the doorbell, by default for what was placed."""
        await self.write(ctx, f"DOORBELL{queue}.WRITE_INDEX", index=self._write[queue] if index is None else index)

    async def submit(self, ctx: Any, queue: int, *packets: bytes) -> None:
        """Place packets, waiting while the ring is full, each with its doorbell."""
        for packet in packets:
            while self.distance(ctx, queue) >= self._length[queue]:
                await ctx.tick()
            self.put(queue, packet)
            await self.ring(ctx, queue)

    def distance(self, ctx: Any, queue: int) -> int:
        """Packets between the read index and what was placed."""
        return int(self._write[queue] - ctx.get(self.dut.read_indices[queue])) % (2 * self._length[queue])

    def peek_state(self, ctx: Any, queue: int) -> int:
        """State of the queue now, without a bus access."""
        return int(ctx.get(self.dut.states[queue]))

    async def state(self, ctx: Any, queue: int, *states: QueueState) -> None:
        """Wait for one of these states."""
        while self.peek_state(ctx, queue) not in states:
            await ctx.tick()

    async def drained(self, ctx: Any, queue: int) -> None:
        """Wait until the queue has executed everything and told so in memory."""
        while self.distance(ctx, queue) or self.peek_state(ctx, queue) != QueueState.READY:
            await ctx.tick()
        at = self._readback[queue]
        while at and int.from_bytes(self.memory.data[at : at + 4], "little") != self._write[queue]:
            await ctx.tick()

    async def error(self, ctx: Any, queue: int) -> dict[str, int]:
        """Wait for the queue to stop with an error; its record."""
        await self.state(ctx, queue, QueueState.ERROR)
        await ctx.tick().repeat(3)
        record = await self.fields(ctx, f"QUEUE{queue}.ERROR")
        for name in ("pc", "block", "address"):
            record |= await self.fields(ctx, f"QUEUE{queue}.ERROR_{name.upper()}")
        return record
