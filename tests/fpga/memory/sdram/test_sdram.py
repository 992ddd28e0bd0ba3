"""The SDRAM controller with a part that checks how it is used, against a byte array."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from types import ModuleType
from typing import Any

import pytest
from amaranth.utils import exact_log2

from sley.abi.config import ChipConfig, preset
from sley.fpga.memory.sdram import memory as memory_module
from sley.fpga.memory.sdram import scheduler as scheduler_module
from sley.fpga.memory.sdram.banks import Banks
from sley.fpga.memory.sdram.interlock import Interlock
from sley.fpga.memory.sdram.lookup import Lookup
from sley.fpga.memory.sdram.memory import SdramMemory
from sley.fpga.memory.sdram.part import COMMON_32M
from sley.fpga.memory.sdram.pins import Command
from sley.fpga.memory.sdram.refresh import Refresher
from sley.fpga.memory.sdram.scheduler import DIRECTION_WORDS, Scheduler
from sley.fpga.memory.sdram.walk import BurstWalk
from sley.fpga.testing import sdram_bench as bench_module
from sley.fpga.testing.sdram_bench import SdramBench, broken_rules
from sley.hw.testing.axi import Channel
from sley.hw.testing.axi_manager import AxiManager
from sley.hw.testing.coverage import STREAM_STATES, Coverage, watch_streams
from sley.hw.testing.mutation import mutated
from sley.hw.testing.parameters import rejects
from sley.hw.testing.streams import StreamBench

NANO, EDGE = preset("nano"), preset("edge")
WIDE = NANO.replace(name="wide", array=32, scratchpad_rows=512)  # two column bursts to a beat
PART = replace(COMMON_32M, row_bits=3, power_up=2_000)
CHANNELS = ("aw", "w", "b", "ar", "r")
MHZ = 1_000_000

BEFORE = ["read", "write", "precharge", "activate", "refresh"]
COVERAGE = Coverage(
    "SDRAM controller",
    {
        **{f"channel {channel}": [(state,) for state in STREAM_STATES] for channel in CHANNELS},
        "beats": ["1", "2", "some", "longest"],
        "rows of a burst": [1, 2, 3, 4],
        "answer": [
            (kind, number, answer) for kind in ("read", "write") for number in (0, 1) for answer in ("ok", "end")
        ],
        "strobes of a word": range(4),
        # An activation of a bank follows its precharge or a refresh, a column command its activation or another.
        "commands to a bank": [
            *[("activate", column) for column in ("read", "write")],
            *[(column, other) for column in ("read", "write") for other in ("read", "write", "precharge", "refresh")],
            ("precharge", "activate"),
            ("refresh", "activate"),
            ("activate", "precharge"),
            ("activate", "refresh"),
            ("refresh", "refresh"),
            ("precharge", "refresh"),
        ],
        "row command between the words of": ["read", "write", "nothing"],
        "CAS latency": [2, 3],
    },
)


class RuleError(AssertionError):
    """The part was used against its rules."""


def watched(dut: SdramBench, coverage: Coverage | None = None, **options: Any) -> StreamBench:
    """A bench that raises as soon as a rule of the part is broken, and counts what happens."""
    bench = StreamBench(dut, **options)
    sdram, burst = dut.sdram, dut.memory.timing.burst

    async def watch(ctx: Any) -> None:
        before = ["refresh"] * 4
        column, since = "nothing", 0
        signals = (dut.fault, sdram.command, sdram.bank, sdram.address, sdram.mask, sdram.drive)
        while True:
            fault, command, bank, address, mask, drive = (await ctx.tick().sample(*signals))[2:]
            if fault:
                raise RuleError(f"in cycle {bench.cycle}: {', '.join(sorted(broken_rules(fault)))}")
            if coverage is None:
                continue
            name, since = Command(command).name.lower(), since + 1
            if drive:
                coverage.hit("strobes of a word", mask ^ 3)
            if name in ("activate", "precharge", "read", "write") and not (name == "precharge" and address >> 10 & 1):
                coverage.hit("commands to a bank", (before[bank], name))
                before[bank] = name
                if name in ("read", "write"):
                    column, since = name, 0
                else:
                    coverage.hit("row command between the words of", column if since < burst else "nothing")
            elif name == "refresh":
                for k in range(4):
                    if bench.cycle > dut.memory.timing.power_up + 200:
                        coverage.hit("commands to a bank", (before[k], name))
                    before[k] = name
            elif name == "mode":
                coverage.hit("CAS latency", address >> 4)

    bench.add(watch)
    if coverage is not None:
        for channel in CHANNELS:
            watch_streams(bench, coverage, f"channel {channel}", Channel(dut.bus, channel))
    return bench


def burst_of(config: ChipConfig, addr: int, beats: int, number: int = 0) -> dict[str, int]:
    return {"addr": addr, "len": beats - 1, "size": exact_log2(config.bus_bytes), "burst": 1, "id": number}


class Traffic:
    """Rounds of random bursts, some of them behind the end, with random IDs and strobes.

    In a round no read meets a write; the next begins when all is answered. ``check`` compares each beat and answer.
    """

    def __init__(
        self, bench: StreamBench, dut: SdramBench, config: ChipConfig, *, rounds: int, longest: int, gap: float
    ) -> None:
        self._rng = random.Random(bench.rng.random())
        self._config, self._size, self._longest = config, dut.memory.memory_bytes, longest
        self.data = bytearray(self._size)
        self._expected_reads: list[tuple[int, int, int, int | None]] = []  # ID, last, response, data
        self._expected_writes: list[tuple[int, int]] = []
        self._queues: dict[str, list[dict[str, int]]] = {"ar": [], "aw": [], "w": []}
        self._rounds = rounds
        self._answers = {c: bench.receive(Channel(dut.bus, c), pause=gap) for c in ("r", "b")}
        for channel, queue in self._queues.items():
            bench.send(Channel(dut.bus, channel), self._feed(queue), idle=gap, wait=False)

        async def rounds_(ctx: Any) -> None:
            while self._rounds or not self._all_answered():
                await ctx.tick()

        bench.add(rounds_, wait=True)

    def _feed(self, queue: list[dict[str, int]]) -> Iterator[dict[str, int] | None]:
        while True:
            if self._rounds and self._all_answered() and not any(self._queues.values()):
                self._rounds -= 1
                self._plan()
            yield queue.pop(0) if queue else None

    def _all_answered(self) -> bool:
        return len(self._answers["r"].items) == len(self._expected_reads) and len(self._answers["b"].items) == len(
            self._expected_writes
        )

    def _plan(self) -> None:
        rng, width = self._rng, self._config.bus_bytes
        used: dict[str, set[int]] = {"read": set(), "write": set()}
        for _ in range(rng.randint(1, max(2, min(8, 2048 // (self._longest * width))))):
            kind, other = rng.choice([("read", "write"), ("write", "read")])
            beats = rng.choice([1, rng.randint(1, self._longest), self._longest])
            beats = min(beats, 4096 // width)
            page = rng.randrange(self._size // 4096) if rng.random() < 0.7 else 3
            addr = 4096 * page + width * rng.randrange(4096 // width - beats + 1)
            behind = rng.random() < 0.15
            place = set() if behind else set(range(addr, addr + beats * width))
            if place & used[other]:
                continue
            used[kind] |= place
            if not behind:
                COVERAGE.hit("rows of a burst", (addr + beats * width - 1) // 1024 - addr // 1024 + 1)
            COVERAGE.hit("beats", {1: "1", 2: "2", self._longest: "longest"}.get(beats, "some"))
            number, answer = rng.randrange(2), 3 if behind else 0
            COVERAGE.hit("answer", (kind, number, "end" if behind else "ok"))
            asked = addr + self._size * rng.randrange(1, (1 << self._config.addr_bits) // self._size) * behind
            self._queues["ar" if kind == "read" else "aw"].append(burst_of(self._config, asked, beats, number))
            if kind == "write":
                self._expected_writes.append((number, answer))
            for beat in range(beats):
                at, last = addr + beat * width, int(beat == beats - 1)
                if kind == "read":
                    value = int.from_bytes(self.data[at : at + width], "little")
                    self._expected_reads.append((number, last, answer, None if behind else value))
                    continue
                content, strobe = rng.randbytes(width), rng.choice([rng.getrandbits(width), (1 << width) - 1, 0])
                for lane in range(width):
                    if strobe >> lane & 1 and not behind:
                        self.data[at + lane] = content[lane]
                self._queues["w"].append({"data": int.from_bytes(content, "little"), "strb": strobe, "last": last})

    def check(self) -> int:
        """Bytes that were compared."""
        got = self._answers["r"].items
        for number in range(2):  # the order holds within an ID
            mine = [x for x in got if x.id == number]
            wanted = [x for x in self._expected_reads if x[0] == number]
            for beat, (_, last, response, value) in zip(mine, wanted, strict=True):
                assert (beat.last, beat.resp) == (last, response)
                assert value is None or beat.data == value
        answers = sorted((x.id, x.resp) for x in self._answers["b"].items)
        assert answers == sorted(self._expected_writes)
        return self._config.bus_bytes * len(got)


@pytest.mark.parametrize(
    ("config", "longest", "gap", "mhz"),
    [
        (NANO, 1, 0.0, 133),
        pytest.param(NANO, 1, 0.3, 25, marks=pytest.mark.campaign),
        pytest.param(NANO, 16, 0.3, 100, marks=pytest.mark.campaign),
        (NANO, 16, 0.0, 133),
        pytest.param(NANO, 256, 0.0, 25, marks=pytest.mark.campaign),
        pytest.param(EDGE, 16, 0.0, 66, marks=pytest.mark.campaign),
        (EDGE, 16, 0.5, 133),
        (EDGE, 256, 0.0, 25),
        pytest.param(WIDE, 5, 0.2, 25, marks=pytest.mark.campaign),
        (WIDE, 5, 0.0, 133),
    ],
    ids=lambda x: getattr(x, "name", x),
)
def test_random(config: ChipConfig, longest: int, gap: float, mhz: int) -> None:
    dut = SdramBench(config, mhz * MHZ, PART)
    bench = watched(dut, COVERAGE, seed=mhz + longest, timeout=100_000)
    beats = 1 + longest * config.bus_bytes // 4
    traffic = Traffic(bench, dut, config, rounds=8 + 120 // beats, longest=longest, gap=gap)
    bench.run()
    assert traffic.check() > 100


@pytest.mark.some(1)
@pytest.mark.parametrize(("config", "mhz"), [(NANO, 25), (EDGE, 133), (WIDE, 100)], ids=lambda x: getattr(x, "name", x))
def test_dense_traffic(config: ChipConfig, mhz: int) -> None:
    """Many bursts in flight each way all the time, in few rows and in many."""
    dut = SdramBench(config, mhz * MHZ, PART)
    bench = watched(dut, COVERAGE, seed=mhz, timeout=100_000)
    operations = 500 * 4 // config.bus_bytes
    manager = AxiManager(bench, config, dut.bus, region=range(PART.memory_bytes), operations=operations, longest=4)
    bench.run()
    assert manager.moved > operations


def column_commands(bench: StreamBench, dut: SdramBench) -> list[tuple[int, str]]:
    """Cycle and kind of each column command of a run."""
    found: list[tuple[int, str]] = []

    async def watch(ctx: Any) -> None:
        while True:
            _, _, command = await ctx.tick().sample(dut.sdram.command)
            if Command(command) in (Command.READ, Command.WRITE):
                found.append((bench.cycle, Command(command).name))

    bench.add(watch)
    return found


@pytest.mark.some(6, "campaign")
@pytest.mark.parametrize("mhz", [25, 133])
@pytest.mark.parametrize(("config", "beats"), [(NANO, 1), (NANO, 16), (EDGE, 4), (WIDE, 4)], ids=lambda x: str(x)[:9])
@pytest.mark.parametrize("write", [False, True])
def test_the_data_bus_is_busy_within_a_row(config: ChipConfig, beats: int, write: bool, mhz: int) -> None:
    """Burst after burst, a word in each cycle, while no refresh is due."""
    part = replace(PART, refreshes=64)  # not during the test
    dut = SdramBench(config, mhz * MHZ, part)
    bench = StreamBench(dut, timeout=20_000)
    commands = column_commands(bench, dut)
    width = config.bus_bytes
    bursts = [burst_of(config, at, beats) for at in range(0, 1024, width * beats)]
    if write:
        bench.send(Channel(dut.bus, "aw"), bursts)
        filled = [{"data": k, "strb": 1, "last": k % beats == beats - 1} for k in range(beats * len(bursts))]
        bench.send(Channel(dut.bus, "w"), filled)
        bench.receive(Channel(dut.bus, "b"), len(bursts))
    else:
        bench.send(Channel(dut.bus, "ar"), bursts)
        bench.receive(Channel(dut.bus, "r"), beats * len(bursts))
    bench.run()
    burst = dut.memory.timing.burst
    assert len(commands) == 512 // burst
    assert commands[-1][0] - commands[0][0] == 512 - burst


@pytest.mark.parametrize(("config", "mhz"), [(NANO, 25), (NANO, 133), (EDGE, 25)], ids=lambda x: str(x)[:9])
def test_latency(config: ChipConfig, mhz: int) -> None:
    """As the data sheet has it, for a row that is open."""
    dut = SdramBench(config, mhz * MHZ, replace(PART, refreshes=64))
    bench = StreamBench(dut)
    got = bench.receive(Channel(dut.bus, "r"), 2)

    def second() -> Iterator[Any]:
        yield burst_of(config, 0, 1)
        while not got.items:
            yield None
        yield burst_of(config, 64, 1)

    asked = bench.send(Channel(dut.bus, "ar"), second())
    bench.run()
    timing = dut.memory.timing
    assert got.cycles[1] - asked.cycles[1] == timing.cas + timing.burst + 6


@pytest.mark.parametrize(
    ("config", "mhz"), [(NANO, 25), pytest.param(EDGE, 100, marks=pytest.mark.campaign)], ids=lambda x: str(x)[:9]
)
def test_refresh_is_never_late(config: ChipConfig, mhz: int) -> None:
    """Under traffic that leaves no cycle free, the k-th refresh comes within k intervals and the greatest delay."""
    dut = SdramBench(config, mhz * MHZ, replace(PART, refreshes=16384))
    bench = watched(dut, seed=1, timeout=100_000)
    refreshes: list[int] = []

    async def watch(ctx: Any) -> None:
        while True:
            _, _, command = await ctx.tick().sample(dut.sdram.command)
            if Command(command) == Command.REFRESH:
                refreshes.append(bench.cycle)

    bench.add(watch)
    operations = 400 if config is NANO else 120
    AxiManager(bench, config, dut.bus, region=range(8192), operations=operations, longest=16)
    bench.run()
    timing = dut.memory.timing
    regular = refreshes[7:]
    assert len(regular) > 8
    gaps = [b - a for a, b in pairwise(regular)]
    assert max(gaps) <= timing.refresh_interval + timing.refresh_delay
    first = regular[1]
    for k, cycle in enumerate(regular[1:]):
        assert abs(cycle - first - k * timing.refresh_interval) <= timing.refresh_delay
    assert 16384 * timing.refresh_interval + timing.refresh_delay <= 64_000 * mhz


def test_a_write_without_data_delays_no_reads() -> None:
    dut = SdramBench(NANO, 25 * MHZ, PART)
    bench = watched(dut, timeout=1_000)
    bench.send(Channel(dut.bus, "aw"), [burst_of(NANO, 0, 4)])
    bench.send(Channel(dut.bus, "ar"), [burst_of(NANO, 64 * k, 4) for k in range(5)])
    got = bench.receive(Channel(dut.bus, "r"), 20)
    bench.run()
    assert len(got.items) == 20


def test_an_answer_that_is_not_taken_delays_no_reads() -> None:
    dut = SdramBench(NANO, 25 * MHZ, PART)
    bench = watched(dut, timeout=1_000)
    bench.send(Channel(dut.bus, "aw"), [burst_of(NANO, 4 * k, 1) for k in range(8)], idle=0.0, wait=False)
    bench.send(Channel(dut.bus, "w"), [{"data": k, "strb": 15, "last": 1} for k in range(8)], wait=False)
    bench.send(Channel(dut.bus, "ar"), [burst_of(NANO, 1024 + 64 * k, 4) for k in range(5)])
    got = bench.receive(Channel(dut.bus, "r"), 20)
    bench.run()
    assert len(got.items) == 20


def test_turns() -> None:
    """While both directions have something to move, none waits for more than a turn of the other."""
    dut = SdramBench(NANO, 25 * MHZ, PART)
    bench = watched(dut, timeout=5_000)
    commands = column_commands(bench, dut)
    bench.send(Channel(dut.bus, "ar"), [burst_of(NANO, 64 * k, 16) for k in range(16)])
    bench.receive(Channel(dut.bus, "r"), 256)
    bench.send(Channel(dut.bus, "aw"), [burst_of(NANO, 4096 + 64 * k, 16) for k in range(16)])
    bench.send(Channel(dut.bus, "w"), [{"data": k, "strb": 15, "last": k % 16 == 15} for k in range(256)])
    bench.receive(Channel(dut.bus, "b"), 16)
    bench.run()
    kinds = "".join(kind[0] for _, kind in commands)
    turns = kinds.replace("RW", "R W").replace("WR", "W R").split()
    assert max(len(turn) for turn in turns[:-2]) <= DIRECTION_WORDS // 2 + 1
    assert len(turns) < 20


def test_what_it_refuses() -> None:
    for size in (2048, 12288, 1 << 26):
        with rejects(f"memory_bytes is {size}; it must be a power of two in 4096..33554432"):
            SdramMemory(NANO, 25 * MHZ, memory_bytes=size)


def test_memory_ends_where_it_is_told() -> None:
    dut = SdramBench(NANO, 25 * MHZ, PART, memory_bytes=4096)
    bench = watched(dut)
    bench.send(Channel(dut.bus, "ar"), [burst_of(NANO, 4092, 1), burst_of(NANO, 4096, 1), burst_of(NANO, 1 << 31, 2)])
    got = bench.receive(Channel(dut.bus, "r"), 4)
    bench.run()
    assert [x.resp for x in got.items] == [0, 3, 3, 3]


def run_random(dut: SdramBench, config: ChipConfig = NANO) -> None:
    """Raises if something is wrong."""
    bench = watched(dut, seed=3, timeout=4_000)
    traffic = Traffic(bench, dut, config, rounds=25, longest=16, gap=0.1)
    bench.run()
    traffic.check()


def run_dense(dut: SdramBench, config: ChipConfig = NANO) -> None:
    """Raises if something is wrong."""
    bench = watched(dut, seed=3, timeout=4_000)
    AxiManager(bench, config, dut.bus, region=range(PART.memory_bytes), operations=150, longest=16, gap=0.2)
    bench.run()


def run_full(dut: SdramBench) -> None:
    """Nobody takes answers for a long time. Raises if something is wrong."""
    bench = watched(dut, timeout=2_000)
    bench.send(Channel(dut.bus, "aw"), [burst_of(NANO, 4 * k, 1) for k in range(8)])
    bench.send(Channel(dut.bus, "w"), [{"data": k, "strb": 15, "last": 1} for k in range(8)])
    bench.send(Channel(dut.bus, "ar"), [burst_of(NANO, 2048, 32)])
    bench.receive(Channel(dut.bus, "r"), 32, pause=0.99)
    bench.receive(Channel(dut.bus, "b"), 8, pause=0.99)
    bench.run()


SHORTER = {
    "activate_to_precharge": "ROW_OPEN",
    "activate_to_column": "ROW_TO_COLUMN",
    "precharge": "PRECHARGING",
    "bank_to_bank": "BANK_TO_BANK",
    "write_to_precharge": "WRITE_RECOVERY",
    "read_to_precharge": "CUT",
    "read_to_write": "CONFLICT",
    "refresh": "REFRESHING",
    "mode_set": "MODE_SET",
    "power_up": "POWER_UP",
    "cas": "MODE",
}


@pytest.mark.some(5)
@pytest.mark.parametrize("what", SHORTER)
def test_a_time_that_is_one_cycle_short_is_found(what: str) -> None:
    dut = SdramBench(NANO, 133 * MHZ, PART)
    timing = dut.memory.timing
    dut.memory.timing = replace(timing, **{what: getattr(timing, what) - 1})
    with pytest.raises(RuleError, match=SHORTER[what]):
        run_dense(dut)


def test_refreshes_that_are_too_rare_are_found() -> None:
    dut = SdramBench(NANO, 25 * MHZ, PART)
    timing = dut.memory.timing
    dut.memory.timing = replace(timing, refresh_interval=3 * timing.refresh_interval)
    with pytest.raises(RuleError, match="REFRESH_LATE"):
        run_dense(dut)


Mutant = tuple[ModuleType, type[Any], str, str]
MUTANTS: dict[str, Mutant] = {
    "place changed": (scheduler_module, Lookup, " & ~place.changed", ""),
    "bank changed": (scheduler_module, Lookup, " & ~self.row_command", ""),
    "other row": (scheduler_module, Lookup, "open_ & equal & banks", "open_ & banks"),
    "precharge forgotten": (scheduler_module, Banks, "precharge | self.precharge_all)", "self.precharge_all)"),
    "precharge of all forgotten": (scheduler_module, Banks, "precharge | self.precharge_all)", "precharge)"),
    "write recovery": (scheduler_module, Banks, "(write, timing.write_to_precharge)", "(write, 1)"),
    "interlock": (scheduler_module, Interlock, "(1 << (cycles - 1)) - 1", "(1 << (cycles - 1)) >> 1"),
    "7 refreshes": (scheduler_module, Refresher, "FIRST_REFRESHES = 8", "FIRST_REFRESHES = 7"),
    "precharge at once": (scheduler_module, Refresher, "m.If(self.may_precharge_all)", "m.If(1)"),
    "granted while due": (scheduler_module, Refresher, "self.granted.eq(~due)", "self.granted.eq(1)"),
    "same bank": (memory_module, Scheduler, "other_bank = place.bank != bank", "other_bank = place.bank == place.bank"),
    "other direction": (memory_module, Scheduler, "(direction == number) & requester.ready", "requester.ready"),
    "not ready": (memory_module, Scheduler, "(direction == number) & requester.ready", "(direction == number)"),
    "column": (memory_module, BurstWalk, "position.eq(position + 1)", "position.eq(position + 2)"),
    "end": (memory_module, BurstWalk, "remaining.eq(bursts.payload.len)", "remaining.eq(bursts.payload.len + 1)"),
    "beyond the end": (memory_module, BurstWalk, "ahead.refused.eq(address[end:].any())", "ahead.refused.eq(0)"),
    "read early": (bench_module, SdramMemory, "first = timing.cas + 1", "first = timing.cas"),
    "read late": (bench_module, SdramMemory, "first = timing.cas + 1", "first = timing.cas + 2"),
    "no credit": (bench_module, SdramMemory, "walk.head.valid & room", "walk.head.valid"),
    "no data": (bench_module, SdramMemory, "(beats.o.valid | ~walk.first)", "1"),
    "no room": (bench_module, SdramMemory, " & (responses.i.ready | ~walk.last)", ""),
    "strobes": (bench_module, SdramMemory, "beat.strb >> WORD_BYTES", "beat.strb"),
    "drive": (bench_module, SdramMemory, ", sdram.drive.eq(0)]", "]"),
    "mask while initialising": (bench_module, SdramMemory, "with m.If(scheduler.initialising):", "with m.If(0):"),
    "answers": (bench_module, SdramMemory, "walk.head.refused, walk.last, tags", "0, walk.last, tags"),
}
"""Where the class is used, the class, and the text that is replaced in its module."""


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_bug_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, component, line, replacement = MUTANTS[name]
    monkeypatch.setattr(where, component.__name__, mutated(component, line, replacement))
    found = []
    for run in (run_full, run_dense, run_random):
        try:
            run(SdramBench(NANO, 100 * MHZ, PART))
        except AssertionError as error:
            found.append(error)
            break
    assert found


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)
