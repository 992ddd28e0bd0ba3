"""The model of an SDRAM: it keeps words, and finds each rule broken that is broken, and no other."""

from dataclasses import replace
from typing import Any

import pytest
from amaranth.sim import Simulator

from sley.fpga.memory.sdram.part import COMMON_32M, SdramPart
from sley.fpga.memory.sdram.pins import PRECHARGE_ALL, Command
from sley.fpga.testing.sdram_bench import broken_rules
from sley.fpga.testing.sdram_chip import SdramChip, SdramRule
from sley.hw.testing.simulation.engine import QuickEngine

CLOCK_HZ = 100_000_000  # tRCD 3, tRP 3, tRAS 5, tRC 7, tRRD 2, tWR 2, tRFC 7, tMRD 2, CAS latency 2 or 3
PART = replace(COMMON_32M, row_bits=2, power_up=100)

Step = dict[str, Any]
Steps = list[int | Step]


def step(command: Command = Command.NOP, bank: int = 0, address: int = 0, **more: int) -> Step:
    return {"command": command, "bank": bank, "address": address, "mask": 0, "drive": 0, **more}


def activate(bank: int = 0, row: int = 0) -> Step:
    return step(Command.ACTIVATE, bank, row)


def read(bank: int = 0, column: int = 0) -> Step:
    return step(Command.READ, bank, column)


def write(*words: int, bank: int = 0, column: int = 0, mask: int = 0) -> list[int | Step]:
    first, *rest = ({"out": word, "drive": 1, "mask": mask} for word in words)
    return [step(Command.WRITE, bank, column, **first), *(step(**word) for word in rest)]


def precharge(bank: int = 0) -> Step:
    return step(Command.PRECHARGE, bank)


REFRESH = step(Command.REFRESH)
CLOSE = step(Command.PRECHARGE, 0, PRECHARGE_ALL)
POWER_UP: Steps = [step(mask=3)] * 10


def start(cas: int = 2, burst: int = 1, refreshes: int = 8) -> Steps:
    """``burst`` is the logarithm."""
    mode = step(Command.MODE, 0, cas << 4 | burst)
    return [*POWER_UP, CLOSE, 2, *([REFRESH, 6] * refreshes), mode, 1]


def cycles_of(steps: Steps) -> int:
    return sum(one if isinstance(one, int) else 1 for one in steps)


def play(steps: Steps, part: SdramPart = PART, stored_rows: int | None = None) -> tuple[set[str], list[int]]:
    """Rules that are broken, and what is on the data pins in each cycle."""
    dut = SdramChip(part, CLOCK_HZ, stored_rows)
    words: list[int] = []

    async def process(ctx: Any) -> None:
        for one in steps:
            for each in [step()] * one if isinstance(one, int) else [one]:
                for name, value in each.items():
                    ctx.set(getattr(dut.sdram, name), value)
                words.append(ctx.get(dut.sdram.data))
                await ctx.tick()
        ctx.set(dut.sdram.command, Command.NOP)
        await ctx.tick()
        faults.append(ctx.get(dut.fault))

    faults: list[int] = []
    simulator = Simulator(dut, engine=QuickEngine)
    simulator.add_clock(1e-8)
    simulator.add_testbench(process)
    simulator.run()
    return broken_rules(faults[0]), words


@pytest.mark.parametrize("cas", [2, 3])
@pytest.mark.parametrize("burst", [0, 1, 2, 3])
@pytest.mark.parametrize("stored_rows", [None, 4])
def test_words(cas: int, burst: int, stored_rows: int | None) -> None:
    """Bursts of all lengths, in two rows of a bank and in another bank; what is not written is 0, and masks count."""
    length = 1 << burst
    words = [0x1111 * (k + 1) for k in range(length)]
    others = [0x4321 + k for k in range(length)]
    column = 16 + length  # the burst wraps within its block
    steps: Steps = [*start(cas, burst), activate(2, 1), 2, *write(*words, bank=2, column=column), 1, precharge(2), 2]
    steps += [activate(2, 3), 2, *write(*others, bank=2, column=column, mask=1), 1]
    steps += [activate(1, 3), 2]
    first = cycles_of(steps)
    steps += [read(2, column), length - 1, precharge(2), 2, activate(2, 1), 2]
    second = cycles_of(steps)
    steps += [read(2, column + length - 1), length - 1, read(1, 0), length + 3]
    broken, seen = play(steps, stored_rows=stored_rows)
    assert not broken
    assert seen[first + cas :][:length] == [word & 0xFF00 for word in others]
    assert seen[second + cas :][:length] == [words[-1], *words[:-1]]
    assert seen[second + cas + length :][:length] == [0] * length
    assert seen[second + cas - 1] != words[-1]  # neither early nor for longer
    assert seen[second + cas + 2 * length] != 0


def test_masks_of_reads_count_two_cycles_later() -> None:
    steps: Steps = [*start(), activate(), 2, *write(0x1234, 0x5678), 1, read(), step(mask=1), 3]
    broken, seen = play(steps)
    assert not broken
    assert seen[-3] == 0x1234
    assert seen[-2] == 0x5678 ^ 0xFF


UP = start()
OPENED: Steps = [*UP, activate(), 4]
CASES: dict[str, list[Steps]] = {
    "POWER_UP": [[3, CLOSE], [step(mask=0)], [step(mask=2)]],
    "START": [start(refreshes=7), [*POWER_UP, CLOSE, 2, *([REFRESH, 6] * 8), activate()]],
    "MODE": [start(burst=7), start(cas=1), start(cas=4)],
    "UNKNOWN": [[*UP, step(Command.STOP)]],
    "MODE_SET": [[*UP[:-1], activate()]],
    "REFRESHING": [[*UP, REFRESH, 5, activate()], [*UP, REFRESH, 5, REFRESH]],
    "ACTIVATE_OPEN": [[*UP, activate(), 9, activate()]],
    "BANK_TO_BANK": [[*UP, activate(0), activate(1)]],
    "PRECHARGING": [
        [*OPENED, precharge(), 1, 0, activate()],
        [*OPENED, 9, CLOSE, 1, activate(3)],
        [*OPENED, 9, precharge(), 1, REFRESH],
    ],
    "COLUMN_CLOSED": [[*UP, read()], [*OPENED, *write(1, 2, bank=1)], [*OPENED, CLOSE, 5, read()]],
    "ROW_TO_COLUMN": [[*UP, activate(), 1, read()], [*UP, activate(), 1, *write(1, 2)]],
    "AUTO_PRECHARGE": [[*OPENED, read(0, PRECHARGE_ALL)]],
    "CUT": [[*OPENED, read(), read()], [*OPENED, read(), precharge()]],
    "ROW_OPEN": [[*UP, activate(), 3, precharge()], [*UP, activate(), 3, CLOSE]],
    "WRITE_RECOVERY": [[*OPENED, *write(1, 2), precharge()]],
    "REFRESH_OPEN": [[*OPENED, 9, REFRESH]],
    "REFRESH_LATE": [[*UP, 1600]],
    "CONFLICT": [[*OPENED, read(), 3, *write(1, 2)], [*OPENED, read(), 2, *write(1, 2)]],
    "UNDRIVEN": [[*OPENED, step(Command.WRITE), step(drive=1)], [*OPENED, step(Command.WRITE, drive=1), step()]],
}


@pytest.mark.some(16)
@pytest.mark.parametrize(("rule", "number"), [(rule, k) for rule, cases in CASES.items() for k in range(len(cases))])
def test_a_broken_rule_is_found(rule: str, number: int) -> None:
    assert play(CASES[rule][number])[0] == {rule}


def test_rows_of_one_bank_within_trc() -> None:
    """It cannot be broken alone: a row is precharged before the next one, and tRAS and tRP are not less than tRC."""
    assert "ROW_CYCLE" in play([*UP, activate(), 1, precharge(), 1, activate()])[0]


def test_a_row_that_is_open_for_long() -> None:
    part = replace(PART, open_at_most=1_000)
    assert play([*UP, activate(), 98], part)[0] == set()
    assert play([*UP, activate(), 101], part)[0] == {"OPEN_LONG"}


def test_more_rows_than_are_stored() -> None:
    """Zeros take no room."""
    steps: Steps = [*UP]
    for row, word in enumerate((7, 0, 8, 9)):
        if row == 3:
            assert play(steps, stored_rows=2)[0] == set()
        steps += [activate(0, row), 2, *write(word, 0), 1, precharge(), 2]
    assert play(steps, stored_rows=2)[0] == {"STORAGE"}


JUST: Steps = [
    *UP,
    *[activate(0), 1, activate(1), 1, *write(1, 2, bank=0), read(1), 4, *write(3, 4, bank=1), 1, CLOSE, 2],
    *[activate(2), 4, precharge(2), 2, activate(2), 4, precharge(2), 2, REFRESH, 6, activate(0), 2, read(), 1],
    *[precharge(0), 2, REFRESH, 6, REFRESH, 6, activate()],
]


def test_as_fast_as_allowed_breaks_nothing() -> None:
    assert play(JUST)[0] == set()


def test_each_rule_is_tested() -> None:
    assert {*CASES, "ROW_CYCLE", "OPEN_LONG", "STORAGE"} == {rule.name for rule in SdramRule}
