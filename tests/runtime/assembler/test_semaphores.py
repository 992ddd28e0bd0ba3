"""Initial values of semaphores: raised at the start of a block, taken back at its end."""

from collections.abc import Callable
from typing import Any

import pytest

from sley.abi.asm import disassemble
from sley.abi.config import preset
from sley.abi.faults import Unit
from sley.runtime import ZERO, Device, KernelBuilder, KernelError, Semaphore

NANO = preset("nano")
Reporting = Callable[[], Any]


def wait_in(k: KernelBuilder, unit: Unit, wait: list[Semaphore]) -> None:
    """An instruction of a unit that waits and does nothing else."""
    {
        Unit.SEQUENCER: lambda: k.sync(wait=wait),
        Unit.LOAD: lambda: k.load(ZERO, 0, ZERO, wait=wait),
        Unit.STORE: lambda: k.store(ZERO, 0, ZERO, wait=wait),
        Unit.MATRIX: lambda: k.matmul(0, 0, 0, wait=wait),
        Unit.VECTOR: lambda: k.vector(0, 0, 0, wait=wait),
    }[unit]()


def test_initial_semaphores_are_seeded_and_taken_back(reporting: Reporting) -> None:
    kernel = reporting()
    k = kernel.k
    credit, other = k.semaphore("credit", 3), k.semaphore("other", 1)
    with k.loop(3):
        k.sync(wait=credit)
    with k.loop(3):
        k.sync(signal=credit)
    k.sync(wait=other, signal=other)
    value = k.reg("value", 77)
    assert kernel.result(value) == 77


def test_end_leaves_credits_to_the_instructions_that_still_need_them(device: Device) -> None:
    """The sequencer is at the end long before the matrix unit, which needs every credit again and again."""
    k = KernelBuilder("credits", device.config)
    credit, done = k.semaphore("credit", 3), k.semaphore("done", 0)
    with k.loop(20):
        k.matmul(0, 0, 0, wait=credit, signal=done)
        k.load(ZERO, 0, ZERO, wait=done, signal=credit)
    k.end()
    program = k.build()
    for _ in range(3):
        device.stream.launch(program)
    device.synchronize()


@pytest.mark.parametrize("unit", [Unit.SEQUENCER, Unit.LOAD, Unit.STORE, Unit.MATRIX, Unit.VECTOR])
def test_the_unit_that_waits_takes_initial_values_back(unit: Unit) -> None:
    k = KernelBuilder("credits", NANO)
    credit = k.semaphore("credit", 2)
    plain = k.semaphore("plain")
    wait_in(k, unit, [credit, plain])
    k.end()
    words = [line.strip() for line in disassemble(k.build().words).splitlines()]
    name = {Unit.SEQUENCER: "sync", Unit.MATRIX: "matmul"}.get(unit, unit.name.lower())
    assert [word.split()[0] for word in words] == ["sync", "sync", name, name, name, "end"]
    assert words[3] == words[4]


def test_another_unit_may_take_initial_values_back() -> None:
    """An empty MATMUL passes the array before it ends; whoever signals last may be faster."""
    k = KernelBuilder("taken", NANO)
    free = k.semaphore("free", 2)
    k.matmul(0, 0, 0, wait=free)
    k.store(ZERO, 0, ZERO, signal=free)
    k.take_back(free, Unit.STORE)
    k.end()
    names = [line.split()[0] for line in disassemble(k.build().words).splitlines()]
    assert names == ["sync", "sync", "matmul", "store", "store", "store", "end"]


def test_who_takes_initial_values_back_that_nobody_waits_for() -> None:
    k = KernelBuilder("credits", NANO)
    k.semaphore("spare", 1)
    k.end()
    assert [line.split()[0] for line in disassemble(k.build().words).splitlines()] == ["sync", "sync", "end"]


def test_two_units_must_not_wait_for_a_semaphore_that_starts_above_zero() -> None:
    k = KernelBuilder("torn", NANO)
    k.matmul(0, 0, 0, wait=(credit := k.semaphore("credit", 2)))
    k.load(ZERO, 0, ZERO, wait=credit)
    with pytest.raises(KernelError, match=r"'credit' starts at 2, but LOAD and MATRIX wait; let one unit wait"):
        k.end()
    k = KernelBuilder("shared", NANO)
    k.matmul(0, 0, 0, wait=(shared := k.semaphore("shared")))
    k.load(ZERO, 0, ZERO, wait=shared)
    k.end()
    assert disassemble(k.build().words).split()[-1] == "end"


def test_waits_and_signals_ride_on_instructions() -> None:
    """On the next and the last instruction of their unit, if that is run as often as they are meant."""
    k = KernelBuilder("rides", NANO)
    first, second, third = (k.semaphore(name) for name in ("first", "second", "third"))
    k.wait_next(Unit.LOAD, first)
    k.wait_next(Unit.LOAD, second)
    k.wait_next(Unit.STORE, third)
    k.set(Unit.LOAD, run_bytes=4)
    k.load(ZERO, 0, ZERO)
    k.load(ZERO, 0, ZERO)
    k.signal_last(Unit.LOAD, first)
    k.signal_last(Unit.LOAD, third)
    k.signal_last(Unit.LOAD, third)
    k.store(ZERO, 0, ZERO, signal=second)
    k.end()
    lines = disassemble(k.build().words).splitlines()
    assert [" ".join(line.split()) for line in lines if line.split()] == [
        "set load.run_bytes, #4",
        "load r0, r0, r0 wait=0,1",
        "load r0, r0, r0 signal=0,2",
        "load r0, r0, r0 signal=2",
        "store r0, r0, r0 wait=2 signal=1",
        "end",
    ]


@pytest.mark.parametrize("place", ["loop", "label", "branch", "again", "end"])
def test_waits_do_not_ride_into_what_runs_more_or_less_often(place: str) -> None:
    k = KernelBuilder("rides", NANO)
    wait, signal, value = k.semaphore("wait"), k.semaphore("signal"), k.reg("value", 1)
    k.load(ZERO, 0, ZERO)
    k.wait_next(Unit.LOAD, wait)
    if place == "loop":
        with k.loop(3):
            k.load(ZERO, 0, ZERO)
    elif place == "label":
        k.place(k.label("here"))
    elif place == "branch":
        with k.if_(value, "==", 0):
            k.load(ZERO, 0, ZERO)
    elif place == "again":
        k.wait_next(Unit.LOAD, wait)
    if place != "again":
        k.signal_last(Unit.LOAD, signal)
    k.end()
    loads = [line for line in disassemble(k.build().words).splitlines() if " load " in line]
    assert sum("wait=0" in line for line in loads) == (2 if place == "again" else 1)
    for line in loads:
        assert "wait=0 signal" not in line
        assert line.split()[1:4] == ["r0,", "r0,", "r0"]
