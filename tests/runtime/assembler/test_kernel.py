import numpy as np
import pytest

from sley.abi.asm import disassemble
from sley.abi.config import preset
from sley.abi.faults import Unit
from sley.abi.instructions import Op, Space, VectorOutput, VectorRow
from sley.runtime import ZERO, Device, KernelBuilder, KernelError, Register, Semaphore

NANO = preset("nano")


def reporting(device: Device) -> tuple[KernelBuilder, Register]:
    """A kernel under construction with its first argument, the place to ``report`` to."""
    k = KernelBuilder("test", device.config)
    return k, k.arg("out")


def report(k: KernelBuilder, out: Register, value: Register) -> None:
    """Instructions that write a register to memory, by way of the vector unit, and end the block."""
    zeroed, ready = k.semaphore("zeroed"), k.semaphore("ready")
    one = k.reg("one", 1)
    k.set(Unit.LOAD, run_bytes=0)
    k.load(ZERO, 0, one, space=Space.ACCUMULATOR, signal=zeroed)
    k.vrow(VectorRow.BIAS, value, splat=True)
    k.vector(0, 0, one, bias=True, out=VectorOutput.WORD, wait=zeroed, signal=ready)
    k.set(Unit.STORE, run_bytes=4)
    k.store(out, 0, one, space=Space.ACCUMULATOR, wait=ready)
    k.end()


def result(device: Device, k: KernelBuilder, *args: int) -> int:
    out = device.array(np.zeros(1, np.int32))
    device.stream.launch(k.build(), [out, *args])
    return int(out.numpy()[0])


def wait_in(k: KernelBuilder, unit: Unit, wait: list[Semaphore]) -> None:
    """An instruction of a unit that waits and does nothing else."""
    {
        Unit.SEQUENCER: lambda: k.sync(wait=wait),
        Unit.LOAD: lambda: k.load(ZERO, 0, ZERO, wait=wait),
        Unit.STORE: lambda: k.store(ZERO, 0, ZERO, wait=wait),
        Unit.MATRIX: lambda: k.matmul(0, 0, 0, wait=wait),
        Unit.VECTOR: lambda: k.vector(0, 0, 0, wait=wait),
    }[unit]()


@pytest.mark.parametrize(
    ("name", "a", "b", "expected"),
    [
        ("add", 2**31 - 1, 1, -(2**31)),
        ("sub", 3, 5, -2),
        ("mul", -3, 7, -21),
        ("min", -1, 1, -1),
        ("max", -1, 1, 1),
        ("and_", 12, 10, 8),
        ("or_", 12, 10, 14),
        ("shl", 3, 4, 48),
        ("shr", -1, 28, 15),
    ],
)
def test_arithmetic_with_registers_and_immediates(device: Device, name: str, a: int, b: int, expected: int) -> None:
    k, out = reporting(device)
    x = k.arg("x")
    getattr(k, name)(x, x, b)
    report(k, out, x)
    assert result(device, k, a) == expected
    k, out = reporting(device)
    x, y = k.arg("x"), k.arg("y")
    getattr(k, name)(x, x, y)
    report(k, out, x)
    assert result(device, k, a, b) == expected


@pytest.mark.parametrize("count", [0, 1, 3])
def test_nested_loops_that_end_together(device: Device, count: int) -> None:
    k, out = reporting(device)
    n, total = k.arg("n"), k.reg("total", 0)
    with k.loop(n), k.loop(2), k.loop(n):
        k.add(total, total, 1)
    report(k, out, total)
    assert result(device, k, count) == 2 * count**2


@pytest.mark.parametrize("limit", [-1, 0, 5])
def test_while_and_if_inside_a_loop(device: Device, limit: int) -> None:
    k, out = reporting(device)
    bound, total, i, odd = k.arg("bound"), k.reg("total", 0), k.reg("i"), k.reg("odd")
    with k.loop(3):
        k.mov(i, 0)
        with k.while_(i, "<", bound):
            k.and_(odd, i, 1)
            with k.if_(odd, "!=", 0):
                k.add(total, total, i)
            k.add(i, i, 1)
        with k.if_(total, "==", 0):
            k.mov(total, 0)
    report(k, out, total)
    assert result(device, k, limit) == 3 * sum(i for i in range(max(limit, 0)) if i % 2)


def test_initial_semaphores_are_seeded_and_taken_back(device: Device) -> None:
    k, out = reporting(device)
    credit, other = k.semaphore("credit", 3), k.semaphore("other", 1)
    with k.loop(3):
        k.sync(wait=credit)
    with k.loop(3):
        k.sync(signal=credit)
    k.sync(wait=other, signal=other)
    value = k.reg("value", 77)
    report(k, out, value)
    assert result(device, k) == 77


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


def test_block_and_grid_registers(device: Device) -> None:
    k = KernelBuilder("grid", device.config)
    out, pitch = k.arg("out"), k.arg("pitch")
    offset, number = k.reg("offset"), k.reg("number")
    x, y, z = k.block
    k.mul(number, z, k.grid[1])
    k.add(number, number, y)
    k.mul(number, number, k.grid[0])
    k.add(number, number, x)
    k.mul(offset, number, pitch)
    k.add(out, out, offset)
    report(k, out, number)
    array = device.array(np.full(12, -1, np.int32))
    device.stream.launch(k.build(), {"out": array, "pitch": 4}, (2, 3, 2))
    assert array.numpy().tolist() == list(range(12))


def test_registers_run_out_and_come_back() -> None:
    k = KernelBuilder("registers", NANO)
    taken = [k.reg(f"r{i}") for i in range(25)]
    with pytest.raises(KernelError, match="no register left for 'more'"):
        k.reg("more")
    k.free(taken[3])
    assert k.reg("more").number == taken[3].number
    k.free(taken[4])
    with pytest.raises(KernelError, match="not in use"):
        k.free(taken[4])
    with k.scratch("one") as (one,):
        assert one.number == taken[4].number
    with pytest.raises(KernelError, match="before taking registers"):
        k.arg("late")


def test_errors_name_the_cure() -> None:
    k = KernelBuilder("bad", NANO)
    x = k.reg("x")
    with pytest.raises(KernelError, match=r"operand rb is 5; it must be a register"):
        k.matmul(0, 5, 0)
    with pytest.raises(KernelError, match="no parameter 'speed'; there are RUN_BYTES"):
        k.set(Unit.LOAD, speed=1)
    with pytest.raises(KernelError, match="no relation '>'"), k.if_(x, ">", 0):
        pass
    with pytest.raises(KernelError, match="starts at 16"):
        k.semaphore("much", 16)
    with pytest.raises(KernelError, match="empty"), k.loop(3):
        pass
    with pytest.raises(KernelError, match="is no branch"):
        k.branch(Op.ADD, x, x, k.label())
    label = k.label("here")
    k.place(label)
    with pytest.raises(KernelError, match="'here' is placed twice"):
        k.place(label)
    for _ in range(16):
        k.semaphore("s")
    with pytest.raises(KernelError, match="one too many; a core has 16"):
        k.semaphore("s")


def test_build_refuses_what_no_core_can_run() -> None:
    k = KernelBuilder("lost", NANO)
    k.jump(k.label("nowhere"))
    with pytest.raises(KernelError, match="'nowhere' is not placed"):
        k.build()
    k = KernelBuilder("long", NANO)
    for _ in range(NANO.program_words):
        k.mov(ZERO, 0)
    k.end()
    with pytest.raises(KernelError, match="257 instructions; a core holds 256"):
        k.build()
    k = KernelBuilder("wide", NANO)
    k.add(ZERO, ZERO, 1 << 40)
    with pytest.raises(KernelError, match="instruction 0: field 'imm'"):
        k.build()


def test_program_text() -> None:
    k = KernelBuilder("small", NANO)
    k.add(k.arg("x"), ZERO, 0xFFFFFFFF)
    k.end()
    program = k.build()
    assert str(program).startswith("; small(r8 x)\n")
    assert disassemble(program.words).split() == ["add", "r8,", "r0,", "#-1", "end"]
    assert len(program.code) == 32
