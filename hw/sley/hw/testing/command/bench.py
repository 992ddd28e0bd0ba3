"""The host of a command processor, with a memory and cores that only pretend to work.

host = CommandBench(preset("nano"), seed=1)

async def test(ctx):
    await host.open(ctx, 0, base=0x400, log2=2, readback=0x80)
    await host.submit(ctx, 0, encode_packet(PacketOp.NOP))
    await host.drained(ctx, 0)

host.run(test)
"""

from collections.abc import Awaitable, Callable
from typing import Any

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, QueueState, Unit
from sley.abi.network import RequestKind, Tag
from sley.abi.packets import PACKET_BYTES
from sley.abi.registers import RegisterMap
from sley.hw.testing.command.cores import BlockRun, FakeCores
from sley.hw.testing.command.system import CommandSystem
from sley.hw.testing.memory import MemoryNode
from sley.hw.testing.streams import StreamBench, compiled


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
                heads.append((cycle, RequestKind(flit.payload.head.kind).name, flit.payload.head.addr))
            inside = not flit.last
        return heads

    def answers(self, *tags: str) -> list[int]:
        """Cycles of memory's answers to reads and writes with these tags, beat by beat."""
        answers = next(t for t in self.bench.traffic if t.name == "memory answers")
        cycles = zip(answers.cycles, answers.items, strict=True)
        answered = [(cycle, item["payload"]) for cycle, item in cycles]
        return [cycle for cycle, payload in answered if Tag(payload["tag"]).name in tags and not payload.get("walk")]

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
