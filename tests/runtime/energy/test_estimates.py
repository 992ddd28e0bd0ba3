"""Energy from counters: every amount by hand, scaling, engines."""

import pytest
from rich.console import Console

from sley.abi.config import preset
from sley.abi.counters import CHIP_GROUPS, COUNTERS, CounterGroup, Rows
from sley.driver import BadRequest, Counters
from sley.driver.errors import NoCycleCounts
from sley.driver.observe.counters import CORE_GROUPS
from sley.runtime import energy
from sley.runtime.energy.activity import Access

BASE, QUAD = preset("base"), preset("quad")
CYCLES = 1000


def zeros(groups: tuple[CounterGroup, ...]) -> dict[CounterGroup, dict[object, int]]:
    return {group: dict.fromkeys(COUNTERS[group], 0) for group in groups}


def counters(config=BASE, core: int = 0, **given: int) -> Counters:  # type: ignore[no-untyped-def]
    """Of a chip on which nothing happens but what is given, as GROUP_COUNTER=amount, on one core."""
    cores, chip = [zeros(CORE_GROUPS) for _ in range(config.cores)], zeros(CHIP_GROUPS)
    for name, value in {"BUS_CYCLES": CYCLES, **given}.items():
        group, _, counter = name.partition("_")
        home = chip if CounterGroup[group] in CHIP_GROUPS else cores[core]
        home[CounterGroup[group]][COUNTERS[CounterGroup[group]][counter]] = value
    return Counters(config, tuple(cores), chip)  # type: ignore[arg-type]


def test_macs_by_type() -> None:
    found = energy.estimate(counters(MATRIX_ROW_INT8=3), BASE)
    assert found.by_unit["matrix"] == pytest.approx(3 * 16 * 32 * 0.3e-12)
    found = energy.estimate(counters(MATRIX_ROW_BF16=3), BASE)
    assert found.by_unit["matrix"] == pytest.approx(3 * 16 * 16 * 2.0e-12)


def test_idle_chip_takes_its_leakage_alone() -> None:
    assert energy.estimate(counters(), BASE).joules == 0
    found = energy.estimate(counters(), BASE, point=energy.OperatingPoint(hertz=5e8, leakage=0.1))
    assert found.seconds == 2e-6
    assert found.by_unit["leakage"] == found.joules == found.on_chip == pytest.approx(0.2e-6)
    assert found.watts == pytest.approx(0.1)


def test_voltage() -> None:
    """Dynamic energy of the chip by its square, leakage as it is, DRAM not at all."""
    counted = counters(MATRIX_ROW_INT8=100, READ_BEAT=10, ROWS_SCRATCHPAD_READ=1)
    whole = energy.estimate(counted, BASE, point=energy.OperatingPoint(leakage=0.1))
    half = energy.estimate(counted, BASE, point=energy.OperatingPoint(leakage=0.1, volts=0.45))
    ratios = {unit: half.by_unit[unit] / value for unit, value in whole.by_unit.items() if value}
    assert ratios["matrix"] == ratios["scratchpad"] == pytest.approx(0.25)
    assert ratios["leakage"] == pytest.approx(0.5)
    assert ratios["dram"] == 1


def test_dram_is_a_range() -> None:
    found = energy.estimate(counters(READ_BEAT=2, WRITE_BEAT=1), BASE)
    assert found.joules == pytest.approx(3 * 32 / 8 * 1950e-12)
    assert found.bounds == pytest.approx((3 * 32 / 8 * 1300e-12, 3 * 32 / 8 * 2600e-12))
    assert found.on_chip == 0


def test_hops_of_each_core() -> None:
    near, far = (energy.estimate(counters(QUAD, core, TRAFFIC_LOAD_BEATS=5), QUAD) for core in (2, 1))
    assert near.by_unit["network"] == pytest.approx(5 * 32 * 0.17e-12)
    assert far.by_unit["network"] == pytest.approx(3 * near.by_unit["network"])


@pytest.mark.parametrize("kind", Rows)
def test_rows_of_memories(kind: Rows) -> None:
    """Banks of 32 KB both: 20 pJ for 64 bits. A row of the scratchpad has 256 bits, one of the accumulators 512."""
    found = energy.estimate(counters(**{f"ROWS_{kind.name}": 7}), BASE)  # type: ignore[arg-type]
    unit, words = ("scratchpad", 4) if "SCRATCHPAD" in kind.name else ("accumulators", 8)
    assert found.by_unit[unit] == found.joules == pytest.approx(7 * words * 20e-12)
    (spent,) = found.spent
    assert isinstance(spent.activity.item, Access)
    assert spent.activity.item.write == ("WRITTEN" in kind.name)


def test_work_of_the_vector_unit() -> None:
    found = energy.estimate(counters(VECTOR_ROW=7), BASE)
    assert found.by_unit["vector"] == pytest.approx(7 * 16 * 4.6e-12)


def test_instructions() -> None:
    found = energy.estimate(counters(SEQUENCER_EXECUTE=20), BASE)
    assert found.by_unit["sequencer"] == pytest.approx(10 * (2 * 10 + 0.1) * 1e-12)  # 8 KB of program memory


def test_engine_without_cycles_is_refused() -> None:
    with pytest.raises(NoCycleCounts):
        energy.estimate(counters(BUS_CYCLES=0, MATRIX_ROW_INT8=3), BASE)


def test_counters_of_another_chip_are_refused() -> None:
    with pytest.raises(BadRequest, match="counters of base, and the chip is quad"):
        energy.estimate(counters(), QUAD)


@pytest.mark.parametrize(
    ("name", "value"), [("hertz", 0.0), ("volts", -1.0), ("leakage", -0.1), ("hertz", float("inf"))]
)
def test_no_such_operating_point(name: str, value: float) -> None:
    with pytest.raises(BadRequest, match=f"{name} is {value!r}; it must be"):
        energy.OperatingPoint(**{name: value})


def test_a_table_that_lacks_something_says_what() -> None:
    table = energy.published("AccelForge")
    assert energy.estimate(counters(MATRIX_ROW_INT8=3), BASE, table=table).by_unit["matrix"] > 0
    with pytest.raises(BadRequest, match="AccelForge has no 'fp32 multiply'"):
        energy.estimate(counters(VECTOR_ROW=1), BASE, table=table)


def test_printed() -> None:
    console = Console(width=120, record=True)
    with console.capture() as shown:
        console.print(energy.estimate(counters(MATRIX_ROW_INT8=1000, READ_BEAT=1), BASE))
    text = shown.get()
    assert "int8 MACs" in text
    assert "512,000" in text
    assert "published ranges" in text
    assert "bf16" not in text
