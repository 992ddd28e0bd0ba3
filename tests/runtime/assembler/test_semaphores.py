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
