"""The checker of programs finds what is planted in them, and nothing in those that are as the compiler makes them.

That it finds nothing in the kernels of the other tests is asserted where they run (``tile_agreement``).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import kernels
import ml_dtypes
import numpy as np
import pytest
from tile_agreement import types_of

from sley.abi.config import preset
from sley.abi.faults import Unit
from sley.abi.instructions import Op, decode, encode
from sley.abi.parameters import Param
from sley.abi.types import ElementType
from sley.runtime import KernelBuilder
from sley.runtime.errors import KernelError
from sley.runtime.tile.check import checker
from sley.runtime.tile.check.checker import Finding, check
from sley.runtime.tile.check.commands import LimitError, commands
from sley.runtime.tile.compiler import Compiled, prepare
from sley.runtime.tile.schedule import Schedule

BASE = preset("base")
BF16 = np.dtype(ml_dtypes.bfloat16)
Code = list[tuple[Op, dict[str, int]]]
Kind = tuple[Compiled, dict[str, Any]]


def made(name: str) -> Kind:
    """A kernel for some blocks, and its arrays."""
    if name == "add":
        arrays = types_of({key: np.zeros((50, 100), BF16) for key in ("x", "y", "out")})
        function = kernels.add.function(arrays, {"rows": 8, "columns": 64}, (2, 7, 1))
    elif name == "softmax":
        arrays = types_of({"x": np.zeros((70, 40), BF16), "out": np.zeros((70, 40), BF16)})
        function = kernels.softmax.function(arrays, {"rows": 16}, (5, 1, 1))
    elif name == "in_place":
        arrays = types_of({"x": np.zeros((33, 20), np.float32)})
        function = kernels.in_place.function(arrays, {"rounds": 4}, (1, 1, 1))
    else:
        arrays = types_of({key: np.zeros((96, 96), BF16) for key in ("a", "b", "c")})
        constants = {"shape": (32, 48, 32), "activation": None}
        function = kernels.matmul.function(arrays, constants, (2, 3, 1))
    return prepare(function, BASE, Schedule(resident=name != "matmul")).compiled(), arrays


NAMES = ("add", "softmax", "in_place", "matmul", "panels")
MADE = {name: made(name) for name in NAMES}


def found(name: str, plant: Callable[[Code], None]) -> list[Finding]:
    """What is found in a program that is changed."""
    compiled, arrays = MADE[name]
    code = [decode(word) for word in compiled.program.words]
    plant(code)
    words = tuple(encode(op, **fields) for op, fields in code)
    return check(replace(compiled, program=replace(compiled.program, words=words)), BASE, arrays)


def raised(code: Code) -> list[int]:
    """Instructions that give semaphores their initial values."""
    return [pc for pc, (op, _) in enumerate(code) if op is Op.SYNC]


def taken_back(code: Code) -> list[int]:
    """Instructions in front of the end that do nothing but wait."""
    pc = len(code) - 1
    while code[pc - 1][1].get("wait", 0) and not any(code[pc - 1][1].get(key, 0) for key in ("signal", "rc", "imm")):
        pc -= 1
    return list(range(pc, len(code) - 1))


def used(name: str, kind: str) -> list[tuple[int, int]]:
    """Instructions and semaphores that they wait for, or signal; not what raises and takes back."""
    code = [decode(word) for word in MADE[name][0].program.words]
    ends = len(code) - 1
    while (
        code[ends - 1][1].get("wait", 0) and not code[ends - 1][1].get("signal", 0) and not code[ends - 1][1].get("rc")
    ):
        ends -= 1
    return [
        (pc, number)
        for pc, (op, fields) in enumerate(code[:ends])
        if op is not Op.SYNC
        for number in range(16)
        if fields.get(kind, 0) >> number & 1
    ]


IMPLIED = {("in_place", number) for number in (0, 3, 4)} | {("panels", 0)}
"""What waits for other semaphores keep, too: a round of ``in_place`` goes through all units one after the other, and
the loads behind a panel of ``panels`` wait for products that are later than those that need its rows."""
SPOTS = [(name, kind, *spot) for name in NAMES for kind in ("wait", "signal") for spot in used(name, kind)]


@pytest.mark.parametrize("name", NAMES)
def test_programs_as_they_are_made(name: str) -> None:
    assert found(name, lambda code: None) == []
    assert len([spot for spot in SPOTS if spot[0] == name]) >= 4


@pytest.mark.parametrize(("name", "kind", "pc", "number"), SPOTS)
def test_a_dropped_wait_or_signal(name: str, kind: str, pc: int, number: int) -> None:
    def plant(code: Code) -> None:
        code[pc][1][kind] &= ~(1 << number)

    kinds = {finding.kind for finding in found(name, plant)}
    assert kinds & {"leftover", "deadlock"}
    if kind == "wait":
        assert kinds & {"race", "unwritten", "leftover"}


@pytest.mark.parametrize(("name", "number"), sorted({(name, number) for name, _, _, number in SPOTS}))
def test_a_semaphore_that_nobody_uses(name: str, number: int) -> None:
    """Counts still agree, but units do not wait: a race, which no count shows."""

    def plant(code: Code) -> None:
        for _, fields in code:
            for kind in ("wait", "signal"):
                if kind in fields:
                    fields[kind] &= ~(1 << number)

    kinds = {finding.kind for finding in found(name, plant)}
    assert kinds <= {"race", "unwritten"}
    assert "race" in kinds or (name, number) in IMPLIED


def one_more_to_begin_with(code: Code) -> None:
    """Raised once more at the start, and taken back once more at the end."""
    seeds = raised(code)[0]
    number = next(n for n in range(16) if code[seeds][1]["signal"] >> n & 1)
    back = next(pc for pc in reversed(taken_back(code)) if code[pc][1]["wait"] >> number & 1)
    for extra, (op, fields) in ((back, code[back]), (seeds, code[seeds])):
        code.insert(extra, (op, {**fields, **{k: 1 << number for k in ("wait", "signal") if fields.get(k, 0)}}))
        for _, other in code:
            if other.get("target", 0) >= extra and "target" in other:
                other["target"] += 1


def one_less_to_begin_with(code: Code) -> None:
    code[raised(code)[0]][1]["signal"] = 0


def nothing_taken_back(code: Code) -> None:
    code[taken_back(code)[-1]][1]["wait"] = 0


def a_round_more(code: Code) -> None:
    next(fields for op, fields in code if op is Op.LOOP)["imm"] += 1


def longer_runs(code: Code) -> None:
    for op, fields in code:
        if op is Op.SET and fields["unit"] == Unit.STORE and fields["param"] == Param.RUN_BYTES and fields["use_imm"]:
            fields["imm"] += 2
            return
    op, fields = next(pair for pair in code if pair[0] is Op.STORE)
    at = next(pc for pc, pair in enumerate(code) if pair[1] is fields)
    code[at - 1] = (
        Op.SET,
        {**decode(encode(Op.SET))[1], "unit": Unit.STORE, "param": Param.RUN_BYTES, "use_imm": 1, "imm": 4096},
    )


def fewer_rows_loaded(code: Code) -> None:
    fields = next(fields for op, fields in code if op is Op.LOAD and fields["use_imm"])
    fields["imm"] -= 1


def slots_that_come_too_early(code: Code) -> None:
    """Rounds take one slot fewer than was counted with."""
    for op, fields in code:
        if op is Op.AND and fields["use_imm"]:
            fields["imm"] >>= 1


def signal_before_the_end(code: Code) -> None:
    """The first of two loads signals what the second one must."""
    loads = [pc for pc, (op, _) in enumerate(code) if op is Op.LOAD][:2]
    code[loads[0]][1]["signal"], code[loads[1]][1]["signal"] = code[loads[1]][1]["signal"], 0


def wait_behind_the_first(code: Code) -> None:
    """The second of two loads waits for the slots, and the first one does not."""
    loads = [pc for pc, (op, _) in enumerate(code) if op is Op.LOAD][:2]
    code[loads[1]][1]["wait"], code[loads[0]][1]["wait"] = code[loads[0]][1]["wait"], 0


def rows_that_do_not_exist(code: Code) -> None:
    next(fields for op, fields in code if op is Op.VECTOR and fields["use_imm"])["imm"] = 60_000


PLANTED: dict[str, tuple[Callable[[Code], None], tuple[str, ...], set[str]]] = {
    "more": (one_more_to_begin_with, ("add", "softmax", "matmul"), {"race"}),
    "less": (one_less_to_begin_with, ("softmax", "add", "matmul"), {"deadlock"}),
    "left": (nothing_taken_back, ("add", "softmax", "in_place", "matmul"), {"leftover"}),
    "round": (a_round_more, ("softmax",), {"fault"}),
    "slots": (slots_that_come_too_early, ("add", "softmax", "matmul"), {"race"}),
    "signal": (signal_before_the_end, ("add", "matmul"), {"race"}),
    "wait": (wait_behind_the_first, ("add", "matmul"), {"race"}),
    "rows": (rows_that_do_not_exist, ("add", "softmax", "in_place"), {"outside"}),
    "longer": (longer_runs, ("softmax", "in_place", "matmul"), {"outside"}),
    "fewer": (fewer_rows_loaded, ("matmul",), {"unwritten"}),
}


@pytest.mark.parametrize(
    ("plant", "name", "kinds"),
    [
        pytest.param(plant, name, kinds, id=f"{key}-{name}")
        for key, (plant, names, kinds) in PLANTED.items()
        for name in names
    ],
)
def test_planted(plant: Callable[[Code], None], name: str, kinds: set[str]) -> None:
    assert kinds <= {finding.kind for finding in found(name, plant)}


def test_what_a_finding_says() -> None:
    def plant(code: Code) -> None:
        for _, fields in code:
            for kind in ("wait", "signal"):
                fields[kind] = fields.get(kind, 0) & ~2 if kind in fields else 0
                if not fields[kind]:
                    fields.pop(kind)

    texts = [str(finding) for finding in found("add", plant)]
    assert any(
        "race: LOAD writes scratchpad at instruction" in text and "VECTOR reads the same" in text for text in texts
    )


def built(body: Callable[[KernelBuilder], None]) -> Compiled:
    k = KernelBuilder("built", BASE)
    k.arg("x")
    body(k)
    k.end()
    return Compiled(k.build(), (1, 1, 1))


X = types_of({"x": np.zeros((8, 16), BF16)})


def test_two_units_that_wait_for_each_other() -> None:
    def body(k: KernelBuilder) -> None:
        first, second = k.semaphore("first"), k.semaphore("second")
        k.empty(Unit.LOAD, wait=first, signal=second)
        k.empty(Unit.STORE, wait=second, signal=first)

    (finding,) = check(built(body), BASE, X)
    assert finding.kind == "deadlock"
    assert finding.text == ("LOAD waits for semaphore 0 at instruction 0; STORE waits for semaphore 1 at instruction 1")


def test_a_semaphore_that_is_full_for_ever() -> None:
    def body(k: KernelBuilder) -> None:
        many = k.semaphore("many")
        with k.loop(16):
            k.empty(Unit.LOAD, signal=many)
        k.empty(Unit.LOAD, wait=many)

    (finding,) = check(built(body), BASE, X)
    assert (finding.kind, finding.text) == (
        "deadlock",
        "LOAD cannot signal semaphore 0, which is full at instruction 1",
    )


@pytest.mark.parametrize(("more", "kinds"), [(-1, []), (0, ["deadlock"])])
def test_a_queue_that_is_full(more: int, kinds: list[str]) -> None:
    """The sequencer cannot hand on what would set the head of a full queue free."""

    def body(k: KernelBuilder) -> None:
        go = k.semaphore("go")
        k.empty(Unit.VECTOR, wait=go)
        for _ in range(BASE.unit_queue + more):
            k.empty(Unit.VECTOR)
        k.empty(Unit.LOAD, signal=go)

    assert [finding.kind for finding in check(built(body), BASE, X)] == kinds


def test_weights_run_beside_products() -> None:
    """A WEIGHTS that is done says nothing of the MATMUL before it."""

    def body(k: KernelBuilder, last: str) -> None:
        done, zero = k.semaphore("done"), k.reg("zero", 0)
        k.set(Unit.LOAD, run_bytes=32)
        full = k.semaphore("full")
        k.load(k._args[0], 0, 8, signal=full)
        k.weights(zero, 8, wait=full, dtype=ElementType.BF16)
        k.matmul(zero, zero, 8, signal=done if last == "matmul" else (), dtype=ElementType.BF16)
        k.weights(zero, 8, signal=done if last == "weights" else (), dtype=ElementType.BF16)
        k.vector(zero, zero, 8, wait=done)

    assert check(built(lambda k: body(k, "matmul")), BASE, X) == []
    assert {f.kind for f in check(built(lambda k: body(k, "weights")), BASE, X)} == {"race"}


def test_memory_between_the_elements_of_a_view() -> None:
    """A store of whole rows of the array that a view is part of."""

    def body(k: KernelBuilder, size: int) -> None:
        k.set(Unit.LOAD, run_bytes=size, mem_stride=64)
        k.set(Unit.STORE, run_bytes=size, mem_stride=64)
        done = k.semaphore("done")
        k.load(k._args[0], 0, 4, signal=done)
        k.store(k._args[0], 0, 4, wait=done)

    view = {"x": replace(X["x"], shape=(4, 10), strides=(32, 1))}
    assert check(built(lambda k: body(k, 20)), BASE, view) == []
    assert {f.kind for f in check(built(lambda k: body(k, 22)), BASE, view)} == {"outside"}


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, arrays = MADE["add"]
    monkeypatch.setattr(checker, "LIMIT", 100)
    with pytest.raises(LimitError, match="takes more than 100 instructions; check it for a smaller problem"):
        check(compiled, BASE, arrays)
    monkeypatch.setattr(checker, "LARGEST", 1000)
    with pytest.raises(KernelError, match="the arrays have 30,400 bytes; a program is checked with at most 1,000"):
        check(compiled, BASE, arrays)


def test_programs_that_fault() -> None:
    def steps(words: Sequence[int]) -> object:
        return commands(words, BASE, (), (0, 0, 0), (1, 1, 1), 1000)

    nested = [encode(Op.LOOP, use_imm=1, imm=2, target=6 - n) for n in range(5)]
    with pytest.raises(KernelError, match="instruction 4 is one loop too many; 4 fit into each other"):
        steps([*nested, encode(Op.ADD), encode(Op.ADD), encode(Op.END)])
    with pytest.raises(KernelError, match="runs past its end, to 1"):
        steps([encode(Op.ADD)])
    with pytest.raises(KernelError, match="instruction 1 branches out of its loop"):
        steps([encode(Op.LOOP, use_imm=1, imm=2, target=2), encode(Op.BEQ, target=3), encode(Op.ADD), encode(Op.END)])
