"""Performance counters on the whole machine: every cycle is counted once, amounts are those of the golden model, and
each event shows in its own class."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from unit_kernels import RandomKernel

from sley.abi.asm import assemble
from sley.abi.config import preset
from sley.abi.counters import (
    COUNTERS,
    UNIT_GROUPS,
    Bus,
    Counter,
    CounterGroup,
    LoadCycle,
    MatrixCycle,
    ReadCycle,
    Rows,
    SequencerCycle,
    StoreCycle,
    Traffic,
    VectorCycle,
    WriteCycle,
)
from sley.driver.errors import NoCycleCounts
from sley.driver.observe.counters import Counters
from sley.runtime.device.device import Device
from sley.runtime.device.program import Program
from sley.runtime.device.stream import Count
from sley.sim.engines.options import default_engine

needs_compiler = pytest.mark.skipif(default_engine() != "fast", reason="no C compiler")
BYTES = 4096


@pytest.fixture(scope="module")
def nano() -> Iterator[Device]:
    if default_engine() != "fast":
        pytest.skip("no C compiler")
    with Device.open("fast:nano?memory=1M", hang_cycles=20_000) as device:
        yield device


def run(device: Device, text: str, grid: tuple[int, ...] = (1,)) -> Count:
    """Counts of a program whose r8 and r9 are memory to read and to write.

    It has run before, so that no core is scrubbed and all translations are known.
    """
    program = Program("test", tuple(assemble(f"{text}\nend")))
    source, target = device.array(np.arange(BYTES) % 251), device.empty(BYTES, np.int64)
    device.stream.launch(program, [source, target], grid)
    with device.stream.counted() as count:
        device.stream.launch(program, [source, target], grid)
    return count


def check_sums(count: Count, cores: int = 1) -> None:
    """Every group of classes adds up to all cycles."""
    c = count.counters
    assert c.cycles == c.chip[CounterGroup.BUS][Bus.CYCLES] > count.cycles > 0
    for core in c.cores[:cores]:
        for group in UNIT_GROUPS:
            assert sum(core[group].values()) == c.cycles, group
            assert core[group][max(COUNTERS[group])] >= count.outside > 0
    for group in (CounterGroup.READ, CounterGroup.WRITE):
        assert sum(c.chip[group].values()) == c.cycles


def exact(counters: Counters) -> dict[tuple[int, str, str], int]:
    """The counters that every engine must agree on."""
    return {
        (number, group.name, counter.name): value
        for number, core in enumerate(counters.cores)
        for group, values in core.items()
        for counter, value in values.items()
        if counter.exact
    }


@needs_compiler
@pytest.mark.parametrize("chip", ["nano", pytest.param("edge", marks=pytest.mark.slow)])
def test_random_kernels(chip: str) -> None:
    """Classes add up, and the work is what the golden model counts."""
    with (
        Device.open(f"fast:{chip}?memory=1M", hang_cycles=20_000) as fast,
        Device.open(f"model:{chip}?memory=1M", hang_cycles=20_000) as model,
    ):
        seen: dict[tuple[int, str, str], int] = {}
        for seed in range(40):
            text = RandomKernel(fast.config, seed).text
            count = run(fast, text)
            check_sums(count)
            found = exact(count.counters)
            assert found == exact(run(model, text).counters), text
            seen = {key: value + seen.get(key, 0) for key, value in found.items()}
        assert all(value for key, value in seen.items() if "BF16" not in key[2]), seen


@needs_compiler
@pytest.mark.slow
def test_every_core_counts_for_itself(tmp_path: Path) -> None:
    square = tmp_path / "square.json"
    square.write_text(preset("nano").replace(name="square", cores_x=2, cores_y=2).to_json())
    text = "add r20, r0, #7\nmatmul r0, r0, r20"
    with Device.open(f"fast:{square}?memory=1M", hang_cycles=20_000) as device:
        count = run(device, text, grid=(4,))
        check_sums(count, cores=4)
        assert [core[CounterGroup.MATRIX][MatrixCycle.ROW_INT8] for core in count.counters.cores] == [7] * 4
        assert count.counters.macs(2) == 7 * 16
        count = run(device, text)
        assert [core[CounterGroup.MATRIX][MatrixCycle.ROW_INT8] for core in count.counters.cores] == [7, 0, 0, 0]


def test_model_refuses_cycles() -> None:
    with Device.open("model:nano?memory=1M") as device:
        counters = run(device, "add r20, r0, #7\nmatmul r0, r0, r20").counters
        assert counters.macs(0) == 7 * 16
        with pytest.raises(NoCycleCounts, match="engine model has none"):
            counters.share(CounterGroup.MATRIX, MatrixCycle.ROW_INT8)


def test_clock(nano: Device) -> None:
    """What is counted is the time between two readings; while they are read, counters stand still."""
    driver = nano.driver
    before = driver.counters()
    start = driver.time
    nano.driver.transport.advance(1000)
    elapsed = driver.time - start
    counted = (driver.counters() - before).cycles
    assert 0 < counted - elapsed < 40
    driver.registers.write("CHIP.COUNTER_CONTROL", freeze=1)
    driver.transport.advance(16)
    driver.registers.write("CHIP.COUNTER_SELECT", group=CounterGroup.BUS, counter=Bus.CYCLES)
    first = driver.registers.value("CHIP.COUNTER")
    nano.driver.transport.advance(1000)
    assert driver.registers.value("CHIP.COUNTER") == first
    driver.registers.write("CHIP.COUNTER_SELECT", group=15, counter=0)
    assert driver.registers.value("CHIP.COUNTER") == 0
    driver.registers.write("CHIP.COUNTER_CONTROL", freeze=0)


def test_a_reset_leaves_the_counters(nano: Device) -> None:
    before = nano.driver.counters()
    nano.driver.reset()
    check = nano.driver.counters() - before
    for group in UNIT_GROUPS:
        assert sum(check.cores[0][group].values()) == check.cycles > 0


def delay(iterations: int) -> str:
    """2 cycles of the sequencer for each iteration."""
    return f"loop #{iterations}, d{iterations}\nd{iterations}: add r0, r0, #0"


ROWS = "add r20, r0, #6\nadd r21, r0, #14\nadd r22, r0, #64\n"
LOAD = "set load.run_bytes, #32\nset load.chunks, #8\nset load.local_stride, #8\nset load.mem_stride, #32\n"
STORE = "set store.run_bytes, #32\nset store.local_stride, #8\nset store.mem_stride, #32\n"

Change = tuple[str, str, dict[Counter, int]]
EVENTS: dict[str, Change] = {
    # Of each pair of programs the second does more of one thing; all other classes of the unit stay as they are.
    "matrix row": (ROWS + "matmul r0, r0, r20", ROWS + "matmul r0, r0, r21", {MatrixCycle.ROW_INT8: 8}),
    "matrix semaphore": (
        f"{ROWS}matmul r0, r0, r20 wait=1\n{delay(10)}\nsync signal=1",
        f"{ROWS}matmul r0, r0, r20 wait=1\n{delay(60)}\nsync signal=1",
        {MatrixCycle.SEMAPHORE: 100},
    ),
    "matrix signal": (
        "loop #16, m\nm: matmul r0, r0, r0 signal=1\n" + delay(100) + "\nloop #16, w\nw: sync wait=1",
        "loop #16, m\nm: matmul r0, r0, r0 signal=1\n" + delay(150) + "\nloop #16, w\nw: sync wait=1",
        {MatrixCycle.SIGNAL: 100},
    ),
    "matrix empty": (
        f"{ROWS}matmul r0, r0, r20\n{delay(50)}",
        f"{ROWS}matmul r0, r0, r20\n{delay(90)}",
        {MatrixCycle.EMPTY: 80},
    ),
    "load beat": (
        f"{ROWS}{LOAD}load r8, r0, r20",
        f"{ROWS}{LOAD}load r8, r0, r21",
        {LoadCycle.BEAT: 64},
    ),
    "load row": (
        f"{ROWS}{LOAD}set load.pad_runs, #1\nload r8, r0, r20",
        f"{ROWS}{LOAD}set load.pad_runs, #6\nload r8, r0, r20",
        {LoadCycle.ROW: 40},
    ),
    "load semaphore": (
        f"{LOAD}load r8, r0, r0 wait=1\n{delay(10)}\nsync signal=1",
        f"{LOAD}load r8, r0, r0 wait=1\n{delay(60)}\nsync signal=1",
        {LoadCycle.SEMAPHORE: 100},
    ),
    "load signal": (
        "loop #16, m\nm: load r8, r0, r0 signal=1\n" + delay(100) + "\nloop #16, w\nw: sync wait=1",
        "loop #16, m\nm: load r8, r0, r0 signal=1\n" + delay(150) + "\nloop #16, w\nw: sync wait=1",
        {LoadCycle.SIGNAL: 100},
    ),
    "store beat": (
        f"{ROWS}{STORE}store r9, r0, r20",
        f"{ROWS}{STORE}store r9, r0, r21",
        {StoreCycle.BEAT: 64},
    ),
    "store semaphore": (
        f"{STORE}store r9, r0, r0 wait=1\n{delay(10)}\nsync signal=1",
        f"{STORE}store r9, r0, r0 wait=1\n{delay(60)}\nsync signal=1",
        {StoreCycle.SEMAPHORE: 100},
    ),
    "store signal": (
        "loop #16, m\nm: store r9, r0, r0 signal=1\n" + delay(100) + "\nloop #16, w\nw: sync wait=1",
        "loop #16, m\nm: store r9, r0, r0 signal=1\n" + delay(150) + "\nloop #16, w\nw: sync wait=1",
        {StoreCycle.SIGNAL: 100},
    ),
    "vector row": (
        f"{ROWS}vector r0, r0, r20 a_space=accumulator",
        f"{ROWS}vector r0, r0, r21 a_space=accumulator",
        {VectorCycle.ROW: 8},
    ),
    "vector operands": (
        # A and B in one bank of the accumulators: each row takes two cycles instead of one.
        f"{ROWS}set vector.b_row, #64\nvector r0, r0, r20 a_space=accumulator b_op=add b_space=accumulator",
        f"{ROWS}set vector.b_row, #32\nvector r0, r0, r20 a_space=accumulator b_op=add b_space=accumulator",
        {VectorCycle.OPERANDS: 6},
    ),
    "vector semaphore": (
        f"{ROWS}vector r0, r0, r20 a_space=accumulator wait=1\n{delay(10)}\nsync signal=1",
        f"{ROWS}vector r0, r0, r20 a_space=accumulator wait=1\n{delay(60)}\nsync signal=1",
        {VectorCycle.SEMAPHORE: 100},
    ),
    "vector signal": (
        "loop #16, m\nm: vector r0, r0, r0 signal=1\n" + delay(100) + "\nloop #16, w\nw: sync wait=1",
        "loop #16, m\nm: vector r0, r0, r0 signal=1\n" + delay(150) + "\nloop #16, w\nw: sync wait=1",
        {VectorCycle.SIGNAL: 100},
    ),
    "sequencer execute": (delay(10), delay(60), {SequencerCycle.EXECUTE: 100}),
}
"""A program, a changed one, and by how many cycles its classes differ."""
LOOSE = {"store beat": (StoreCycle.MEMORY, StoreCycle.ACKNOWLEDGE)}
"""Classes that may differ besides: bursts need not fall alike."""


@pytest.mark.parametrize("name", EVENTS)
def test_event(nano: Device, name: str) -> None:
    first, second, expected = EVENTS[name]
    kind = type(next(iter(expected)))
    group = next(group for group, counters in COUNTERS.items() if counters is kind)
    before, after = run(nano, first), run(nano, second)
    check_sums(before)
    check_sums(after)
    # The last class depends on what is around the block, EMPTY on how long the block is.
    ignored = {max(kind), *LOOSE.get(name, ())}
    if "empty" not in name and kind is not SequencerCycle:
        ignored.add(next(counter for counter in kind if counter.name == "EMPTY"))
    change = {c: after.counters.cores[0][group][c] - before.counters.cores[0][group][c] for c in kind}
    assert {c: n for c, n in change.items() if n and c not in ignored} == expected


def rates(device: Device, text: str, kind: type[Counter]) -> dict[str, int]:
    count = run(device, text)
    check_sums(count)
    group = next(group for group, counters in COUNTERS.items() if counters is kind)
    values = count.counters.chip if group in count.counters.chip else count.counters.cores[0]
    return {counter.name: value for counter, value in values[group].items()}


@pytest.mark.parametrize("rows", [1, 2])
def test_short_matmuls_wait_for_each_other(nano: Device, rows: int) -> None:
    """MATMULs that accumulate to the same rows, queued before the first one starts."""
    repeated = "loop #6, m\nm: matmul r0, r0, r20 accumulate=1\nsync signal=1"
    found = rates(nano, f"add r20, r0, #{rows}\nmatmul r0, r0, r20 wait=1\n{repeated}", MatrixCycle)
    assert found["ROW_INT8"] == 7 * rows
    assert 8 <= found["HAZARD"] <= 40


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_tiles_wait_for_weights(nano: Device, rows: int) -> None:
    """Tiles of few rows, queued before the first one starts: 4 cycles each for the weights."""
    tile = "matmul r20, r0, r21\n"
    text = f"add r20, r0, #128\nadd r21, r0, #{rows}\nweights r0, #4 wait=1\n{tile}weights r0, #4\n{tile}"
    found = rates(nano, f"{text}weights r0, #4\n{tile}sync signal=1", MatrixCycle)
    assert found["ROW_INT8"] == 3 * rows
    assert found["WEIGHTS"] == 3 + 2 * (4 - rows)
    assert found["HAZARD"] == 0
    assert found["OPERANDS"] == 0  # nobody has a higher priority


def test_sequencer_waits(nano: Device) -> None:
    many = rates(nano, "add r20, r0, #50\nloop #30, v\nv: vector r0, r0, r20 a_space=accumulator", SequencerCycle)
    assert many["VECTOR_QUEUE"] > 20 * 50 > many["END"] > 50
    assert many["MATRIX_QUEUE"] == many["LOAD_QUEUE"] == many["STORE_QUEUE"] == 0
    found = rates(nano, "matmul r0, r0, r0 signal=3\nsync wait=3\nsync signal=4\nsync wait=4", SequencerCycle)
    assert 0 < found["SYNC_WAIT"] < 40
    assert found["LAUNCH"] == 11
    full = "loop #15, s\ns: sync signal=3\nadd r20, r0, #20\nvector r0, r0, r20 a_space=accumulator signal=4\n"
    full += "matmul r0, r0, r0 wait=3,4\nsync signal=3\nloop #15, w\nw: sync wait=3"
    found = rates(nano, full, SequencerCycle)
    assert 20 < found["SYNC_SIGNAL"] < 80


def test_bank_conflicts(nano: Device) -> None:
    same = "set vector.b_row, #32\nvector r0, r0, r20 a_space=accumulator b_op=add b_space=accumulator"
    found = rates(nano, f"{ROWS}{same}", Traffic)
    assert found["ACCUMULATOR_VECTOR_B"] == 6
    conflicts = {name: value for name, value in found.items() if name.startswith(("SCRATCHPAD", "ACCUMULATOR"))}
    assert sum(conflicts.values()) == 6
    # Weights of the next tile in the bank of the activations
    found = rates(nano, f"{ROWS}matmul r0, r0, r22\nweights r0, #4", Traffic)
    assert found["SCRATCHPAD_WEIGHTS"] > 20
    found = rates(nano, f"{ROWS}matmul r0, r0, r22\nadd r23, r0, #256\nweights r23, #4", Traffic)
    assert found["SCRATCHPAD_WEIGHTS"] == 0


ACCESSES: dict[str, tuple[str, tuple[int, int, int, int]]] = {
    # Rows read from and written to the scratchpad, then the accumulators.
    "nothing": (delay(10), (0, 0, 0, 0)),
    "matmul": (f"{ROWS}matmul r0, r0, r21", (14, 0, 0, 14)),
    "accumulate": (f"{ROWS}matmul r0, r0, r21 accumulate=1", (14, 0, 14, 14)),
    "weights": (f"{ROWS}weights r0, #3\nmatmul r0, r0, r20", (3 + 6, 0, 0, 6)),
    "vector": (f"{ROWS}vector r0, r0, r20 a_space=accumulator", (0, 0, 6, 6)),
    "operand B": (
        f"{ROWS}set vector.b_row, #32\nvector r0, r0, r20 a_space=accumulator b_op=add b_space=accumulator",
        (0, 0, 12, 6),
    ),
    "int8 results": (f"{ROWS}vector r0, r0, r20 a_space=accumulator out=int8", (0, 6, 6, 0)),
    "load": (f"{ROWS}{LOAD}load r8, r0, r20", (0, 48, 0, 0)),
    "load zeros": (f"{ROWS}{LOAD}set load.pad_runs, #1\nload r8, r0, r20", (0, 56, 0, 0)),
    "load sums": (
        f"{ROWS}set load.run_bytes, #16\nset load.mem_stride, #16\nload r8, r0, r20 space=accumulator",
        (0, 0, 0, 24),
    ),
    "store": (f"{ROWS}{STORE}store r9, r0, r20", (48, 0, 0, 0)),
    "store sums": (
        f"{ROWS}set store.run_bytes, #16\nset store.mem_stride, #16\nstore r9, r0, r20 space=accumulator",
        (0, 0, 24, 0),
    ),
}


@pytest.mark.parametrize("name", ACCESSES)
def test_rows_of_memories(nano: Device, name: str) -> None:
    text, expected = ACCESSES[name]
    assert tuple(rates(nano, text, Rows).values()) == expected


@needs_compiler
@pytest.mark.parametrize(("kind", "name"), [(LoadCycle, "MEMORY"), (ReadCycle, "WAIT"), (StoreCycle, "ACKNOWLEDGE")])
def test_memory_latency_shows(kind: type[Counter], name: str) -> None:
    """One transfer waits for one round trip more or less."""
    one = f"{ROWS}{LOAD}{STORE}load r8, r0, r20 signal=1\nstore r9, r0, r20 wait=1"
    found = []
    for latency in (20, 120):
        with Device.open(f"fast:nano?memory=1M&latency={latency}", hang_cycles=20_000) as device:
            found.append(rates(device, one, kind)[name])
    assert found[1] - found[0] >= 95


def test_bus_beats(nano: Device) -> None:
    """Beats of the bus are those of the cores and of the command processor."""
    count = run(nano, f"{ROWS}{LOAD}{STORE}load r8, r0, r20 signal=1\nstore r9, r0, r20 wait=1")
    c = count.counters
    assert c.traffic(Traffic.LOAD_BYTES) == c.traffic(Traffic.STORE_BYTES) == 6 * 32
    assert c.traffic(Traffic.LOAD_BEATS) == c.traffic(Traffic.STORE_BEATS) == 6 * 8
    load = c.cores[0][CounterGroup.LOAD]
    assert (load[LoadCycle.BEAT], load[LoadCycle.ROW]) == (6 * 8, 0)  # nothing is padded
    # Each packet is 16 beats of reading; a fence writes 4 beats, the read index one for each packet.
    others = c.chip[CounterGroup.READ][ReadCycle.BEAT] - 6 * 8 - c.traffic(Traffic.FETCH_BEATS)
    assert others == 2 * 16
    assert c.chip[CounterGroup.WRITE][WriteCycle.BEAT] == 6 * 8 + 4 + 2


@pytest.fixture
def opened() -> Iterator[Callable[[str], Device]]:
    devices: list[Device] = []

    def open_device(url: str) -> Device:
        devices.append(Device.open(url, hang_cycles=20_000))
        return devices[-1]

    yield open_device
    for device in devices:
        device.close()


@pytest.mark.slow
@needs_compiler
def test_engines_agree(opened: Callable[[str], Device]) -> None:
    """All counters, in the interpreted gateware and in the compiled one."""
    text = f"{ROWS}{LOAD}{STORE}load r8, r0, r20 signal=1\nmatmul r0, r0, r21 wait=1 signal=2\n"
    text += "vector r0, r0, r20 a_space=accumulator wait=2 signal=3\nstore r9, r0, r20 wait=3"
    found = [run(opened(f"{engine}:nano?memory=1M"), text) for engine in ("pysim", "fast")]
    assert found[0].cycles == found[1].cycles
    ignored = {max(kind) for kind in (SequencerCycle, LoadCycle, StoreCycle, MatrixCycle, VectorCycle)}
    for group, values in found[0].counters.cores[0].items():
        other = found[1].counters.cores[0][group]
        assert {c.name: n for c, n in values.items() if c not in ignored} == {
            c.name: n for c, n in other.items() if c not in ignored
        }


@needs_compiler
def test_code_of_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "theory" / "counters.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(compile(code, "counters.md", "exec"), {})
