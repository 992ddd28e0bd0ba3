"""The memory port between random requesters and an AXI memory with random timing."""

import random
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from sley.abi.config import ChipConfig, preset
from sley.abi.instructions import Share
from sley.abi.network import AccessError, RequestKind, Tag
from sley.abi.placement import core_node
from sley.abi.timing import PORT_READS, PORT_WRITES
from sley.hw.memory.port import MemoryPort
from sley.hw.testing.axi import AxiMemory
from sley.hw.testing.coverage import Coverage
from sley.hw.testing.streams import StreamBench, compiled

NANO = preset("nano")
QUAD = NANO.replace(name="quad", cores_x=2, cores_y=2)
EDGE = preset("edge").replace(max_burst=8)
MEMORY = {"x": 1, "y": 0}
SOURCES = [(0, 0), (2, 0), (5, 7)]
CORES = [core_node(QUAD, k) for k in range(QUAD.cores)]


BURSTS = ["one beat", "some beats", "the longest burst"]
CHANNELS = ["ar", "aw", "w", "r", "b"]
COVERAGE = Coverage(
    "memory port",
    {
        "read": [(size, error) for size in BURSTS for error in ("done", "refused")],
        "write": [(size, error) for size in BURSTS for error in ("done", "refused")],
        "answer": ["data", "write", "SLVERR of a read", "SLVERR of a write", "PAGE", "PERMISSION"],
        "channel": [(name, state) for name in CHANNELS for state in ("idle", "moves", "waits")],
        "drained within": ["a write", "a message", "no packet"],
    },
)


def watch(bench: StreamBench) -> None:
    """What the channels of the bus do."""
    axi = bench.dut.axi

    async def states(ctx: Any) -> None:
        while True:
            bits = [getattr(axi, name + bit) for name in CHANNELS for bit in ("valid", "ready")]
            values = (await ctx.tick().sample(*bits))[2:]
            for name, valid, ready in zip(CHANNELS, values[::2], values[1::2], strict=True):
                COVERAGE.hit("channel", (name, ("moves" if ready else "waits") if valid else "idle"))

    bench.add(states)


def head(
    kind: RequestKind, source: tuple[int, int], tag: Tag, addr: int, beats: int, error: int = AccessError.NONE
) -> dict[str, Any]:
    src = {"x": source[0], "y": source[1]}
    fields = {"kind": kind, "tag": tag, "src": src, "beats": beats - 1, "addr": addr, "error": error}
    return {"payload": {"head": fields}, "dest": MEMORY, "last": kind == RequestKind.READ}


def beat(value: int, strobe: int, last: bool) -> dict[str, Any]:
    return {"payload": {"beat": {"data": value, "strobe": strobe}}, "dest": MEMORY, "last": last}


def shared(core: int, share: Share, addr: int, beats: int) -> dict[str, Any]:
    flit = head(RequestKind.READ, CORES[core], Tag.LOAD, addr, beats)
    flit["payload"]["head"]["share"] = share
    return flit


class Requests:
    """Random packets, and what must come of them; reads in the lower half of memory, writes in the upper.

    Some are refused before they come: reads with PAGE, writes with PERMISSION, so that their answers differ.
    """

    def __init__(self, config: ChipConfig, count: int, seed: int, size: int = 4096, faulty: range = range(0)) -> None:
        rng = random.Random(seed)
        width = config.bus_bytes
        self.before = rng.randbytes(size)
        self.after = bytearray(self.before)
        self.flits: list[dict[str, Any]] = []
        self.answers: dict[tuple[Any, ...], list[tuple[int, int, int]]] = defaultdict(list)
        self.beats = 0
        for _ in range(count):
            source, tag = (
                rng.choice(SOURCES if config.cores == 1 else [(0, 0), *CORES]),
                rng.choice([Tag.FETCH, Tag.LOAD, Tag.STORE]),
            )
            beats = rng.choice([1, 1, 2, rng.randint(1, config.max_burst), config.max_burst])
            block = config.max_burst * width
            start = rng.randrange(size // 2 // block) * block + rng.randint(0, config.max_burst - beats) * width
            kind = rng.choices([RequestKind.READ, RequestKind.WRITE, RequestKind.MESSAGE], [5, 5, 1])[0]
            refused = rng.random() < 0.3
            if kind != RequestKind.MESSAGE:
                length = {1: "one beat", config.max_burst: "the longest burst"}.get(beats, "some beats")
                COVERAGE.hit(kind.name.lower(), (length, "refused" if refused else "done"))
            if kind == RequestKind.MESSAGE:
                self.flits += [
                    head(kind, source, tag, start, beats),
                    *(beat(rng.getrandbits(8 * width), 0, k == 2) for k in range(3)),
                ]
            elif kind == RequestKind.READ and refused:
                self.flits.append(head(kind, source, tag, 1 << 31 | start, beats, AccessError.PAGE))
                self.answers[source, tag, "read"] += [(0, AccessError.PAGE, k == beats - 1) for k in range(beats)]
                self.beats += beats
            elif kind == RequestKind.WRITE and refused:
                self.flits.append(head(kind, source, tag, 1 << 31 | start, beats, AccessError.PERMISSION))
                self.flits += [
                    beat(rng.getrandbits(8 * width), -1 % (1 << width), k == beats - 1) for k in range(beats)
                ]
                self.answers[source, tag, "write"].append((0, AccessError.PERMISSION, 1))
                self.beats += 1
            elif kind == RequestKind.READ:
                self.flits.append(head(kind, source, tag, start, beats))
                for k in range(beats):
                    at = start + k * width
                    value = int.from_bytes(self.before[at : at + width], "little")
                    bad = at < faulty.stop and at + width > faulty.start
                    self.answers[source, tag, "read"].append((value, bad, k == beats - 1))
                self.beats += beats
            else:
                start += size // 2
                self.flits.append(head(kind, source, tag, start, beats))
                for k in range(beats):
                    content, strobe = rng.randbytes(width), rng.getrandbits(width)
                    self.flits.append(beat(int.from_bytes(content, "little"), strobe, k == beats - 1))
                    for lane in range(width):
                        if strobe >> lane & 1:
                            self.after[start + k * width + lane] = content[lane]
                bad = start < faulty.stop and start + beats * width > faulty.start
                self.answers[source, tag, "write"].append((0, bad, 1))
                self.beats += 1


def sorted_answers(requests: Requests, items: list[Any]) -> dict[tuple[Any, ...], list[tuple[int, int, int]]]:
    """By source and tag, reads and writes apart."""
    got: dict[tuple[Any, ...], list[tuple[int, int, int]]] = defaultdict(list)
    for x in items:
        flit = (x.payload.data, x.payload.error, x.last)
        # Random data is never 0.
        kind = "read" if x.payload.data or x.payload.error == AccessError.PAGE else "write"
        done = "data" if kind == "read" else "write"
        by_bus = f"SLVERR of a {kind}" if x.payload.error == AccessError.BUS else done
        refused = {AccessError.PAGE: "PAGE", AccessError.PERMISSION: "PERMISSION"}
        COVERAGE.hit("answer", refused.get(AccessError(x.payload.error), by_bus))
        got[(x.dest.x, x.dest.y), x.payload.tag, kind].append(flit)
    return got


FAULTY = range(2000, 2100)
"""The last reads and the first writes."""


@pytest.mark.some(4)
@pytest.mark.parametrize("config", [NANO, EDGE, QUAD], ids=lambda c: c.name)
@pytest.mark.parametrize(
    ("idle", "pause", "gap", "latency"),
    [(0.0, 0.0, 0.0, (1, 1)), (0.2, 0.2, 0.3, (1, 200)), (0.0, 0.5, 0.6, (1, 20)), (0.6, 0.0, 0.1, (30, 30))],
)
def test_random(config: ChipConfig, idle: float, pause: float, gap: float, latency: tuple[int, int]) -> None:
    requests = Requests(config, 60, seed=int(10 * gap), faulty=FAULTY)
    bench = StreamBench(compiled(MemoryPort, config), seed=int(10 * gap), timeout=20_000)
    bench.send(bench.dut.request_o, requests.flits, idle=idle)
    memory = AxiMemory(bench, config, bench.dut.axi, gap=gap, latency=latency, faulty=FAULTY)
    memory.data[:] = requests.before
    got = bench.receive(bench.dut.response_i, requests.beats, pause=pause)
    watch(bench)
    bench.run()
    assert sorted_answers(requests, got.items) == requests.answers
    assert memory.data == requests.after
    assert memory.quiet


def test_write_error() -> None:
    bench = StreamBench(compiled(MemoryPort, NANO))
    flits = []
    for addr in (0, 64, 8192):
        flits += [head(RequestKind.WRITE, (2, 0), Tag.STORE, addr, 2), beat(1, 15, False), beat(2, 15, True)]
    bench.send(bench.dut.request_o, flits)
    AxiMemory(bench, NANO, bench.dut.axi, faulty=range(68, 69))
    got = bench.receive(bench.dut.response_i, 3)
    bench.run()
    assert [x.payload.error for x in got.items] == [0, 1, 1]


@pytest.mark.parametrize("beats", [1, 4, 16])
def test_read_throughput(beats: int) -> None:
    """One beat per cycle, 64 single-beat reads in flight; 3 cycles more than the memory takes."""
    bench = StreamBench(compiled(MemoryPort, NANO))
    count = 256 // beats
    flits = [head(RequestKind.READ, (2, 0), Tag.LOAD, 64 * (k % 32), beats) for k in range(count)]
    sent = bench.send(bench.dut.request_o, flits)
    AxiMemory(bench, NANO, bench.dut.axi, latency=(64, 64))
    got = bench.receive(bench.dut.response_i, 256)
    bench.run()
    assert got.cycles == list(range(sent.cycles[0] + 1 + 64 + 2, sent.cycles[0] + 1 + 64 + 2 + 256))


@pytest.mark.parametrize("beats", [1, 4, 16])
def test_write_throughput(beats: int) -> None:
    """A head and its beats without a gap."""
    bench = StreamBench(compiled(MemoryPort, NANO))
    count = 128 // beats
    flits = []
    for k in range(count):
        flits.append(head(RequestKind.WRITE, (2, 0), Tag.STORE, 64 * (k % 32), beats))
        flits += [beat(k, 15, j == beats - 1) for j in range(beats)]
    sent = bench.send(bench.dut.request_o, flits)
    AxiMemory(bench, NANO, bench.dut.axi, latency=(32, 32))
    bench.receive(bench.dut.response_i, count)
    bench.run()
    assert sent.cycles == list(range(1, len(flits) + 1))


@pytest.mark.parametrize(("config", "source"), [(NANO, SOURCES[0]), (QUAD, CORES[0])], ids=["nano", "combiner"])
def test_more_than_may_be_in_flight(config: ChipConfig, source: tuple[int, int]) -> None:
    """Memory takes its time: as many reads and writes as are remembered go out, and the others wait."""
    bench = StreamBench(compiled(MemoryPort, config))
    count = PORT_READS + 20
    flits = [head(RequestKind.READ, source, Tag.LOAD, 4 * k, 1) for k in range(count)]
    for k in range(PORT_WRITES + 20):
        flits += [head(RequestKind.WRITE, source, Tag.STORE, 2048 + 4 * k, 1), beat(k + 1, 15, True)]
    bench.send(bench.dut.request_o, flits)
    memory = AxiMemory(bench, config, bench.dut.axi, latency=(300, 300))
    memory.data[:2048] = random.Random(2).randbytes(2048)
    got = bench.receive(bench.dut.response_i, count + PORT_WRITES + 20)
    bench.run()
    data = [int.from_bytes(memory.data[4 * k : 4 * k + 4], "little") for k in range(count)]
    assert [x.payload.data for x in got.items if x.payload.tag == Tag.LOAD] == data
    assert [burst.addr for burst in memory.reads] == [4 * k for k in range(count)]
    assert memory.data[2048 : 2048 + 4 * (PORT_WRITES + 20) : 4] == bytes(range(1, PORT_WRITES + 21))
    asked = memory.channel("ar").cycles
    assert asked[PORT_READS - 1] < 300 < asked[PORT_READS + 4]


@pytest.mark.parametrize("config", [NANO, QUAD], ids=lambda c: c.name)
@pytest.mark.parametrize("seed", range(6))
def test_drain(seed: int, config: ChipConfig) -> None:
    """Drained in the middle of traffic: no burst is left open, nothing is sent, and new traffic finds a clean port."""
    requests = Requests(config, 120, seed)
    later = Requests(config, 30, seed + 100)
    bench = StreamBench(compiled(MemoryPort, config), seed=seed, timeout=20_000)
    dut = bench.dut
    memory = AxiMemory(bench, config, dut.axi, gap=0.3, latency=(1, 60))
    memory.data[:] = requests.before
    answers: list[Any] = []
    if config.cores > 1:  # a shared read that waits for ever
        requests.flits.insert(0, shared(0, Share.ALL, 0, 4))

    async def traffic(ctx: Any) -> None:
        sent = requests.flits[: bench.rng.randint(20, len(requests.flits) - 1)]
        begun = next((f for f in reversed(sent) if "head" in f["payload"]), None)
        inside = not sent[-1]["last"] and begun is not None
        kind = begun["payload"]["head"]["kind"] if begun is not None and inside else None
        COVERAGE.hit(
            "drained within", {RequestKind.WRITE: "a write", RequestKind.MESSAGE: "a message"}.get(kind, "no packet")
        )
        for flit in sent:
            ctx.set(dut.request_o.valid, 1)
            ctx.set(dut.request_o.payload, flit)
            while not (await ctx.tick().sample(dut.request_o.ready))[-1]:
                pass
        # The sender vanishes, perhaps within a packet; another request waits in the router.
        ctx.set(dut.drain, 1)
        ctx.set(dut.request_o.payload, head(RequestKind.READ, (2, 0), Tag.LOAD, 0, 1))
        drained = False
        while not drained:
            _, _, drained, ready = await ctx.tick().sample(dut.drained, dut.request_o.ready)
            assert not ready
        assert memory.quiet
        taken = len(memory.reads), len(memory.writes)
        for _ in range(30):
            _, _, valid, response = await ctx.tick().sample(
                dut.axi.arvalid | dut.axi.awvalid | dut.axi.wvalid, dut.response_i.valid
            )
            assert not valid
            assert not response
        assert taken == (len(memory.reads), len(memory.writes))
        for k, (old, new, now) in enumerate(zip(requests.before, requests.after, memory.data, strict=True)):
            assert now in (old, new) or k >= 2048  # overwritten twice, perhaps
        memory.data[:] = later.before
        ctx.set(dut.request_o.valid, 0)
        ctx.set(dut.drain, 0)
        for flit in later.flits:
            ctx.set(dut.request_o.valid, 1)
            ctx.set(dut.request_o.payload, flit)
            while not (await ctx.tick().sample(dut.request_o.ready))[-1]:
                pass
        ctx.set(dut.request_o.valid, 0)

    async def responses(ctx: Any) -> None:
        after = False
        while len(answers) < later.beats:
            ready = bench.rng.random() < 0.7
            ctx.set(dut.response_i.ready, ready)
            _, _, drained, valid, payload = await ctx.tick().sample(
                dut.drained, dut.response_i.valid, dut.response_i.payload
            )
            after = after or drained
            if after and valid and ready:
                answers.append(payload)

    bench.add(traffic, wait=True)
    bench.add(responses, wait=True)
    bench.run()
    assert sorted_answers(later, answers) == later.answers
    assert memory.data == later.after


def test_shared_reads() -> None:
    """One burst on the bus and one packet to all who asked, in the order of each of them."""
    bench = StreamBench(compiled(MemoryPort, QUAD))
    asked = [(Share.ROW, 0, 4), (Share.COLUMN, 64, 16), (Share.ALL, 128, 1), (Share.NONE, 256, 3)]
    flits = []
    for core in range(4):
        y, x = divmod(core, 2)
        own = {Share.ROW: y, Share.COLUMN: x, Share.ALL: 0, Share.NONE: core}
        flits += [shared(core, share, addr + 512 * own[share], beats) for share, addr, beats in asked]
    bench.send(bench.dut.request_o, flits)
    memory = AxiMemory(bench, QUAD, bench.dut.axi, latency=(5, 40))
    memory.data[:] = random.Random(1).randbytes(len(memory.data))
    got = bench.receive(bench.dut.response_i, 2 * 4 + 2 * 16 + 1 + 4 * 3, pause=0.3)
    bench.run()
    assert len(memory.reads) == 2 + 2 + 1 + 4
    for core, (x, y) in enumerate(CORES):
        mine = [i for i in got.items if i.dest.x <= x <= i.far.x and i.dest.y <= y <= i.far.y]
        own = {Share.ROW: core // 2, Share.COLUMN: core % 2, Share.ALL: 0, Share.NONE: core}
        expected = []
        for share, addr, beats in asked:
            start = addr + 512 * own[share]
            for k in range(beats):
                data = int.from_bytes(memory.data[start + 4 * k : start + 4 * k + 4], "little")
                expected.append((data, Tag.LOAD, 0, k == beats - 1))
        assert [(i.payload.data, i.payload.tag, i.payload.error, i.last) for i in mine] == expected


def test_lost_reads() -> None:
    """A shared read that nobody joins is answered with as many errors as it has beats, between others, unread."""
    bench = StreamBench(compiled(MemoryPort, QUAD))
    flits = [
        shared(0, Share.NONE, 0, 2),
        shared(0, Share.ROW, 64, 5),
        head(RequestKind.READ, (0, 0), Tag.FETCH, 128, 3),
        shared(0, Share.NONE, 192, 1),
    ]
    bench.send(bench.dut.request_o, flits)
    memory = AxiMemory(bench, QUAD, bench.dut.axi, latency=(20, 20))
    memory.data[:] = bytes(range(256)) * (len(memory.data) // 256)

    async def end_the_others(ctx: Any) -> None:
        ctx.set(bench.dut.ended, 0b1110)

    bench.add(end_the_others)
    got = bench.receive(bench.dut.response_i, 2 + 5 + 3 + 1, pause=0.4)
    bench.run()
    assert [burst.addr for burst in memory.reads] == [128, 0, 192]  # the fetch goes past the combiner
    loads = [(i.payload.error, i.last) for i in got.items if i.payload.tag == Tag.LOAD]
    assert loads == [(0, 0), (0, 1), (1, 0), (1, 0), (1, 0), (1, 0), (1, 1), (0, 1)]
    assert all((i.dest.x, i.dest.y) == (i.far.x, i.far.y) for i in got.items)


def test_reads_past_the_combiner_take_turns() -> None:
    """A stream of fetches does not hold up the loads, nor they it."""
    bench = StreamBench(compiled(MemoryPort, QUAD))
    loads = [shared(0, Share.NONE, 64 * k, 1) for k in range(16)]
    fetches = [head(RequestKind.READ, (0, 0), Tag.FETCH, 1024 + 64 * k, 1) for k in range(40)]
    bench.send(bench.dut.request_o, loads + fetches)
    memory = AxiMemory(bench, QUAD, bench.dut.axi, gap=0.8, latency=(1, 1))
    bench.receive(bench.dut.response_i, 56)
    bench.run()
    kinds = "".join("f" if burst.addr >= 1024 else "l" for burst in memory.reads)
    assert kinds.count("l") == 16
    assert "ff" not in kinds[: kinds.rindex("l")].lstrip("l")


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)
