"""The memory gateway: what meets in it, and what comes behind a drain that cut a packet anywhere."""

import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from sley.abi.config import preset
from sley.abi.network import AccessError, RequestKind, Tag
from sley.abi.pages import PAGE_BYTES, AddressMode
from sley.abi.placement import memory_node
from sley.hw.mmu.gateway import MemoryGateway
from sley.hw.noc.messages import walk_answer
from sley.hw.testing.axi import AxiMemory
from sley.hw.testing.coverage import Coverage
from sley.hw.testing.meetings import count_meetings, every_pair, meetings
from sley.hw.testing.page_tables import Tables
from sley.hw.testing.streams import StreamBench, compiled

NANO = preset("nano")
MEMORY = dict(zip("xy", memory_node(NANO), strict=True))
SIZE, DATA, WRITTEN = 0x10000, 0x8000, 0xC000
MAPPED, ABSENT = 0x12345000, 0x7000
BEATS = 3
CUTS = {
    "read": ["end"],
    "write": ["head", "beat", "end"],
    "message": ["head", "beat", "end"],
    "walk": ["end"],
    "refused read": ["end"],
    "refused write": ["head", "beat", "end"],
}
"""Behind what of a packet of each kind a drain may come."""
KINDS = list(CUTS)
COVERAGE = Coverage(
    "memory gateway",
    {
        # A message is gone with its last flit.
        "meets": meetings(KINDS, ("message",)),
        "behind a drain": [(kind, cut, behind) for kind, cuts in CUTS.items() for cut in cuts for behind in KINDS],
    },
)
Answer = tuple[int, int, int]
"""Data (of a write: 0), error, whether it is the last of its packet."""


@dataclass
class Packet:
    flits: list[dict[str, Any]]
    tag: Tag | None
    answers: list[Answer]


class Traffic:
    """Packets of each kind on a memory with a page table; reads and writes never meet in one place."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.memory = bytearray(self.rng.randbytes(SIZE))
        self.memory[: 8 * PAGE_BYTES] = bytes(8 * PAGE_BYTES)
        self.tables = Tables(self.rng, self.memory, NANO.contexts, DATA)
        self.tables.roots[1] = (AddressMode.PAGED, self.tables._table())
        self.tables.map_page(1, MAPPED, 5, 0b011)
        self.after = bytearray(self.memory)

    def packet(self, kind: str) -> Packet:
        rng, width = self.rng, NANO.bus_bytes
        at = DATA + rng.randrange(64) * width * NANO.max_burst
        refused, what = kind.startswith("refused"), kind.split()[-1]
        fields = {"src": {"x": 2, "y": 0}, "addr": at, "beats": BEATS - 1, "context": 1}
        if what == "read":
            fields |= {"kind": RequestKind.READ, "tag": Tag.LOAD, "error": AccessError.PAGE if refused else 0}
            pieces = [self.memory[at + width * k : at + width * (k + 1)] for k in range(BEATS)]
            data = [0 if refused else int.from_bytes(piece, "little") for piece in pieces]
            answers = [(value, fields["error"], k == BEATS - 1) for k, value in enumerate(data)]
            return Packet([self._head(1, **fields)], Tag.LOAD, answers)
        if what == "walk":
            # A context that is off is answered at once: with tables alone, walks would wait for each other most times.
            page, context, mapped = rng.choice([(MAPPED, 1, True), (ABSENT, 1, False), *[(MAPPED, 2, False)] * 3])
            fields |= {"kind": RequestKind.WALK, "tag": Tag.FETCH, "addr": page, "context": context}
            found = {"valid": 1, "read": 1, "write": 1, "page": 5} if mapped else {"valid": 0}
            return Packet([self._head(1, **fields)], Tag.FETCH, [(walk_answer.const(found).as_value().value, 0, 1)])
        values = [rng.randbytes(width) for _ in range(BEATS)]
        beats = [
            {
                "payload": {"beat": {"data": int.from_bytes(value, "little"), "strobe": -1 % (1 << width)}},
                "dest": MEMORY,
                "last": k == BEATS - 1,
            }
            for k, value in enumerate(values)
        ]
        if what == "message":
            fields |= {"kind": RequestKind.MESSAGE, "tag": Tag.MESSAGE}
            return Packet([self._head(0, **fields), *beats], None, [])
        fields |= {"kind": RequestKind.WRITE, "tag": Tag.STORE, "error": AccessError.PERMISSION if refused else 0}
        fields["addr"] = at = at - DATA + WRITTEN
        if not refused:
            self.after[at : at + width * BEATS] = b"".join(values)
        return Packet([self._head(0, **fields), *beats], Tag.STORE, [(0, fields["error"], 1)])

    def _head(self, last: int, **fields: Any) -> dict[str, Any]:
        return {"payload": {"head": fields}, "dest": MEMORY, "last": last}

    def bench(self, **memory: Any) -> tuple[StreamBench, AxiMemory]:
        bench = StreamBench(compiled(MemoryGateway, NANO), seed=1)
        axi = AxiMemory(bench, NANO, bench.dut.axi, size=SIZE, **memory)
        axi.data[:] = self.memory

        async def roots(ctx: Any) -> None:
            ctx.set(bench.dut.roots[1].root, {"mode": AddressMode.PAGED, "page": self.tables.roots[1][1]})

        bench.add(roots)
        return bench, axi


def answer_of(flit: Any) -> Answer:
    """Of a write, and of a page that is not there, the data mean nothing."""
    payload = flit.payload
    means = payload.data & 1 if payload.walk else payload.tag == Tag.LOAD
    return payload.data if means else 0, payload.error, flit.last


@pytest.mark.parametrize(("gaps", "pause"), [((0,), 0.0), ((1, 2), 0.0), ((0, 1, 3), 0.4)])
def test_meetings(gaps: Sequence[int], pause: float) -> None:
    """Each kind of packet right behind each kind whose answer is not here yet."""
    traffic = Traffic(len(gaps))
    kinds = every_pair(KINDS, traffic.rng)
    packets = [traffic.packet(kind) for kind in kinds]
    pauses = {
        at: gaps[0] if kinds[at - 1].startswith("refused") else traffic.rng.choice(gaps)
        for at in range(1, len(packets))
    }
    bench, axi = traffic.bench(latency=(20, 20), gap=pause / 2)
    items = [
        flit
        for at, packet in enumerate(packets)
        for flit in [*[None] * (2 * (not at) + pauses.get(at, 0)), *packet.flits]
    ]
    sent = bench.send(bench.dut.request_o, items)
    got = bench.receive(bench.dut.response_i, sum(len(packet.answers) for packet in packets), pause=pause)
    bench.run()
    came: dict[Tag, list[tuple[int, Answer]]] = defaultdict(list)
    for cycle, flit in zip(got.cycles, got.items, strict=True):
        came[flit.payload.tag].append((cycle, answer_of(flit)))
        assert flit.payload.walk == (flit.payload.tag == Tag.FETCH)
    entered, left, flits = [], [], iter(sent.cycles)
    for packet in packets:
        cycles = [next(flits) for _ in packet.flits]
        entered.append(cycles[0])
        left.append(cycles[-1])
        for expected in packet.answers:
            left[-1], answer = came[packet.tag].pop(0)
            assert answer == expected
    assert axi.data == traffic.after
    count_meetings(COVERAGE, "meets", kinds, pauses, entered, left)


def test_behind_a_drain() -> None:
    """Whatever a drain cuts, and wherever: what comes behind it is answered as after a reset, and nothing else is."""
    traffic = Traffic(9)
    bench, axi = traffic.bench(latency=(4, 9))
    dut, rng = bench.dut, traffic.rng

    async def give(ctx: Any, flits: list[Any]) -> None:
        for flit in flits:
            ctx.set(dut.request_o.payload, flit)
            ctx.set(dut.request_o.valid, 1)
            await ctx.tick().until(dut.request_o.ready)
        ctx.set(dut.request_o.valid, 0)

    async def process(ctx: Any) -> None:
        ctx.set(dut.response_i.ready, 1)
        await ctx.tick()
        for kind, cut, behind in COVERAGE.hits["behind a drain"]:
            before = bytes(axi.data)
            await give(ctx, traffic.packet(kind).flits[: {"head": 1, "beat": 2, "end": None}[cut]])
            for _ in range(rng.choice([0, 0, 1, 2, 5, 9])):
                await ctx.tick()
            ctx.set(dut.drain, 1)
            await ctx.tick().until(dut.drained)
            assert axi.quiet
            ctx.set(dut.drain, 0)
            assert behind == "write" or kind == "write" or axi.data == before
            packet = traffic.packet(behind)
            answers: list[Answer] = []
            await give(ctx, packet.flits[:-1])
            ctx.set(dut.request_o.payload, packet.flits[-1])
            ctx.set(dut.request_o.valid, 1)
            for _ in range(40):
                _, _, ready, valid, flit = await ctx.tick().sample(
                    dut.request_o.ready, dut.response_i.valid, dut.response_i.payload
                )
                if ready:
                    ctx.set(dut.request_o.valid, 0)
                if valid:
                    answers.append(answer_of(flit))
            assert answers == packet.answers, (kind, cut, behind)
            if behind == "write":
                at = packet.flits[0]["payload"]["head"]["addr"]
                size = BEATS * NANO.bus_bytes
                assert axi.data[at : at + size] == traffic.after[at : at + size]
            COVERAGE.hit("behind a drain", (kind, cut, behind))

    bench.add(process, wait=True)
    bench.run()


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)
