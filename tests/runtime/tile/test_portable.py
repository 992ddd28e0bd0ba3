"""A kernel in a file: it runs on any chip, and what is no such file is refused."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import kernels
import ml_dtypes
import numpy as np
import pytest

from sley.abi.config import preset
from sley.driver import BadRequest
from sley.runtime import Device, tile
from sley.runtime.tile import text

BF16 = np.dtype(ml_dtypes.bfloat16)


@tile.kernel
def product(a: Any, b: Any, c: Any, rows: Any = tile.choice(8, 512, 32), columns: Any = tile.choice(16, 64)) -> None:
    row, column = tile.block_id(1) * rows, tile.block_id(0) * columns
    total = tile.zeros((rows, columns))
    for k in range(0, a.shape[1], 16):
        total = tile.dot(tile.load(a, (row, k), (rows, 16)), tile.load(b, (k, column), (16, columns)), total)
    tile.store(c, (row, column), tile.relu(total).to(c.dtype))


@tile.kernel
def joined(parts: tuple[Any, ...], out: Any) -> None:
    total = tile.zeros(out.shape)
    for part in parts:
        total = total + tile.load(part, (0, 0), part.shape)
    tile.store(out, (0, 0), total)


def blocks(rows: int, columns: int) -> tuple[int, int]:
    return tile.cdiv(50, columns), tile.cdiv(40, rows)


@pytest.fixture
def saved(base: Device, tmp_path: Path) -> Path:
    a, b, c = (base.zeros(shape, BF16) for shape in ((40, 48), (48, 50), (40, 50)))
    product.portable[blocks](a, b, c).save(tmp_path / "product.sley")
    return tmp_path / "product.sley"


@pytest.mark.parametrize("chip", ["small", "base", "quad"])
def test_on_any_chip(saved: Path, tmp_path: Path, chip: str) -> None:
    program = tile.open_program(saved)
    assert repr(program).startswith("Portable(product(a: bf16[40, 48; 48, 1], b: bf16[48, 50; 50, 1], c:")
    assert repr(program).endswith("6 candidates)")
    random = np.random.default_rng(2)
    a, b = (random.integers(-4, 5, shape).astype(BF16) for shape in ((40, 48), (48, 50)))
    if chip == "small":
        sizes = {"array": 8, "vector_lanes": 8, "scratchpad_rows": 512, "accumulator_rows": 128}
        small = replace(preset("base"), name="small", **sizes)
        chip = str(tmp_path / "small.json")
        Path(chip).write_text(small.to_json())
    with Device.open(f"model:{chip}?memory=4M&values=numpy") as device:
        c = device.zeros((40, 50), BF16)
        program(device.array(a), c=c, b=device.array(b))
        assert (c.numpy() == np.maximum(a.astype(np.float32) @ b.astype(np.float32), 0).astype(BF16)).all()


def test_a_chip_that_cannot(saved: Path) -> None:
    program = tile.open_program(saved)
    with (
        Device.open("model:nano?memory=1M") as device,
        pytest.raises(tile.TileError, match="load of bf16, which the chip nano has not"),
    ):
        program.compiled(device.config)


def test_tuples_have_names_of_their_own(base: Device, tmp_path: Path) -> None:
    x = np.arange(64, dtype=np.float32).reshape(4, 16)
    parts, out = tuple(base.array(x + n) for n in range(3)), base.zeros((4, 16), np.float32)
    program = joined.portable[1](parts, out)
    assert list(program.arrays) == ["parts_0", "parts_1", "parts_2", "out"]
    program.save(tmp_path / "joined.sley")
    tile.open_program(tmp_path / "joined.sley")(*parts, out)
    assert (out.numpy() == 3 * x + 3).all()


def test_arrays_of_other_types(base: Device, saved: Path) -> None:
    program = tile.open_program(saved)
    a, b, c = (base.zeros(shape, BF16) for shape in ((40, 48), (48, 50), (40, 50)))
    with pytest.raises(tile.TileError, match=r"b of product is bf16\[24, 50; 50, 1\]; the program was made for"):
        program(a, b[:24], c)
    with pytest.raises(tile.TileError, match="c of product is no array; the program was made for"):
        program(a, b, 3)
    wide = base.zeros((40, 100), BF16)
    with pytest.raises(tile.TileError, match=r"a of product is bf16\[40, 48; 100, 1\]"):
        program(wide[:, :48], b, c)
    whole = base.zeros((96, 50), BF16)
    with pytest.raises(BadRequest, match="b and c of product share memory"):
        program(a, whole[:48], whole[40:80])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[10:], "is no program of tiles; kernel.portable"),
        (lambda text: text.replace("program 1", "program 2", 1), "is a program of version 2, this is version 1: save"),
        (lambda text: text.replace("dot(", "dox(", 1), "is damaged: its text is not what was saved"),
        (lambda text: text[:-40], "is damaged"),
        (lambda text: "", "is no program of tiles"),
        (lambda text: "\udcff", "is no program of tiles"),
    ],
)
def test_files_that_are_none(saved: Path, change: Callable[[str], str], message: str) -> None:
    saved.write_text(change(saved.read_text()), errors="surrogateescape")
    with pytest.raises(tile.TileError, match=f"product.sley {message}"):
        tile.open_program(saved)


def test_another_version_of_the_ir(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "VERSION", 9)
    with pytest.raises(tile.TileError, match=r"product.sley: line 1: a program begins with 'sley.tile 9'"):
        tile.open_program(saved)


def test_a_kernel_without_choices(base: Device, tmp_path: Path) -> None:
    x = np.ones((20, 70), BF16)
    a, b, out = base.array(x), base.array(x), base.zeros((20, 70), BF16)
    kernels.add.portable[2, 3](a, b, out).save(tmp_path / "add.sley")
    tile.open_program(tmp_path / "add.sley")(a, b, out, schedule=tile.Schedule(buffer=1))
    assert (out.numpy() == 3).all()
