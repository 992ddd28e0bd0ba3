"""Schedules: what is none, which are equal, and what is kept for each."""

import pickle
import re
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import kernels
import numpy as np
import pytest
from page_code import page_blocks
from tile_agreement import Arrays, kernel_agrees, types_of

from sley.runtime import Device, tile
from sley.runtime.tile.lowering import DUMP, SCHEDULED, lower
from sley.runtime.tile.programs import key_of

WORDS: dict[str, Any] = {
    "buffer": 2,
    "order": (0, 1, 2),
    "prefetch": False,
    "gang": False,
    "resident": False,
    "split": {"i": 2},
    "fuse": (("i", "j"),),
    "privatise": {"i": 2},
    "unroll": {"i": 2},
}
SCHEDULES = [tile.Schedule(), *(tile.Schedule(**{word: value}) for word, value in WORDS.items())]


@tile.kernel
def neighbours(x: Any, out: Any) -> None:
    """Something for each word; its tiles are chosen."""
    shape, column = (4, 16), tile.block_id() * 64
    low, high = tile.full(shape, float("inf")), tile.full(shape, -float("inf"))
    for i in range(0, 64, 16):
        low = tile.minimum(low, tile.load(x, (0, column + i), shape))
    for j in range(0, 64, 16):
        high = tile.maximum(high, tile.load(x, (0, column + j), shape))
    tile.store(out, (0, tile.block_id()), high.max(1) - low.min(1))


def arrays() -> Arrays:
    x = np.random.default_rng(1).standard_normal((4, 256)).astype(np.float32)
    return {"x": x, "out": np.zeros((4, 4), np.float32)}


def test_a_value_of_each_word() -> None:
    assert list(WORDS) == [field.name for field in fields(tile.Schedule)]
    assert list(SCHEDULED) == list(WORDS)[5:]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"buffer": 3}, "buffer is 3; tiles have 1, 2 or 4 slots"),
        ({"order": (0, 1)}, r"order is \(0, 1\); it names the axes 0, 1 and 2 of the grid once each"),
        ({"unroll": {"k": 0}}, "unroll of k is 0; it is a number of rounds, 1 or more"),
        ({"unroll": {"k": True}}, "unroll of k is True; it is a number of rounds, 1 or more"),
        ({"split": {"k": 2.0}}, "split of k is 2.0; it is a number of rounds of the inner loop, 1 or more"),
        ({"privatise": {"k": -2}}, "privatise of k is -2; it is a number of copies, 1 or more"),
        ({"split": 4}, r'split is 4; it gives numbers by the names of loops\' variables: split=\{"k": 2\}'),
        ({"privatise": {4: 2}}, r"privatise is \{4: 2\}; it gives numbers by the names"),
        ({"unroll": [("k", 2)]}, r"unroll is \[\('k', 2\)\]; it gives numbers by the names"),
        ({"fuse": ("i", "j")}, r'fuse is \(\'i\', \'j\'\); it is groups of .* or more: fuse=\(\("i", "j"\),\)'),
        ({"fuse": "ij"}, "fuse is 'ij'; it is groups of the names of two loops' variables, or more"),
        ({"fuse": (("i",),)}, r"fuse is \(\('i',\),\); it is groups of the names of two loops' variables, or more"),
        ({"fuse": (("i", 2),)}, r"fuse is \(\('i', 2\),\); it is groups"),
        ({"fuse": 2}, "fuse is 2; it is groups"),
    ],
)
def test_what_is_none(given: dict[str, Any], message: str) -> None:
    with pytest.raises(tile.TileError, match=message):
        tile.Schedule(**given)


@pytest.mark.parametrize("word", ["split", "privatise", "unroll"])
def test_equal_ones(word: str) -> None:
    """Whatever the order of names; and they stay what they are."""
    numbers = {"k": 2, "i": 4}
    one, same, other = (tile.Schedule(**{word: given}) for given in (numbers, {"i": 4, "k": 2}, {"i": 4}))
    assert one == same
    assert hash(one) == hash(same)
    assert repr(one) == repr(same)
    assert one != other
    numbers["k"] = 8
    assert one == same
    assert pickle.loads(pickle.dumps(one)) == one


@pytest.mark.parametrize(
    ("word", "given"),
    [("fuse", ([["i", "j"]], (("i", "j"),), (("j", "i"),))), ("order", ([0, 1, 2], (0, 1, 2), (0, 2, 1)))],
)
def test_equal_sequences(word: str, given: tuple[Any, Any, Any]) -> None:
    one, same, other = (tile.Schedule(**{word: value}) for value in given)
    assert one == same
    assert hash(one) == hash(same)
    assert one != other


def test_all_differ() -> None:
    assert len(set(SCHEDULES)) == len(SCHEDULES)
    by_name = [tile.Schedule(**{word: {"k": 2}}) for word in ("split", "privatise", "unroll")]
    assert len(set(by_name)) == len({repr(schedule) for schedule in by_name}) == 3


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda schedule: repr(schedule)[9:])
def test_results(base: Device, schedule: tile.Schedule) -> None:
    kernel_agrees(base, neighbours, arrays(), (4, 1, 1), schedule)


def test_programs_of_each_are_kept(base: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In memory and on disk: those of one schedule are not those of another."""
    monkeypatch.setattr(sys.modules["sley.runtime.tile.programs"], "cache_folder", lambda: tmp_path)
    types, config = {**types_of(arrays())}, base.config
    keys = {key_of(neighbours.function(types, {}, (4, 1, 1)), config, schedule) for schedule in SCHEDULES}
    assert len(keys) == len(SCHEDULES)
    neighbours.forget()
    made = [neighbours.compiled(types, {}, (4,), config, schedule) for schedule in SCHEDULES]
    assert len(list(tmp_path.rglob("*.json"))) == len(SCHEDULES)
    assert len({compiled.program.words for compiled in made[4:]} | {made[0].program.words}) == 5
    assert [neighbours.compiled(types, {}, (4,), config, schedule) for schedule in SCHEDULES] == made
    neighbours.forget()
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")}
    assert [neighbours.compiled(types, {}, (4,), config, schedule) for schedule in reversed(SCHEDULES)] == made[::-1]
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")} == times


def test_of_a_portable_program(base: Device, tmp_path: Path) -> None:
    """Loops have their names in the file, too."""
    given = arrays()
    x, wanted = base.array(given["x"]), base.array(given["out"])
    neighbours[4](x, wanted)
    neighbours.portable[4](x, wanted).save(tmp_path / "neighbours.sley")
    program = tile.open_program(tmp_path / "neighbours.sley")
    schedule = tile.Schedule(split={"i": 2, "j": 2}, fuse=(("i_outer", "j_outer"),), privatise={"i_outer": 2})
    for one in (schedule, *SCHEDULES):
        out = base.array(given["out"])
        program(x, out, schedule=one)
        assert (out.numpy().view(np.uint32) == wanted.numpy().view(np.uint32)).all()
    with pytest.raises(tile.TileError, match=r"line \d+: split of i by 3; its 4 rounds must be a multiple of that"):
        program(x, wanted, schedule=tile.Schedule(split={"i": 3}))


def test_what_is_tuned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A choice that is measured with a schedule is kept for that one."""
    monkeypatch.setattr(sys.modules["sley.runtime.tile.programs"], "cache_folder", lambda: tmp_path)
    with Device.open("model:base?cycles=on&values=off&memory=4M") as device:
        x, out = device.zeros((8, 256), np.float32), device.zeros((8, 256), np.float32)
        for schedule in (tile.Schedule(), tile.Schedule(split={"i": 2}), tile.Schedule(unroll={"i": 2})):
            found = halves.tune[1](x, out, schedule=schedule)
            assert {one.choices["columns"] for one in found} == {16, 32}
    kept = list((tmp_path / "tile" / "choices").rglob("*.json"))
    assert len(kept) == 3


@tile.kernel
def halves(x: Any, out: Any, columns: int = tile.choice(16, 32)) -> None:
    for i in range(0, x.shape[1], columns):
        tile.store(out, (0, i), tile.load(x, (0, i), (x.shape[0], columns)) * 0.5)


def test_dumps(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Of passes that a schedule asks for, and of no others."""
    function = kernels.in_place.function({**types_of({"x": np.zeros((3, 20), np.float32)})}, {"rounds": 4}, (1, 1, 1))
    monkeypatch.setenv(DUMP, "split,fuse,unroll")
    lower(function, 16, tile.Schedule(split={"_": 2}, unroll={"_": 2}))
    error = capsys.readouterr().err
    assert [line for line in error.splitlines() if line.startswith("#")] == ["# behind split", "# behind unroll"]


def test_cycles_of_the_guide(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Within a few percent of what its page says, and fewer with each schedule."""
    blocks = page_blocks("docs/guides/tile.md")
    number = next(number for number, block in enumerate(blocks) if "privatise=" in block.text)
    code = tmp_path / "page.py"  # kernels are read from their file
    code.write_text(blocks[number].text)
    exec(compile(code.read_text(), str(code), "exec"), {"__name__": "page"})
    said, shown = (
        re.findall(r"(\w+): ([\d,]+) cycles, ([\d,]+) with its schedule", text)
        for text in (blocks[number + 1].text, capsys.readouterr().out)
    )
    assert [name for name, *_ in shown] == [name for name, *_ in said] == ["span", "largest", "beside"]
    for (_, *before), (_, *now) in zip(said, shown, strict=True):
        apart, scheduled = (int(cycles.replace(",", "")) for cycles in now)
        assert scheduled < 0.9 * apart
        assert [int(cycles.replace(",", "")) for cycles in before] == pytest.approx([apart, scheduled], rel=0.05)


def test_an_error_says_where(base: Device) -> None:
    x, out = (base.array(array) for array in arrays().values())
    with pytest.raises(tile.TileError, match=r"^line \d+: unroll of i by 3; its 4 rounds must be a multiple of that"):
        neighbours[4](x, out, schedule=tile.Schedule(unroll={"i": 3}))
