"""A bench for blocks with stream ports: random idle and back-pressure, a timeout, and the stream rules checked.

    bench = StreamBench(dut, seed=1)
    bench.send(dut.i, items, idle=0.3)            # items: anything ctx.set() takes for the payload; lazy iterables too
    got = bench.receive(dut.o, count, pause=0.3)  # count: how many must come, and not one more
    bench.run()
    assert [int(x.data) for x in got.items] == ...
    assert got.cycles[-1] - got.cycles[0] == len(got.items) - 1

Probabilities are per cycle. With ``idle`` and ``pause`` at 0 both sides run at full speed. ``cycles`` holds, for
``send`` and ``receive`` alike, the clock edge (counted from 1) of each transfer. While a source idles it drives random
bits on the payload. The receiver raises when the block takes valid back or changes a payload before it was accepted.

A source that reacts is a generator: ``send(port, generator(), wait=False)``; it is asked for an item in each cycle in
which nothing else is on offer, and yields ``None`` when it has none.

Several benches of a block, one after another, share the work of elaborating and compiling it, most of the time of a
short run: ``StreamBench(compiled(Block, config))``. Each run begins at the block's reset.

Anything else that takes part is a coroutine: ``bench.add(coroutine)`` (the run ends without it) or
``bench.add(coroutine, wait=True)`` (the run lasts until it returns). Inside, use ``ctx.tick().sample(...)``.
"""

import random
from collections.abc import Awaitable, Callable, Iterable, Sized
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from amaranth.hdl import Elaboratable, Value
from amaranth.sim import Simulator

from sley.hw.testing.pins import Pins, bits_of, value_of
from sley.hw.testing.simulation.engine import QuickEngine


class BenchTimeoutError(AssertionError):
    """The block did not finish in the cycles it was given."""


class StreamError(AssertionError):
    """A stream broke the handshake rules, or delivered more than it should."""


@dataclass
class Traffic:
    """What passed one port so far: the payloads, and the clock edge of each."""

    name: str
    count: int | None
    items: list[Any] = field(default_factory=list)
    cycles: list[int] = field(default_factory=list)
    done: bool = False

    def __str__(self) -> str:
        return f"{self.name}: {len(self.items)} of {'any' if self.count is None else self.count}"


Process = Callable[[Any], Awaitable[None]]


WATCHES: list[Callable[[Any], Process | None]] = []
"""What looks at every block in a bench: called with it, each gives a part that runs beside, or None."""


def watching(block: Any) -> list[Process]:
    """The parts that ``WATCHES`` give for a block in a bench of any kind."""
    return [part for part in (watch(block) for watch in WATCHES) if part]


class Design:
    """A block to be simulated from reset, once or several times.

    Amaranth's simulator can be reset but gives no testbench back: it has places, which the parts of a bench take.
    ``WATCHES`` look at the block, and at those inside that its ``watched`` names.
    """

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self._watches = [part for block in (dut, *getattr(dut, "watched", ())) for part in watching(block)]
        self._simulator: Simulator | None = None
        self._parts: list[Process] = []
        self._places = 0

    def run(self, parts: list[Process], vcd: str | None = None) -> None:
        """Simulates until the first of the parts returns."""
        simulator, self._simulator = self._simulator, None
        if simulator is None:
            simulator, self._places = Simulator(self.dut, engine=QuickEngine), 0
            simulator.add_clock(1e-6)
        else:
            simulator.reset()
        parts = [*parts, *self._watches]
        self._parts = parts
        while self._places < len(parts):
            simulator.add_testbench(self._part(self._places), background=self._places > 0)
            self._places += 1
        with nullcontext() if vcd is None else simulator.write_vcd(vcd):
            simulator.run()
        self._simulator = simulator  # not after an exception, which leaves it in the middle of a step

    def _part(self, place: int) -> Process:
        async def part(ctx: Any) -> None:
            if place < len(self._parts):
                await self._parts[place](ctx)

        return part


@lru_cache(maxsize=8)
def compiled(component: Callable[..., Any], *args: Any, **kwargs: Any) -> Design:
    """The block with these parameters, the same one for each caller."""
    return Design(component(*args, **kwargs))


class StreamBench:
    """Runs one block with its clock, drivers on its streams, and a limit on cycles.

    Parameters: ``dut``, or what ``compiled`` gives; ``seed`` of all random choices (also free for the test as ``rng``);
    ``timeout`` in cycles; ``settle``: cycles that run on after everything was received, in which nothing more may come;
    ``vcd``: file to write waveforms to, while debugging. Members: ``cycle``: clock edges so far; ``traffic``: all ports
    in use.
    """

    def __init__(
        self,
        dut: Elaboratable | Design,
        *,
        seed: int = 0,
        timeout: int = 10_000,
        settle: int = 10,
        vcd: str | None = None,
    ) -> None:
        self._design = dut if isinstance(dut, Design) else Design(dut)
        self.dut = self._design.dut
        self.rng = random.Random(seed)
        self.timeout = timeout
        self.settle = settle
        self.vcd = vcd
        self.cycle = 0
        self.traffic: list[Traffic] = []
        self._waits: list[str] = []
        self._parts: list[Process] = [self._watch]

    def add(self, process: Process, *, wait: bool = False) -> None:
        """Add a coroutine function ``process(ctx)``; with ``wait`` the run lasts until it returns."""
        if not wait:
            self._parts.append(process)
            return
        name = getattr(process, "__qualname__", repr(process))
        self._waits.append(name)

        async def waited(ctx: Any) -> None:
            await process(ctx)
            self._waits.remove(name)

        self._parts.append(waited)

    def send(self, port: Any, items: Iterable[Any], *, idle: float = 0.0, name: str = "", wait: bool = True) -> Traffic:
        """Offer the items one after another on a stream that enters the block. The item ``None`` is an idle cycle.
        Without ``wait`` the run ends whether all were sent or not."""
        items_count = len(items) if isinstance(items, Sized) else None
        traffic = Traffic(name or f"source {port.valid.name}", items_count, done=not wait)
        self.traffic.append(traffic)
        rng = random.Random(self.rng.random())

        async def source(ctx: Any) -> None:
            raw = Value.cast(port.payload)
            offer = Pins(port.valid, raw)
            edges = aiter(ctx.tick().sample(port.ready))
            for item in items:
                while item is None or rng.random() < idle:
                    offer.set(ctx, 0, rng.getrandbits(len(raw)) if len(raw) else 0)
                    await anext(edges)
                    if item is None:
                        break
                if item is None:
                    continue
                offer.set(ctx, 1, bits_of(port.payload, item))
                while not (await anext(edges))[-1]:
                    pass
                traffic.items.append(item)
                traffic.cycles.append(self.cycle)
            ctx.set(port.valid, 0)
            traffic.done = True

        self._parts.append(source)
        return traffic

    def receive(self, port: Any, count: int | None = None, *, pause: float = 0.0, name: str = "") -> Traffic:
        """Take items from a stream that leaves the block. Without ``count`` the run does not wait for any."""
        traffic = Traffic(name or f"sink {port.valid.name}", count, done=not count)
        self.traffic.append(traffic)
        rng = random.Random(self.rng.random())

        async def sink(ctx: Any) -> None:
            raw = Value.cast(port.payload)
            held: int | None = None
            accept = Pins(port.ready)
            ready = rng.random() >= pause
            accept.set(ctx, ready)
            async for _, _, valid, bits in ctx.tick().sample(port.valid, raw):
                if held is not None and not valid:
                    raise StreamError(f"{traffic}: valid was taken back before ready, cycle {self.cycle}")
                if held is not None and bits != held:
                    raise StreamError(f"{traffic}: payload changed before ready: {held:#x}, {bits:#x}")
                held = bits if valid and not ready else None
                if valid and ready:
                    payload = value_of(port.payload, bits)
                    if count is not None and len(traffic.items) == count:
                        raise StreamError(f"{traffic}: unexpected {payload!r} in cycle {self.cycle}")
                    traffic.items.append(payload)
                    traffic.cycles.append(self.cycle)
                    traffic.done = traffic.done or len(traffic.items) == count
                ready = rng.random() >= pause
                accept.set(ctx, ready)

        self._parts.append(sink)
        return traffic

    def run(self) -> None:
        """Simulate until all is sent and received, then ``settle`` cycles more. Raises ``BenchTimeoutError``."""
        self._design.run(self._parts, self.vcd)

    async def _watch(self, ctx: Any) -> None:
        left = self.settle
        edges = aiter(ctx.tick())
        while left:
            if self._waits or not all(t.done for t in self.traffic):
                left = self.settle
            else:
                left -= 1
            await anext(edges)
            self.cycle += 1
            if self.cycle >= self.timeout:
                late = [str(t) for t in self.traffic if not t.done] + self._waits
                raise BenchTimeoutError(f"not done after {self.timeout} cycles: {'; '.join(late) or 'nothing'}")
