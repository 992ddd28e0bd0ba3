"""Pages on the passes of the tile compiler: a kernel, and its IR before and behind each, as ``SLEY_DUMP`` prints it.

What decides and changes nothing, from places to semaphores, is written behind the lines of the IR that it is about.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sley.abi.config import preset
from sley.abi.types import ElementType
from sley.bench.tile.decisions import ahead_of, places_of, waits_of
from sley.runtime import tile
from sley.runtime.tile.ir import Function
from sley.runtime.tile.lowering import PASSES, SCHEDULED, lower
from sley.runtime.tile.passes import ahead, order, placement
from sley.runtime.tile.passes.blocks import along_longest, loop_over_blocks
from sley.runtime.tile.passes.gangs import gang
from sley.runtime.tile.passes.invariants import hoist_invariants
from sley.runtime.tile.passes.panels import keep_panels
from sley.runtime.tile.passes.zeros import replace_zeros
from sley.runtime.tile.schedule import AUTOMATIC, Schedule
from sley.runtime.tile.text import printed
from sley.runtime.tile.types import ArrayType

BF16, FP32, INT8 = ElementType.BF16, ElementType.FP32, ElementType.INT8
_LINE = re.compile(r" @\d+")
CHIP = preset("base")
"""The chip that the pages are for."""


@tile.kernel
def distances(x: Any, out: Any) -> None:
    values = tile.load(x, (tile.block_id() * 8, 0), (8, 32))
    _largest = values.max(1)
    tile.store(out, (tile.block_id() * 8, 0), values - values.min(1))


@tile.kernel
def softmax(x: Any, out: Any) -> None:
    values = tile.load(x, (tile.block_id() * 16, 0), (16, 64), fill=-float("inf"))
    powers = tile.exp(values - values.max(1))
    tile.store(out, (tile.block_id() * 16, 0), (powers / powers.sum(1)).to(out.dtype))


@tile.kernel
def layer_norm(x: Any, scale: Any, out: Any) -> None:
    values = tile.load(x, (tile.block_id() * 64, 0), (64, 256))
    centred = values - values.sum(1) * (1 / 256)
    factor = tile.rsqrt((centred * centred).sum(1) * (1 / 256) + 1e-5)
    tile.store(out, (tile.block_id() * 64, 0), (centred * factor * tile.load(scale, (0, 0), (1, 256))).to(out.dtype))


@tile.kernel
def scores(q: Any, k: Any, out: Any) -> None:
    a, b = tile.load(q, (0, 0), (16, 32)), tile.load(k, (0, 0), (16, 32))
    tile.store(out, (0, 0), (tile.dot(a, b.T, tile.zeros((16, 16))) * 0.25).to(out.dtype))


@tile.kernel
def squares(x: Any, out: Any) -> None:
    values = tile.load(x, (0, 0), (16, 16))
    total = tile.dot(values, values, tile.zeros((16, 16), tile.sums_of(x.dtype)))
    tile.store(out, (0, 0), total)


@tile.kernel
def columns(x: Any, out: Any) -> None:
    tile.store(out, (0, 0), tile.load(x, (0, 0), (16, 16), axes=(1, 0)) * 2.0)


@tile.kernel
def scaled(x: Any, scale: Any, out: Any) -> None:
    factors = tile.load(scale, (0, 0), (16, 1))
    tile.store(out, (0, 0), (tile.load(x, (0, 0), (16, 32)) * factors).to(out.dtype))


@tile.kernel
def causal(x: Any, out: Any) -> None:
    values = tile.load(x, (0, 0), (16, 16))
    seen = tile.iota((16, 16), 1) <= tile.iota((16, 16), 0)
    tile.store(out, (0, 0), tile.where(seen, values, -1e30))


@tile.kernel
def ends(x: Any, out: Any) -> None:
    total = last = tile.zeros((16, 16))
    for k in range(0, 64, 16):
        last = tile.load(x, (0, k), (16, 16))
        total = total + last
    tile.store(out, (0, 0), total - last)


@tile.kernel
def doubled(x: Any, out: Any) -> None:
    for row in range(0, 64, 16):
        tile.store(out, (row, 0), tile.load(x, (row, 0), (16, 16)) * 2.0)


@tile.kernel
def span(x: Any, out: Any) -> None:
    low = high = tile.load(x, (0, 0), (16, 16))
    for i in range(0, 64, 16):
        low = tile.minimum(low, tile.load(x, (0, i), (16, 16)))
    for j in range(0, 64, 16):
        high = tile.maximum(high, tile.load(x, (0, j), (16, 16)))
    tile.store(out, (0, 0), high - low)


@tile.kernel
def largest(x: Any, out: Any) -> None:
    high = tile.full((16, 16), 0.0)
    for k in range(0, 64, 16):
        high = tile.maximum(high, tile.tanh(tile.load(x, (0, k), (16, 16))))
    tile.store(out, (0, 0), high)


@tile.kernel
def product(x: Any, w: Any, out: Any) -> None:
    total = tile.zeros((64, 64))
    for k in range(0, 256, 64):
        total = tile.dot(tile.load(x, (0, k), (64, 64)), tile.load(w, (k, 0), (64, 64)), total)
    tile.store(out, (0, 0), total.to(out.dtype))


@tile.kernel
def wide_product(x: Any, w: Any, out: Any) -> None:
    total = tile.zeros((32, 128))
    for k in range(0, 256, 64):
        total = tile.dot(tile.load(x, (0, k), (32, 64)), tile.load(w, (k, 0), (64, 128)), total)
    tile.store(out, (0, 0), total.to(out.dtype))


@tile.kernel
def tiled(x: Any, w: Any, out: Any) -> None:
    row, column = tile.block_id(1) * 32, tile.block_id(0) * 32
    total = tile.dot(tile.load(x, (row, 0), (32, 64)), tile.load(w, (0, column), (64, 32)), tile.zeros((32, 32)))
    tile.store(out, (row, column), total.to(out.dtype))


@tile.kernel
def chunked(x: Any, w: Any, out: Any) -> None:
    column, total = tile.block_id() * 32, tile.zeros((16, 32))
    for k in range(0, x.shape[1], 32):
        total = tile.dot(tile.load(x, (0, k), (16, 32)), tile.load(w, (k, column), (32, 32)), total)
    tile.store(out, (0, column), total)


def array(dtype: ElementType, *shape: int) -> ArrayType:
    strides = [int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))]
    return ArrayType(dtype, shape, tuple(strides))


@dataclass(frozen=True)
class Example:
    """A kernel that a pass changes, what it is compiled for, and how."""

    kernel: tile.Kernel
    arrays: dict[str, ArrayType]
    grid: tuple[int, int, int] = (1, 1, 1)
    schedule: Schedule = AUTOMATIC

    def function(self) -> Function:
        return self.kernel.function(dict(self.arrays), {}, self.grid)


_ROWS = {"x": array(BF16, 64, 64), "out": array(BF16, 64, 64)}
_SOFTMAX = Example(softmax, _ROWS, (4, 1, 1))
_SQUARE = {"x": array(FP32, 16, 16), "out": array(FP32, 16, 16)}
_LONG = {"x": array(FP32, 64, 16), "out": array(FP32, 64, 16)}
_WIDE = {"x": array(FP32, 16, 64), "out": array(FP32, 16, 16)}
_PRODUCT = Example(product, {"x": array(BF16, 64, 256), "w": array(BF16, 256, 64), "out": array(BF16, 64, 64)})
EXAMPLES: dict[str, Example] = {
    "split": Example(doubled, _LONG, schedule=Schedule(split={"row": 2})),
    "fuse": Example(span, _WIDE, schedule=Schedule(fuse=(("i", "j"),))),
    "privatise": Example(largest, _WIDE, schedule=Schedule(privatise={"k": 2})),
    "unroll": Example(doubled, _LONG, schedule=Schedule(unroll={"row": 2})),
    "simplify": Example(distances, {"x": array(FP32, 64, 32), "out": array(FP32, 64, 32)}, (8, 1, 1)),
    "common": _SOFTMAX,
    "exact": _SOFTMAX,
    "recompute": _SOFTMAX,
    "transposes": Example(scores, {"q": array(BF16, 16, 32), "k": array(BF16, 16, 32), "out": array(BF16, 16, 16)}),
    "weights": Example(squares, {"x": array(INT8, 16, 16), "out": array(ElementType.INT32, 16, 16)}),
    "runs": Example(columns, _SQUARE),
    "spread": Example(scaled, {"x": array(BF16, 16, 32), "scale": array(FP32, 16, 1), "out": array(BF16, 16, 32)}),
    "masks": Example(causal, _SQUARE),
    "chains": _SOFTMAX,
    "folds": _SOFTMAX,
    "merge": Example(
        layer_norm,
        {"x": array(BF16, 128, 256), "scale": array(BF16, 1, 256), "out": array(BF16, 128, 256)},
        (2, 1, 1),
    ),
    "narrow": _SOFTMAX,
    "carry": Example(ends, _WIDE),
    "zeros": _PRODUCT,
    "gangs": Example(
        tiled, {"x": array(BF16, 64, 64), "w": array(BF16, 64, 64), "out": array(BF16, 64, 64)}, (2, 2, 1)
    ),
    "blocks": _SOFTMAX,
    "panels": Example(
        chunked, {"x": array(BF16, 16, 64), "w": array(BF16, 64, 96), "out": array(FP32, 16, 96)}, (3, 1, 1)
    ),
    "invariants": Example(
        tiled, {"x": array(BF16, 64, 64), "w": array(BF16, 64, 32), "out": array(BF16, 64, 32)}, (1, 2, 1)
    ),
    "placement": _PRODUCT,
    "ahead": Example(
        wide_product, {"x": array(BF16, 32, 256), "w": array(BF16, 256, 128), "out": array(BF16, 32, 128)}
    ),
    "order": _PRODUCT,
}
BEHIND: dict[str, Callable[[Function], object]] = {
    "zeros": replace_zeros,
    "gangs": lambda function: gang(function, preset("quad")),
    "blocks": lambda function: loop_over_blocks(function, along_longest(function.grid, CHIP.cores)),
    "panels": lambda function: keep_panels(function, CHIP),
    "invariants": hoist_invariants,
}
"""Passes that follow ``lower``."""
DECISIONS: dict[str, Callable[..., str]] = {"placement": places_of, "ahead": ahead_of, "order": waits_of}
"""What changes no function."""
MODULES = {
    **{name: sys.modules[run.__module__] for name, run in {**SCHEDULED, **PASSES}.items()},
    "zeros": sys.modules[replace_zeros.__module__],
    "gangs": sys.modules[gang.__module__],
    "blocks": sys.modules[loop_over_blocks.__module__],
    "panels": sys.modules[keep_panels.__module__],
    "invariants": sys.modules[hoist_invariants.__module__],
    "placement": placement,
    "ahead": ahead,
    "order": order,
}
"""By the names of passes, in their order."""


def before_and_behind(name: str) -> tuple[str, str]:
    """The text of a pass's example before it and behind it."""
    function, texts = EXAMPLES[name].function(), dict[str, str]()

    def watch(passed: str, function: Function) -> None:
        texts[passed] = printed(function)

    lower(function, CHIP.array, EXAMPLES[name].schedule, watch)
    for passed, run in BEHIND.items():
        run(function)
        watch(passed, function)
    if name in DECISIONS:
        return _LINE.sub("", texts["invariants"]), _LINE.sub("", DECISIONS[name](function, CHIP))
    names = list(texts)
    return _LINE.sub("", texts[names[names.index(name) - 1]]), _LINE.sub("", texts[name])


def page(name: str) -> str:
    """The page of a pass."""
    module = MODULES[name]
    head, _, rest = (module.__doc__ or "").partition("\n\n")
    example = EXAMPLES[name]
    source = example.kernel.source.text
    asked = f", with `{name}={getattr(example.schedule, name)!r}` in its schedule" if name in SCHEDULED else ""
    before, behind = before_and_behind(name)
    order = list(MODULES)
    place = order.index(name)
    near = [f"[{other}]({other}.md)" for other in order[max(place - 1, 0) : place + 2] if other != name]
    if name in DECISIONS:
        shown = f"What it decides for this function, behind `;`:\n\n```text\n{behind}```\n"
    else:
        dump = f", as `SLEY_DUMP={name}` prints it" if name in {**SCHEDULED, **PASSES} else ""
        shown = (
            f"Before:\n\n```text\n{before}```\n\nBehind it{dump} (lines that are new begin with `+` here, those that "
            f"are gone are above):\n\n```text\n{_marked(before, behind)}```\n"
        )
    return (
        f"# The pass {name}\n\n"
        f"`{module.__name__.replace('.', '/')}.py`, pass {place + 1} of {len(order)}, "
        f"beside {' and '.join(near)}. Written by `sley bench passes`; do not edit.\n\n"
        f"{_flowed(head)}\n\n{_flowed(rest)}\n\n"
        f"The kernel{asked}:\n\n```text\n{source}```\n\n{shown}"
    )


def _flowed(text: str) -> str:
    """Paragraphs of a docstring, each on one line."""
    paragraphs = [" ".join(part.split()) for part in text.strip().split("\n\n")]
    return "\n\n".join(part.replace("``", "`") for part in paragraphs)


def _marked(before: str, behind: str) -> str:
    """Lines with + where they are new: numbers of values, which all change with one that is new, do not count."""
    known = Counter(map(_without_numbers, before.splitlines()))
    marked = ""
    for line in behind.splitlines():
        old = known[_without_numbers(line)] > 0
        known[_without_numbers(line)] -= old
        marked += f"{' ' if old else '+'} {line}\n"
    return marked


def _without_numbers(line: str) -> str:
    words = line.split()
    return " ".join(word for word in words if not word.startswith("%")) + str(line.count("%"))


def pages() -> dict[str, str]:
    """All pages by their names, and the first one."""
    rows = "\n".join(f"| {number} | [{name}]({name}.md) | {_first(name)} |" for number, name in enumerate(MODULES, 1))
    index = (
        "# How the compiler works\n\n"
        "A kernel of the [tile language](../../guides/tile.md) goes through these passes, one behind the other; the "
        f"first {len(SCHEDULED)} do what a [schedule](../../guides/tile.md#schedules) says of loops, if it does. Each "
        "has a page with a kernel that it changes, and what that was before and is behind it; the last three change "
        "nothing, and their pages show what they decide. The interpreter runs the text behind each of the others, and "
        "must give the same bits as the chip. How instructions are made of it is on the page of the "
        "[tile compiler](../tile.md#the-passes). Written by `sley bench passes`; do not edit.\n\n"
        f"| | pass | what it does |\n|---|---|---|\n{rows}\n"
    )
    return {"index": index, **{name: page(name) for name in MODULES}}


def _first(name: str) -> str:
    return _flowed((MODULES[name].__doc__ or "").partition("\n\n")[0])
