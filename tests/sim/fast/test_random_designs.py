"""The fast engine against Amaranth's own simulator, in lock step and bit for bit, on random designs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from design_batch import DOMAINS
from lockstep import differences, reproducer, without_garbage_collection
from random_designs import design_source
from shrink import shrink

BATCH = 32
"""Designs in one top module, and so in one compiled library."""

BATCHES, SLOW_BATCHES, CAMPAIGN_BATCHES = 2, 20, 42
"""Batches of the default run, of the slow one and of the campaign, with seeds of their own: 2,048 designs."""

OPTIMISED_EVERY = 8
"""One batch in so many is compiled with the optimisation of the engine, which takes longer."""

SHRINK_SECONDS = 60

CONSTRUCTS = [
    *(" + ", " - ", " * ", " // ", " % ", " & ", " | ", " ^ ", " == ", " != ", " < ", " <= ", " > ", " >= "),
    *(" << ", " >> ", "(~", "(-", "abs(", ".bool()", ".any()", ".all()", ".xor()", "Mux(", "Cat(", "Array("),
    *(".replicate(", ".bit_select(", ".word_select(", ".matches(", ".as_signed()", ".as_unsigned()", "[::-1]"),
    *(".shift_left(", ".shift_right(", ".rotate_left(", ".rotate_right(", ".If(", ".Elif(", ".Else(", ".Switch("),
    *(".Case()", ".Default(", ".FSM(", ".ongoing(", "reset_less=True", "Module()", "for lane in", "if lane == "),
    *("ResetInserter(", "EnableInserter(", "DomainRenamer(", "ClockDomain(", "Memory(", "granularity=", "sum("),
    *('read_port(domain="comb")', "transparent_for=(w", ".write_port(", "reduce(", "ResetSignal("),
    *("Print(", "Assert(", "Assume(", "Cover(", "Format(", *(f".d.{domain} +=" for domain in DOMAINS)),
]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Libraries that are used once stay out of the user's cache."""
    monkeypatch.setenv("SLEY_CACHE", str(tmp_path))


def check(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if batch % OPTIMISED_EVERY:
        monkeypatch.setenv("CFLAGS", "-O0")
    sources = {f"d{seed}": design_source(seed) for seed in range(batch * BATCH, (batch + 1) * BATCH)}
    with without_garbage_collection():
        wrong = differences(sources, seed=batch)
    if wrong:
        suspects = {name: source for name, source in sources.items() if name in wrong}
        if not suspects or not differences(suspects, seed=batch):
            suspects = sources
        messages = [f"{name or 'engine'}: {message}" for name, message in wrong.items()]
        pytest.fail("\n".join([*messages, "", reproducer(suspects, batch, SHRINK_SECONDS)]), pytrace=False)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_designs(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    check(batch, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(BATCHES, BATCHES + SLOW_BATCHES))
def test_many_random_designs(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    check(batch, monkeypatch)


@pytest.mark.campaign
@pytest.mark.parametrize("batch", range(BATCHES + SLOW_BATCHES, BATCHES + SLOW_BATCHES + CAMPAIGN_BATCHES))
def test_campaign(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    check(batch, monkeypatch)


CORNER_CASES = {
    "constant_register_among_others": """
def design(m, domains):
    kept, moved, shown = Signal(2, init=1, reset_less=True), Signal(3, init=1), Signal()
    m.d.sync += moved.eq(0)
    with m.Switch(0):
        with m.Case('-'):
            m.d.sync += shown.eq(0)
        with m.Default():
            m.d.sync += kept.eq(0)
    return [], [kept, shown, moved], {}
""",
    "halves_that_are_equal": """
def design(m, domains):
    i1, z = Signal(), Signal(4)
    state = [Signal(8, name=f"state{lane}") for lane in range(4)]
    for lane in range(4):
        m.d.sync += state[lane].eq(Mux(i1, state[lane].replicate(2), 1))
        m.d.sync += z[lane].eq(state[lane])
    return [i1], [z, *state], {}
""",
    "loop_that_computes_even_and_odd_places": """
def design(m, domains):
    i1 = Signal(8)
    kept = [Signal(8, name=f"kept{lane}") for lane in range(8)]
    state = [Signal(8, name=f"state{lane}") for lane in range(48)]
    for lane in range(8):
        common = kept[lane] * i1 + lane
        m.d.sync += kept[lane].eq(common)
        m.d.sync += state[2 * lane].eq(common + 1)
        m.d.sync += state[2 * lane + 1].eq(common ^ 0x55)
    for lane in range(16, 48):
        m.d.sync += state[lane].eq(state[lane - 16])
    return [i1], state, {}
""",
    "two_ports_that_share_a_row": """
def design(m, domains):
    i1 = Signal(8)
    enable = Signal(2)
    address = Signal(2)
    state = [Signal(8, name=f"s{lane}") for lane in range(18)]
    for lane in range(18):
        m.d.sync += state[lane].eq(state[lane] * i1 + lane)
    m.submodules.rows = rows = Memory(shape=unsigned(288), depth=4, init=[])
    high, low = rows.write_port(granularity=8), rows.write_port(granularity=8)
    shown = rows.read_port(domain="comb")
    m.d.comb += [port.addr.eq(address) for port in (low, high, shown)]
    m.d.comb += [low.data.eq(Cat(state)), high.data.eq(Cat(Const(0, 144), state))]
    m.d.comb += [low.en.eq(enable[0].replicate(18)), high.en.eq(Cat(Const(0, 18), enable[1].replicate(18)))]
    return [i1, enable, address], [shown.data], {"rows": rows}
""",
    "long_shift_registers": """
def design(m, domains):
    i1 = Signal(8)
    count = 150
    up, down, both = [[Signal(8, name=f"{name}{lane}") for lane in range(count)] for name in ("u", "d", "b")]
    for lane in range(count):
        below, above = lane - 1, (lane + 1) % count
        m.d.sync += up[lane].eq(up[below] + 1 if lane else i1)
        m.d.sync += down[lane].eq(down[above] ^ 3 if above else i1)
        m.d.sync += both[lane].eq(both[below] + both[above] + 1)
    return [i1], [Cat(up), Cat(down), Cat(both)], {}
""",
    "cases_that_meet": """
def design(m, domains):
    i1 = Signal(3)
    i2 = Signal()
    bits, twice, any, ended = Signal(8), Signal(4), Signal(4), Signal(4)
    m.d.sync += bits.bit_select(i1, 1).eq(i2)
    with m.Switch(i1):
        with m.Case(3):
            pass
        with m.Case(3, 4):
            m.d.sync += twice.eq(twice + 1)
    with m.Switch(i1):
        with m.Case('-11'):
            pass
        with m.Case(3, 4):
            m.d.sync += any.eq(any + 1)
    with m.Switch(i1):
        with m.Case(3):
            m.d.sync += ended.eq(5)
        with m.Case(4):
            m.d.sync += ended.eq(ended + 1)
        with m.Case(6):
            pass
        with m.Default():
            m.d.sync += ended.eq(5)
    return [i1, i2], [bits, twice, any, ended], {}
""",
    "loops_whose_registers_wait": """
def design(m, domains):
    i1 = Signal(8)
    i2 = Signal()
    i3 = Signal()
    on, off, either, rest = [
        [Signal(8, name=f"{name}{lane}", init=lane, reset_less=True) for lane in range(count)]
        for name, count in (("on", 40), ("off", 24), ("either", 72), ("rest", 36))
    ]
    for lane in range(40):
        with m.If(i2):
            m.d.sync += on[lane].eq(on[lane - 1] * i1 + lane)
    for lane in range(24):
        with m.If(~i3):
            m.d.sync += off[lane].eq(off[lane] ^ on[lane] ^ i1)
    for lane in range(72):
        with m.If(i2):
            m.d.sync += either[lane].eq(either[lane] + i1)
        with m.Elif(i3):
            m.d.sync += either[lane].eq(either[lane] * i1)
    for lane in range(36):
        with m.If(i2):
            m.d.sync += rest[lane].eq(rest[lane] + i1)
        with m.Else():
            m.d.sync += rest[lane].eq(rest[lane - 1])
    return [i1, i2, i3], [Cat(on), Cat(off), Cat(either), Cat(rest)], {}
""",
    "grid_with_other_logic_at_its_edges": """
def design(m, domains):
    west = [Signal(4, name=f"w{row}") for row in range(5)]
    north = Signal(4)
    i3 = Signal()
    state = [[Signal(4, name=f"state_{row}_{column}") for column in range(5)] for row in range(5)]
    total = [[Signal(6, name=f"total_{row}_{column}") for column in range(5)] for row in range(5)]
    for row in range(5):
        m.d.sync += west[row].eq(west[row - 1] if row else north)
        for column in range(5):
            left = state[row][column - 1] if column else west[row]
            above = total[row - 1][column] if row else Const(7, 3)
            with m.If(i3 | left[0]):
                m.d.sync += state[row][column].eq(left)
            m.d.sync += total[row][column].eq(above + left)
    return [north, i3], [signal for row in state + total for signal in row], {}
""",
}


@pytest.mark.some(4)
@pytest.mark.parametrize("name", CORNER_CASES)
def test_corner_case(name: str) -> None:
    assert not differences({name: CORNER_CASES[name]}, seed=26)


def test_seed_decides_the_design() -> None:
    """Nothing else does: not what the process hashes strings with, nor what it made before."""
    program = (
        f"import sys; sys.path[:] = {sys.path!r}; from random_designs import design_source; print(design_source(7))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout == f"{design_source(7)}\n" != f"{design_source(8)}\n"


def test_designs_use_the_whole_language() -> None:
    text = "".join(design_source(seed) for seed in range(512))
    assert [construct for construct in CONSTRUCTS if construct not in text] == []
    widths = {int(width) for width in re.findall(r"signed\((\d+)\)", text)}
    assert widths >= {*range(18), 31, 32, 33, 63, 64, 65, 127, 128, 129, 200}


def test_failing_design_is_made_small() -> None:
    source = next(text for text in map(design_source, range(64)) if " // " in text and text.count("\n") > 40)
    assert shrink(source, lambda text: "//" in text, seconds=20).count("\n") <= 4
