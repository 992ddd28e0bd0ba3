"""The block scheduler with cores that answer late, and sometimes with a fault."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sley.abi.config import ChipConfig, preset
from sley.abi.faults import FaultCode, Unit
from sley.abi.network import LaunchWord, RequestKind, Tag
from sley.abi.packets import INLINE_ARGS, PACKET_BYTES, PacketOp, encode_packet
from sley.abi.placement import core_node
from sley.abi.registers import PATIENCE
from sley.hw.command.grids.place import BLOCK_NUMBER
from sley.hw.command.grids.scheduler import BlockScheduler
from sley.hw.testing.command.cores import BlockRun, FakeCores
from sley.hw.testing.coverage import STREAM_STATES, Coverage, stream_states, watch_streams
from sley.hw.testing.streams import StreamBench, compiled

ONE = preset("nano").replace(queues=8)
PLACE = (LaunchWord.BLOCK_X, LaunchWord.BLOCK_Y, LaunchWord.BLOCK_Z)
ARG_WORDS = (0, 1, INLINE_ARGS, INLINE_ARGS + 1, 24, 3)
SIX = ONE.replace(cores_x=3, cores_y=2)
COVERAGE = Coverage(
    "scheduler",
    {
        "ended": [
            *(("grid", code) for code in ("NONE", "BUS_ERROR", "ABORTED")),
            *(("gang", code) for code in ("NONE", "BUS_ERROR", "ABORTED")),
        ],
        "grids at once": (1, 3, 4, 5, 8),
        "cores": (1, 6),
        "words of arguments": ARG_WORDS,
        "extent": [(axis, size) for axis in "xyz" for size in ("one block", "several")],
        "launch, result": stream_states(2, *(("waits", result) for result in STREAM_STATES)),  # grids are always taken
    },
)


class Bench:
    """Grids in, results out, cores in between."""

    def __init__(self, config: ChipConfig, *, pause: float = 0.0, judge: Any = lambda run: None, **kwargs: Any):
        self.bench = StreamBench(
            kwargs.get("dut") or compiled(BlockScheduler, config),
            seed=kwargs.get("seed", 3),
            timeout=kwargs.get("timeout", 10_000),
        )
        self.config = config
        self.flits = self.bench.receive(self.bench.dut.message, pause=pause)
        self.messages: list[tuple[Any, list[int]]] = []
        self.limits: list[tuple[int, int]] = []
        self.cores = FakeCores(self.bench, config, self.messages, kwargs.get("delay", (1, 50)), judge)
        self.seen = 0
        self.bench.send(self.bench.dut.done, self._answers(), wait=False)
        self.packet: bytes | None = None
        self.bench.add(self._packets)
        self.bench.add(self._no_word_is_read_while_written)

    async def _no_word_is_read_while_written(self, ctx: Any) -> None:
        """What a block RAM gives then is not what it gives here."""
        message, packets = self.bench.dut.message, self.bench.dut.packets.memory
        (write,), (read,) = packets.write_ports, packets.read_ports
        while True:
            if ctx.get(message.valid) and ctx.get(message.ready) and ctx.get(write.en):
                assert ctx.get(write.addr) != ctx.get(read.addr)
            await ctx.tick()

    async def _packets(self, ctx: Any) -> None:
        """A packet arrives, in as many beats as the bus needs, with garbage of one that is dropped before it."""
        beat = self.bench.dut.packet
        size = len(beat.data) // 8
        while True:
            if self.packet is None:
                ctx.set(beat.valid, 0)
                await ctx.tick()
                continue
            for packet in (self.bench.rng.randbytes(PACKET_BYTES), self.packet):
                for first in range(0, PACKET_BYTES, size):
                    ctx.set(beat.valid, 1)
                    ctx.set(beat.index, first // size)
                    ctx.set(beat.data, int.from_bytes(packet[first : first + size], "little"))
                    await ctx.tick()
            self.packet = None

    def grid(
        self, queue: int, k: int, size: tuple[int, int, int], gang: bool = False
    ) -> Iterator[dict[str, Any] | None]:
        """Its packet, then the grid."""
        self.packet = self.item_packet(k, size, gang)
        while self.packet is not None:
            yield None
        yield self.item(queue, k, gang)

    def _answers(self) -> Any:
        """Payloads of the cores' flits; launch messages are put together on the way."""
        for item in self.cores.answers():
            yield item and item["payload"]
            self._collect()

    def _collect(self) -> None:
        for flit in self.flits.items[self.seen :]:
            if self.ended:
                assert flit.payload.head.kind == RequestKind.MESSAGE
                assert flit.payload.head.tag == Tag.MESSAGE
                self.limit = flit.payload.head.addr
                self.beats = flit.payload.head.beats + 1
                self.current = ((flit.dest.x, flit.dest.y), [])
                self.ended = False
            else:
                self.current[1].append(flit.payload.beat.data & 0xFFFF_FFFF)
            if flit.last:
                assert len(self.current[1]) == self.beats
                self.ended = True
                self.messages.append(self.current)
                self.limits.append((self.current[1][LaunchWord.PROGRAM], self.limit))
        self.seen = len(self.flits.items)

    ended = True
    current: tuple[Any, list[int]]

    def item(self, queue: int, k: int, gang: bool) -> dict[str, Any]:
        """Grid number ``k``, of this queue."""
        arg_words = ARG_WORDS[k % len(ARG_WORDS)]
        words = {"program_words": 7 + k, "arg_words": arg_words}
        grid = {"gang": gang, "context": k % 16, "watchdog": 0x10 * k, **words}
        return {"queue": queue, "grid": grid}

    def item_packet(self, k: int, size: tuple[int, int, int], gang: bool) -> bytes:
        return encode_packet(
            PacketOp.LAUNCH,
            gang=gang,
            program=0x1000 * (k + 1),
            program_words=7 + k,
            tag=3 * k,
            args=0x2000 + 4 * k,
            arg_words=ARG_WORDS[k % len(ARG_WORDS)],
            **{f"arg{i}": 0x100 * k + i for i in range(INLINE_ARGS)},
            **dict(zip(("grid_x", "grid_y", "grid_z"), size, strict=True)),
        )

    def words(self, queue: int, k: int, size: tuple[int, int, int]) -> list[list[int]]:
        """The messages of its blocks."""
        count = ARG_WORDS[k % len(ARG_WORDS)]
        in_memory = [0x2000 + 4 * k] if count > INLINE_ARGS else []
        inline = [] if in_memory else [0x100 * k + i for i in range(count)]
        sizes = 7 + k | count << 16 | k % 16 << 24 | queue << 28
        return [[sizes, 0x1000 * (k + 1), 3 * k, *in_memory, *place, *size, *inline] for place in blocks_of(size)]

    def launch(
        self,
        *rounds: list[tuple[int, int, int]],
        pause: float = 0.0,
        priorities: Any = (),
        gangs: tuple[int, ...] = (),
    ) -> list[list[Any]]:
        """Run these grids, those of a round on queues of their own one after another; the results of each round. Grids
        numbered in ``gangs`` are gangs."""
        dut = self.bench.dut
        COVERAGE.hit("cores", self.config.cores)
        watch_streams(self.bench, COVERAGE, "launch, result", dut.i, dut.o)
        results = self.bench.receive(dut.o, sum(map(len, rounds)), pause=pause)
        ends: list[int] = []

        def source() -> Any:
            k = 0
            for sizes in rounds:
                for queue, size in enumerate(sizes):
                    yield from self.grid(queue, k, size, k in gangs)
                    k += 1
                while len(results.items) < k:
                    yield None
                ends.append(k)

        async def settings(ctx: Any) -> None:
            for queue, priority in enumerate(priorities):
                ctx.set(dut.priorities[queue], priority)

        self.bench.add(settings)
        self.bench.send(dut.i, source(), name="grids")
        self.bench.run()
        for sizes, end in zip(rounds, ends, strict=True):
            COVERAGE.hit("grids at once", len(sizes))
            for result in results.items[end - len(sizes) : end]:
                kind = "gang" if end - len(sizes) + result.queue in gangs else "grid"
                COVERAGE.hit("ended", (kind, FaultCode(result.fault.code).name))
            for k, size in enumerate(sizes, end - len(sizes)):
                COVERAGE.hit("words of arguments", ARG_WORDS[k % len(ARG_WORDS)])
                for axis, extent in zip("xyz", size, strict=True):
                    COVERAGE.hit("extent", (axis, "one block" if extent == 1 else "several"))
        return [results.items[end - len(sizes) : end] for end, sizes in zip(ends, rounds, strict=True)]


def blocks_of(grid: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    return [(x, y, z) for z in range(grid[2]) for y in range(grid[1]) for x in range(grid[0])]


@pytest.mark.parametrize(
    ("config", "pause"),
    [
        pytest.param(ONE, 0.0, id="1"),
        pytest.param(SIX, 0.0, id="6"),
        pytest.param(SIX, 0.4, id="6-pauses"),
        pytest.param(ONE, 0.4, id="1-pauses", marks=pytest.mark.slow),
        *(
            pytest.param(ONE.replace(array=array), pause, id=f"bus of {array}-{pause}", marks=pytest.mark.slow)
            for array in (8, 64)
            for pause in (0.0, 0.4)
        ),
    ],
)
def test_grids(config: ChipConfig, pause: float) -> None:
    """Eight grids at a time; the blocks of each come in order, whatever comes between them."""
    bench = Bench(config, pause=pause)
    rng = random.Random(1)
    rounds = [[tuple(rng.randint(1, 3) for _ in range(3)) for _ in range(8)] for _ in range(2)]
    results = bench.launch(*rounds, pause=pause)  # type: ignore[arg-type]
    for k in range(16):
        queue = k % 8
        expected = bench.words(queue, k, rounds[k // 8][queue])  # type: ignore[arg-type]
        assert [run.words for run in bench.cores.runs if run[LaunchWord.PROGRAM] == 0x1000 * (k + 1)] == expected
    for ended in results:
        assert sorted(r.queue for r in ended) == list(range(8))
        assert all(r.fault.code == FaultCode.NONE for r in ended)
    assert {limit for _, limit in bench.limits} == {0x10 * k for k in range(16)}
    assert all(program == 0x1000 * (limit // 0x10 + 1) for program, limit in bench.limits)


def test_a_queue_launches_again_while_others_run() -> None:
    """Its next grid comes as soon as its last one has ended, also while another's end waits to be taken."""
    bench = Bench(SIX, delay=(1, 20))
    dut = bench.bench.dut
    rng = random.Random(5)
    grids = [(k % 8, (rng.randint(1, 2), 1, rng.randint(1, 2))) for k in range(64)]
    results = bench.bench.receive(dut.o, len(grids), pause=0.8)
    watch_streams(bench.bench, COVERAGE, "launch, result", dut.i, dut.o)

    def source() -> Any:
        for k, (queue, size) in enumerate(grids):
            while [r.queue for r in results.items].count(queue) < k // 8:
                yield None
            yield from bench.grid(queue, k, size)

    bench.bench.send(dut.i, source(), idle=0.7, name="grids")
    bench.bench.run()
    assert sorted(r.queue for r in results.items) == sorted(queue for queue, _ in grids)
    for k, (queue, size) in enumerate(grids):
        sent = [run.words for run in bench.cores.runs if run[LaunchWord.PROGRAM] == 0x1000 * (k + 1)]
        assert sent == bench.words(queue, k, size)


def test_lowest_free_core_first() -> None:
    bench = Bench(SIX, delay=(1000, 1000))
    bench.launch([(6, 1, 1)])
    assert [run.core for run in bench.cores.runs] == list(range(6))
    assert [node for node, _ in bench.messages] == [core_node(SIX, k) for k in range(6)]


def test_priorities_and_patience() -> None:
    """The order in which the blocks of five grids go out on one core, against the rule in a few lines of Python."""
    priorities = (1, 3, 0, 1, 3)
    sizes = [(9, 1, 1), (28, 1, 1), (3, 1, 1), (7, 1, 1), (15, 1, 1)]
    bench = Bench(ONE, delay=(100, 100), timeout=60_000)
    bench.launch(sizes, priorities=priorities)
    order = [run[LaunchWord.PROGRAM] // 0x1000 - 1 for run in bench.cores.runs]
    left = [size[0] for size in sizes]
    passed, last = [0] * 5, {priorities[0]: 0}
    expected = [0]  # it came first, and the others were here when it had ended
    left[0] -= 1
    while any(left):
        asking = [k for k in range(5) if left[k]]
        level = max(4 if passed[k] >= PATIENCE else priorities[k] for k in asking)
        members = [k for k in asking if (4 if passed[k] >= PATIENCE else priorities[k]) == level]
        served = min(members, key=lambda k: (k <= last.get(level, -1), k))
        last[level] = served
        for k in asking:
            passed[k] = 0 if k == served else passed[k] + 1
        left[served] -= 1
        expected.append(served)
    assert order == expected
    assert PATIENCE - 1 <= order.index(2) <= PATIENCE + 4
    assert order[1:7] == [1, 4, 1, 4, 1, 4]


def test_first_fault_wins_and_stops_the_grid() -> None:
    rng = random.Random(9)
    for faulty in range(3):

        def judge(run: BlockRun, faulty: int = faulty) -> tuple[FaultCode, Unit, int, int] | None:
            if run[LaunchWord.PROGRAM] != 0x2000 or run[LaunchWord.BLOCK_X] < 2 + faulty:
                return None
            return FaultCode.BUS_ERROR, Unit.STORE, rng.getrandbits(16), rng.getrandbits(32)

        bench = Bench(SIX, judge=judge)
        (results,) = bench.launch([(14, 1, 1), (40, 1, 1), (14, 1, 1)])
        codes = {r.queue: r.fault.code for r in results}
        assert codes == {0: FaultCode.NONE, 1: FaultCode.BUS_ERROR, 2: FaultCode.NONE}
        runs = [run for run in bench.cores.runs if run[LaunchWord.PROGRAM] == 0x2000]
        assert all(run.reported for run in runs)
        assert len(runs) < 40
        fault = next(r.fault for r in results if r.queue == 1)
        guilty = runs[fault.block]
        assert guilty.fault == (fault.code, fault.unit, fault.pc, fault.address)
        assert guilty.core == fault.core
        assert guilty.reported == min(run.reported for run in runs if run.fault)
        assert len(bench.cores.runs) == 14 + len(runs) + 14


def test_numbers_of_blocks_have_32_bits() -> None:
    """The number is kept in halves: one that is put to the end of the lower half goes on in the upper one."""

    class Poked(BlockScheduler):
        """One whose memory is written, which its twin does not see."""

    dut = Poked(ONE)

    def judge(run: BlockRun) -> tuple[FaultCode, Unit, int, int] | None:
        return (FaultCode.BUS_ERROR, Unit.STORE, 1, 2) if run[LaunchWord.BLOCK_X] == 2 else None

    bench = Bench(ONE, dut=dut, judge=judge, delay=(40, 40))

    async def skip(ctx: Any) -> None:
        while not bench.messages:
            await ctx.tick()
        ctx.set(dut.place.memory.data[BLOCK_NUMBER], 0xFFFF)

    bench.bench.add(skip)
    ((result,),) = bench.launch([(4, 1, 1)])
    assert (result.fault.code, result.fault.block) == (FaultCode.BUS_ERROR, 0x1_0000)


def test_faults_of_two_grids() -> None:
    """Each is kept for its own queue."""

    def judge(run: BlockRun) -> tuple[FaultCode, Unit, int, int] | None:
        return FaultCode.BUS_ERROR, Unit.STORE, run[LaunchWord.PROGRAM], run[LaunchWord.BLOCK_X]

    bench = Bench(SIX, judge=judge, delay=(80, 200))
    first, second = bench.launch([(3, 1, 1)] * 5, [(2, 1, 1)] * 3)
    for ended, grids in ((first, range(5)), (second, range(5, 8))):
        assert sorted(r.fault.pc for r in ended) == [0x1000 * (k + 1) for k in grids]
        for r in ended:
            assert r.fault.pc == 0x1000 * (grids[r.queue] + 1)
            assert r.fault.address == r.fault.block


def test_abort() -> None:
    """No further block of an aborted grid; if its last block is out already, the grid counts as done."""
    bench = Bench(SIX, delay=(150, 150))
    dut = bench.bench.dut

    async def abort(ctx: Any) -> None:
        await ctx.tick().repeat(100)
        ctx.set(dut.abort, 0b101)

    bench.bench.add(abort)
    (results,) = bench.launch([(1, 1, 1), (9, 1, 1), (9, 1, 1)])
    codes = {r.queue: (r.fault.code, r.fault.unit) for r in results}
    assert codes == {0: (0, 0), 1: (0, 0), 2: (FaultCode.ABORTED, Unit.COMMAND)}
    assert [run[LaunchWord.PROGRAM] for run in bench.cores.runs].count(0x2000) == 9
    assert [run[LaunchWord.PROGRAM] for run in bench.cores.runs].count(0x3000) < 5


def test_abort_of_a_gang() -> None:
    """A gang that is out is handed out whole; the next one does not begin."""
    bench = Bench(SIX, delay=(150, 150))

    async def abort(ctx: Any) -> None:
        await ctx.tick().repeat(260)
        ctx.set(bench.bench.dut.abort, 0b1)

    bench.bench.add(abort)
    ((result,),) = bench.launch([(3, 2, 9)], gangs=(0,))
    assert (result.fault.code, result.fault.unit) == (FaultCode.ABORTED, Unit.COMMAND)
    assert 0 < len(bench.cores.runs) < 54
    assert len(bench.cores.runs) % 6 == 0
    assert all(run.reported for run in bench.cores.runs)


def test_throughput() -> None:
    """Ten flits (no arguments) and one cycle of choice per block; the first leaves in the cycle after the launch."""
    bench = Bench(SIX, delay=(1000, 1000))
    bench.launch([(6, 1, 1)])
    cycles = bench.flits.cycles
    assert [cycles[10 * k] - cycles[0] for k in range(6)] == [11 * k for k in range(6)]
    taken = next(t for t in bench.bench.traffic if t.name == "grids").cycles[0]
    assert cycles[0] == taken + 1


@pytest.mark.parametrize("pause", [0.0, 0.4])
def test_gangs(pause: float) -> None:
    """Block (x, y, z) on the core in column x and row y, each gang when the one before has ended."""
    bench = Bench(SIX, pause=pause)
    grids = [(3, 2, 4), (5, 1, 1), (3, 2, 1), (3, 2, 2)]
    rounds = bench.launch(*([grid] for grid in grids), pause=pause, gangs=(0, 2, 3))
    assert all(r.fault.code == FaultCode.NONE for (r,) in rounds)
    for k, grid in enumerate(grids):
        runs = [run for run in bench.cores.runs if run[LaunchWord.PROGRAM] == 0x1000 * (k + 1)]
        places = [tuple(run[word] for word in PLACE) for run in runs]
        assert places == blocks_of(grid)
        assert all(run.gang == (k != 1) for run in runs)
        if k == 1:
            continue
        assert [run.core for run in runs] == list(range(6)) * grid[2]
        for last, first in zip(range(5, len(runs) - 1, 6), range(6, len(runs), 6), strict=True):
            assert max(run.reported for run in runs[last - 5 : last + 1]) == min(r.reported for r in runs[first:]) - 1
            assert runs[first].start > max(run.end for run in runs[last - 5 : last + 1])


def test_a_gang_with_a_fault_is_handed_out_whole() -> None:
    """Its other blocks may wait for all to ask together; the next gang does not begin."""

    def judge(run: BlockRun) -> tuple[FaultCode, Unit, int, int] | None:
        return (FaultCode.BUS_ERROR, Unit.LOAD, 1, 2) if run.core == 0 and run[LaunchWord.BLOCK_Z] == 1 else None

    bench = Bench(SIX, judge=judge, delay=(1, 1))
    (first,), (second,) = bench.launch([(3, 2, 3)], [(3, 2, 1)], gangs=(0, 1))
    assert [first.fault.code, second.fault.code] == [FaultCode.BUS_ERROR, FaultCode.NONE]
    assert (first.fault.core, first.fault.block) == (0, 6)
    assert [run.core for run in bench.cores.runs] == [*range(6)] * 3


@pytest.mark.parametrize("seed", range(3))
def test_gangs_among_other_grids(seed: int) -> None:
    """Gangs of two queues and blocks of two others at the same time: no block of a gang waits for another's end."""
    bench = Bench(SIX, delay=(1, 120), seed=seed)
    grids = [(3, 2, 3), (7, 1, 1), (3, 2, 2), (11, 1, 1)]
    (results,) = bench.launch(grids, gangs=(0, 2), priorities=[1, 1, 2, seed])
    assert sorted(r.queue for r in results) == list(range(4))
    for k, grid in enumerate(grids):
        runs = [run for run in bench.cores.runs if run[LaunchWord.PROGRAM] == 0x1000 * (k + 1)]
        assert [tuple(run[word] for word in PLACE) for run in runs] == blocks_of(grid)
        for gang in range(0, len(runs), 6) if k in (0, 2) else ():
            members = runs[gang : gang + 6]
            assert [run.core for run in members] == list(range(6))
            earlier = bench.cores.runs[: bench.cores.runs.index(members[0])]
            assert max((run.end for run in earlier), default=0) < members[0].start
            place = bench.cores.runs.index(members[0])
            assert bench.cores.runs[place : place + 6] == members


def test_ended() -> None:
    """High from the end of a core's block of the gang until the next gang begins."""
    bench = Bench(SIX, delay=(1, 200))
    seen: list[tuple[int, int]] = []

    async def watch(ctx: Any) -> None:
        while True:
            _, _, ended = await ctx.tick().sample(bench.bench.dut.ended)
            seen.append((bench.bench.cycle, ended))

    bench.bench.add(watch)
    bench.launch([(3, 2, 3)], gangs=(0,))
    for gang in range(3):
        runs = bench.cores.runs[6 * gang : 6 * gang + 6]
        until = bench.cores.runs[6 * gang + 6].start - 40 if gang < 2 else seen[-1][0]
        for cycle, ended in seen:
            if runs[0].start <= cycle < until:
                over = sum(1 << run.core for run in runs if run.end + 8 < cycle and run.end + 60 < cycle)
                running = sum(1 << run.core for run in runs if cycle <= run.end)
                assert ended & running == 0
                assert ended & over == over


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)
