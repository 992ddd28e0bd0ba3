"""Translators and the walker in front of a memory with random timing, against the page tables themselves."""

import random
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from amaranth import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig, preset
from sley.abi.network import AccessError, RequestKind, Tag
from sley.abi.pages import ENTRY_BYTES, LARGE_PAGE_BYTES, PAGE_BYTES, AddressMode, Permission, table_index
from sley.abi.placement import memory_node
from sley.hw.core.core import READ_WEIGHTS
from sley.hw.mmu.gateway import MemoryGateway
from sley.hw.mmu.port import TranslatedPort
from sley.hw.mmu.tlb import Invalidation
from sley.hw.noc.messages import request_flit, response_payload
from sley.hw.testing.axi import AxiMemory
from sley.hw.testing.coverage import Coverage
from sley.hw.testing.page_tables import Tables
from sley.hw.testing.streams import StreamBench, compiled

NANO = preset("nano")
EDGE = preset("edge").replace(max_burst=8, tlb_entries=2)
WIDE = preset("base").replace(array=64, vector_lanes=64, max_burst=4, tlb_entries=2)
MEMORY = dict(zip("xy", memory_node(NANO), strict=True))
ME = {"x": 3, "y": 0}
TAGS = [Tag.FETCH, Tag.LOAD, Tag.STORE]
NEEDS = {Tag.FETCH: Permission.EXECUTE, Tag.LOAD: Permission.READ, Tag.STORE: Permission.WRITE}
ERRORS = {"": AccessError.NONE, "page": AccessError.PAGE, "permission": AccessError.PERMISSION}
COVERAGE = Coverage(
    "translation",
    {
        "access": [(tag.name, kind or "mapped") for tag in TAGS for kind in ERRORS],
        "context": [*(mode.name for mode in AddressMode), "none"],
        "page": ["small", "large"],
        "burst": ["one beat", "some beats", "the longest"],
    },
)
DATA, WRITTEN, LARGE, SIZE = 0x10_0000, 0x18_0000, LARGE_PAGE_BYTES, 3 * LARGE_PAGE_BYTES
NOWHERE = 0xFFFFF000
"""Page of a table that memory does not have."""


class Node(wiring.Component):
    """A port with three requesters, and the gateway right behind it."""

    def __init__(self, config: ChipConfig) -> None:
        self.config = config
        gateway = MemoryGateway(config)
        members = gateway.signature.members
        super().__init__(
            {
                "i": In(stream.Signature(request_flit(config))).array(len(TAGS)),
                "o": Out(stream.Signature(response_payload(config))).array(len(TAGS)),
                "invalidate": In(Invalidation),
                **{name: members[name] for name in ("axi", "roots", "drain", "drained")},
            }
        )
        self.gateway = gateway
        self.port = TranslatedPort(config, TAGS, READ_WEIGHTS)
        self.watched = (self.port, gateway)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.gateway = gateway = self.gateway
        m.submodules.port = port = self.port
        for k in range(len(TAGS)):
            wiring.connect(m, wiring.flipped(self.i[k]), port.request[k])
            wiring.connect(m, port.response[k], wiring.flipped(self.o[k]))
        m.d.comb += port.invalidate.eq(self.invalidate)
        wiring.connect(m, port.request_i, gateway.request_o)
        wiring.connect(m, gateway.response_i, port.response_o)
        wiring.connect(m, gateway.axi, wiring.flipped(self.axi))
        for k in range(self.config.contexts):
            wiring.connect(m, wiring.flipped(self.roots[k]), gateway.roots[k])
        m.d.comb += [gateway.drain.eq(self.drain), self.drained.eq(gateway.drained)]
        return m


def random_tables(rng: random.Random, memory: bytearray, contexts: int) -> tuple[Tables, list[int]]:
    """Tables of all kinds of entries, and addresses of pages among which to choose. Nothing that is read is written."""
    tables = Tables(rng, memory, contexts, DATA)
    if not any(mode is AddressMode.PAGED for mode, _ in tables.roots):
        tables.roots[0] = (AddressMode.PAGED, tables._table())
    pages = [rng.randrange(1 << 20) * PAGE_BYTES for _ in range(6)]
    pages += [pages[0] ^ PAGE_BYTES, pages[0] ^ LARGE_PAGE_BYTES]  # neighbours in both tables
    for context, (mode, root) in enumerate(tables.roots):
        if mode is not AddressMode.PAGED:
            continue
        for address in pages:
            upper = address // LARGE_PAGE_BYTES
            kind = rng.random()
            if tables.entry(root, upper)["valid"] and kind < 0.5:
                kind = 0.6
            if kind < 0.1:
                continue
            if kind < 0.2:
                tables.raw(root, upper, rng.choice([1 << 4 | 3, 3 | 1 << 12, NOWHERE | 1, 1 << 11 | 1]))
            elif kind < 0.35:
                tables.map_large(context, address, 2 * LARGE // PAGE_BYTES, rng.choice([1, 4, 5]))
            elif not any(tables.entry(root, upper)[right] for right in ("read", "write", "execute")):
                write = rng.random() < 0.5
                page = (WRITTEN if write else DATA) // PAGE_BYTES + rng.randrange(16)
                if tables.entry(root, upper)["page"] * PAGE_BYTES < DATA:
                    rights = rng.choice([2, 2, 2, 0] if write else [0, 1, 4, 5])
                    tables.map_page(context, address, page, rights)
    return tables, pages


class Traffic:
    """Random requests of each requester and what must come of them."""

    def __init__(self, config: ChipConfig, tables: Tables, pages: list[int], count: int, rng: random.Random) -> None:
        width = config.bus_bytes
        self.flits: dict[Tag, list[Any]] = defaultdict(list)
        self.answers: dict[Tag, list[tuple[int, int]]] = defaultdict(list)
        self.after = bytearray(tables.memory)
        self.kinds: dict[str, int] = defaultdict(int)
        for tag in TAGS:
            for _ in range(count):
                context = rng.randrange(config.contexts + (config.contexts < 16))
                beats = rng.choice([1, rng.randint(1, config.max_burst)])
                block = config.max_burst * width
                offset = rng.randrange(PAGE_BYTES // block) * block + rng.randint(0, config.max_burst - beats) * width
                page = rng.choice(pages)
                if context < config.contexts and tables.roots[context][0] is AddressMode.PHYSICAL:
                    page = (WRITTEN if tag is Tag.STORE else DATA) + rng.randrange(16) * PAGE_BYTES
                kind, at = tables.translate(context, page + offset, NEEDS[tag], config.addr_bits)
                self.kinds[kind] += 1
                mode, root = tables.roots[context] if context < config.contexts else (None, 0)
                COVERAGE.hit("access", (tag.name, kind or "mapped"))
                COVERAGE.hit("context", "none" if mode is None else mode.name)
                COVERAGE.hit("burst", {1: "one beat", config.max_burst: "the longest"}.get(beats, "some beats"))
                if mode is AddressMode.PAGED and not kind:
                    upper = tables.entry(root, page // LARGE_PAGE_BYTES)
                    leaf = any(upper[right] for right in ("read", "write", "execute"))
                    COVERAGE.hit("page", "large" if leaf else "small")
                head = {
                    "kind": RequestKind.WRITE if tag is Tag.STORE else RequestKind.READ,
                    "tag": tag,
                    "src": ME,
                    "beats": beats - 1,
                    "addr": page + offset,
                    "context": context,
                    "execute": tag is Tag.FETCH,
                }
                last = tag is not Tag.STORE
                self.flits[tag].append({"payload": {"head": head}, "dest": MEMORY, "last": last})
                for k in range(beats):
                    if tag is not Tag.STORE:
                        value = int.from_bytes(tables.memory[at + k * width : at + (k + 1) * width], "little")
                        self.answers[tag].append((0 if kind else value, ERRORS[kind]))
                        continue
                    content, strobe = rng.randbytes(width), rng.getrandbits(width)
                    beat = {"data": int.from_bytes(content, "little"), "strobe": strobe}
                    self.flits[tag].append({"payload": {"beat": beat}, "dest": MEMORY, "last": k == beats - 1})
                    for lane in range(width):
                        if not kind and strobe >> lane & 1:
                            self.after[at + k * width + lane] = content[lane]
                if tag is Tag.STORE:
                    self.answers[tag].append((0, ERRORS[kind]))


def set_roots(bench: StreamBench, dut: Node, tables: Tables) -> None:
    async def process(ctx: Any) -> None:
        for k, (mode, page) in enumerate(tables.roots):
            ctx.set(dut.roots[k].root, {"mode": mode, "page": page})
        await ctx.tick()

    bench.add(process)


@pytest.mark.parametrize(
    "config", [pytest.param(NANO, id="nano"), pytest.param(EDGE, id="edge", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    ("idle", "pause", "gap", "latency"), [(0.0, 0.0, 0.0, (1, 1)), (0.2, 0.3, 0.3, (1, 60)), (0.0, 0.5, 0.0, (30, 30))]
)
def test_random(config: ChipConfig, idle: float, pause: float, gap: float, latency: tuple[int, int]) -> None:
    rng = random.Random(f"{config.name}{idle}{latency}")
    memory = bytearray(rng.randbytes(SIZE))
    memory[:DATA] = bytes(DATA)
    tables, pages = random_tables(rng, memory, config.contexts)
    traffic = Traffic(config, tables, pages, 30, rng)
    assert len(traffic.kinds) == 3, "mapped, not mapped and not permitted must all occur"
    bench = StreamBench(compiled(Node, config), seed=1, timeout=60_000)
    dut = bench.dut
    set_roots(bench, dut, tables)
    axi = AxiMemory(bench, config, dut.axi, size=SIZE, latency=latency, gap=gap)
    axi.data[:] = memory
    got = {}
    for k, tag in enumerate(TAGS):
        bench.send(dut.i[k], [None, None, *traffic.flits[tag]], idle=idle)
        got[tag] = bench.receive(dut.o[k], len(traffic.answers[tag]), pause=pause if tag is Tag.FETCH else 0.0)
    bench.run()
    for tag in TAGS:
        assert [(x.data if tag is not Tag.STORE else 0, x.error) for x in got[tag].items] == traffic.answers[tag], tag
    assert axi.data == traffic.after
    # Nothing but the tables, one of which is not in memory, and what they map.
    assert all(WRITTEN <= burst.addr < WRITTEN + 16 * PAGE_BYTES for burst in axi.writes)
    assert all(burst.addr < SIZE or burst.addr >= NOWHERE for burst in axi.reads)


def test_random_on_a_wide_bus() -> None:
    """Entries are anywhere in a beat of 128 bytes."""
    test_random(WIDE, 0.2, 0.3, 0.3, (1, 60))


def stream_of_reads(config: ChipConfig, addresses: list[int], context: int = 0) -> list[dict[str, Any]]:
    return [
        {
            "payload": {"head": {"kind": RequestKind.READ, "tag": Tag.LOAD, "src": ME, "addr": a, "context": context}},
            "dest": MEMORY,
            "last": 1,
        }
        for a in addresses
    ]


@pytest.mark.parametrize("large", [False, True])
def test_cost_of_a_miss_and_of_a_hit(large: bool) -> None:
    latency, base = 20, 1 << 24
    memory = bytearray(SIZE)
    tables = Tables(random.Random(0), memory, NANO.contexts, DATA)
    tables.roots[1] = (AddressMode.PAGED, tables._table())
    if large:
        tables.map_large(1, base, LARGE // PAGE_BYTES, 1)
    else:
        tables.map_page(1, base, DATA // PAGE_BYTES, 1)
    bench = StreamBench(compiled(Node, NANO))
    dut = bench.dut
    set_roots(bench, dut, tables)
    AxiMemory(bench, NANO, dut.axi, size=SIZE, latency=(latency, latency)).data[:] = memory
    alone = [*stream_of_reads(NANO, [base], 1), *[None] * 200]
    reads = stream_of_reads(NANO, [base + 4 * k for k in range(100)], 1)
    sent = bench.send(dut.i[1], [None, *alone, *alone, *reads])
    got = bench.receive(dut.o[1], 102)
    bench.run()
    miss, hit = (got.cycles[k] - sent.cycles[k] for k in range(2))
    assert miss - hit == MISS + (1 if large else 2) * (TABLE + latency)
    assert got.cycles[-1] - got.cycles[2] == 99, "hits cost no cycle"


def test_as_many_pages_as_there_are_entries_miss_once() -> None:
    """Each page is walked to once, then it is known; one page more, in a circle, and none is known any more."""
    base, entries = 1 << 24, NANO.tlb_entries
    memory = bytearray(SIZE)
    tables = Tables(random.Random(0), memory, NANO.contexts, DATA)
    tables.roots[1] = (AddressMode.PAGED, tables._table())
    for k in range(entries + 1):
        tables.map_page(1, base + k * PAGE_BYTES, DATA // PAGE_BYTES + k, 1)
    for pages, walks in ((entries, entries), (entries + 1, 3 * (entries + 1))):
        bench = StreamBench(compiled(Node, NANO))
        set_roots(bench, bench.dut, tables)
        axi = AxiMemory(bench, NANO, bench.dut.axi, size=SIZE, latency=(2, 2))
        axi.data[:] = memory
        addresses = [base + k * PAGE_BYTES for k in range(pages)] * 3
        bench.send(bench.dut.i[1], [None, *stream_of_reads(NANO, addresses, 1)])
        bench.receive(bench.dut.o[1], len(addresses))
        bench.run()
        assert len(axi.reads) == len(addresses) + 2 * walks


def test_an_entry_that_cannot_be_read_maps_nothing() -> None:
    """Whatever data come with the error: here those of an entry that maps the page."""
    base = 1 << 24
    memory = bytearray(SIZE)
    tables = Tables(random.Random(0), memory, NANO.contexts, DATA)
    tables.roots[1] = (AddressMode.PAGED, tables._table())
    tables.map_page(1, base, DATA // PAGE_BYTES, 1)
    upper, lower = table_index(base)
    page = tables.entry(tables.roots[1][1], upper)["page"]
    for table, index in ((tables.roots[1][1], upper), (page, lower)):
        at = table * PAGE_BYTES + index * ENTRY_BYTES
        bench = StreamBench(compiled(Node, NANO))
        set_roots(bench, bench.dut, tables)
        AxiMemory(bench, NANO, bench.dut.axi, size=SIZE, faulty=range(at, at + ENTRY_BYTES)).data[:] = memory
        bench.send(bench.dut.i[1], [None, *stream_of_reads(NANO, [base], 1)])
        got = bench.receive(bench.dut.o[1], 1)
        bench.run()
        assert [item.error for item in got.items] == [AccessError.PAGE]


WAITING = 3
"""Requests that were sent and may not be translated yet."""
MISS, TABLE = 7, 6
"""Cycles that a miss adds without mesh, besides the memory's latency: in all, and for each table."""


def test_invalidation_is_seen_by_every_later_access() -> None:
    """A page moves to and fro under random reads: what is sent after an invalidation goes to the new place."""
    rng = random.Random(5)
    base = 1 << 24
    memory = bytearray(SIZE)
    tables = Tables(rng, memory, NANO.contexts, DATA)
    tables.roots[1] = (AddressMode.PAGED, tables._table())
    for k in range(16):
        memory[DATA + k * PAGE_BYTES] = k + 1
    tables.map_page(1, base, DATA // PAGE_BYTES, 1)
    table = tables.entry(tables.roots[1][1], base // LARGE_PAGE_BYTES)["page"]
    bench = StreamBench(compiled(Node, NANO), timeout=40_000)
    dut = bench.dut
    set_roots(bench, dut, tables)
    axi = AxiMemory(bench, NANO, dut.axi, size=SIZE, latency=(1, 30), gap=0.2)
    axi.data[:] = memory
    count = 700
    sent = bench.send(dut.i[1], [None, *stream_of_reads(NANO, [base] * count, 1)], idle=0.3)
    got = bench.receive(dut.o[1], count)
    steps = [(0, 1)]  # first request sent after it has taken effect, value

    async def moves(ctx: Any) -> None:
        while len(sent.items) < count:
            for _ in range(rng.choice([rng.randint(2, 50), rng.randint(20, 400)])):  # also within a walk
                await ctx.tick()
            place = rng.randrange(16)
            tables.put(table, 0, valid=1, read=1, page=DATA // PAGE_BYTES + place)
            axi.data[:DATA] = memory[:DATA]
            ctx.set(dut.invalidate, {"valid": 1, "context": 1})
            await ctx.tick()
            ctx.set(dut.invalidate, {"valid": 0, "context": 0})
            await ctx.tick()
            steps.append((len(sent.items) - 1, place + 1))

    bench.add(moves)
    bench.run()
    assert len(steps) > 4
    values = [x.data for x in got.items]
    for (first, value), (after, following) in zip(steps, [*steps[1:], (count + 1, 0)], strict=True):
        if after - first > 2:
            assert set(values[first + 1 : after - 1]) == {value}
        # What waits in front of the translator goes to where the page is then, even after several moves.
        allowed = {value, following, *(later for at, later in steps if first < at <= after + WAITING)}
        assert set(values[max(first + 1, 0) : after]) <= allowed


def test_invalidation_of_another_context_costs_nothing() -> None:
    base = 1 << 24
    memory = bytearray(SIZE)
    tables = Tables(random.Random(0), memory, NANO.contexts, DATA)
    tables.roots[1] = (AddressMode.PAGED, tables._table())
    tables.map_page(1, base, DATA // PAGE_BYTES, 1)
    bench = StreamBench(compiled(Node, NANO))
    dut = bench.dut
    set_roots(bench, dut, tables)
    axi = AxiMemory(bench, NANO, dut.axi, size=SIZE, latency=(20, 20))
    axi.data[:] = memory
    bench.send(dut.i[1], [None, *stream_of_reads(NANO, [base] * 300, 1)])
    got = bench.receive(dut.o[1], 300)

    async def invalidate(ctx: Any) -> None:
        await ctx.tick().repeat(150)
        ctx.set(dut.invalidate, {"valid": 1, "context": 2})
        await ctx.tick()
        ctx.set(dut.invalidate, {"valid": 0, "context": 2})

    bench.add(invalidate)
    bench.run()
    assert got.cycles[-1] - got.cycles[0] == 299
    assert len(axi.reads) == 302


def test_drain_forgets_walks() -> None:
    """A reset in the middle of walks: afterwards everything works as after a reset."""
    base = 1 << 24
    memory = bytearray(SIZE)
    tables = Tables(random.Random(0), memory, NANO.contexts, DATA)
    tables.roots[1] = (AddressMode.PAGED, tables._table())
    bench = StreamBench(compiled(MemoryGateway, NANO))
    dut = bench.dut
    axi = AxiMemory(bench, NANO, dut.axi, size=SIZE, latency=(25, 25))
    axi.data[:] = memory
    walk = {"kind": RequestKind.WALK, "tag": Tag.LOAD, "src": ME, "addr": base, "context": 1}
    flit = {"payload": {"head": walk}, "dest": MEMORY, "last": 1}
    answers = []

    async def process(ctx: Any) -> None:
        ctx.set(dut.roots[1].root, {"mode": AddressMode.PAGED, "page": tables.roots[1][1]})
        ctx.set(dut.response_i.ready, 1)
        for wait in range(1, 45, 3):
            ctx.set(dut.request_o.payload, flit)
            ctx.set(dut.request_o.valid, 1)
            await ctx.tick()
            ctx.set(dut.request_o.valid, 0)
            await ctx.tick().repeat(wait)
            ctx.set(dut.drain, 1)
            await ctx.tick().until(dut.drained)
            ctx.set(dut.drain, 0)
            ctx.set(dut.request_o.valid, 1)
            await ctx.tick()
            ctx.set(dut.request_o.valid, 0)
            seen = 0
            for _ in range(60):
                _, _, valid = await ctx.tick().sample(dut.response_i.valid)
                seen += valid
            answers.append(seen)

    bench.add(process, wait=True)
    bench.run()
    assert answers == [1] * 15


READABLE = 3
"""valid and read."""
LOWER = DATA // PAGE_BYTES - 1
"""Page of a lower table."""


@pytest.mark.parametrize(
    ("upper", "lower", "valid"),
    [
        (LOWER << 12 | 1, 1 << 12 | READABLE, True),
        (LOWER << 12 | 1, 1 << 12 | READABLE | 1 << 4, False),
        (LOWER << 12 | 1, 1 << 12 | READABLE | 1 << 11, False),
        (LOWER << 12 | 1, 1 << 12 | READABLE & ~1, False),
        (LOWER << 12 | 1 | 1 << 7, 1 << 12 | READABLE, False),
        (LOWER << 12, 1 << 12 | READABLE, False),
        (1 << 22 | READABLE, 0, True),
        (1 << 22 | READABLE | 1 << 4, 0, False),
        (1 << 22 | 1 << 12 | READABLE, 0, False),
        (NOWHERE | 1, 0, False),
    ],
)
def test_entries_that_mean_nothing(upper: int, lower: int, valid: bool) -> None:
    """Each reserved bit, alignment and valid bit counts, in both tables."""
    memory = bytearray(SIZE)
    memory[PAGE_BYTES : PAGE_BYTES + 4] = upper.to_bytes(4, "little")
    memory[LOWER * PAGE_BYTES : LOWER * PAGE_BYTES + 4] = lower.to_bytes(4, "little")
    bench = StreamBench(compiled(MemoryGateway, NANO))
    dut = bench.dut
    AxiMemory(bench, NANO, dut.axi, size=SIZE).data[:] = memory
    walk = {"kind": RequestKind.WALK, "tag": Tag.LOAD, "src": ME, "addr": 0, "context": 1}

    async def root(ctx: Any) -> None:
        ctx.set(dut.roots[1].root, {"mode": AddressMode.PAGED, "page": 1})

    bench.add(root)
    bench.send(dut.request_o, [None, {"payload": {"head": walk}, "dest": MEMORY, "last": 1}])
    got = bench.receive(dut.response_i, 1)
    bench.run()
    assert bool(got.items[0].payload.data & 1) == valid


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)
