"""The matrix products that ``sley bench suite`` measures: the list of the package, or one of the user's own.

``shapes.csv`` holds sizes alone: squares and skinny products, and the layers of published networks as the products
that they amount to. A convolution counts as the GEMM of the same size (M output pixels, N output channels, K = channels
times window), a depthwise one as one M x 1 x 9 product for each channel.

| family | what |
|---|---|
| `square`, `skinny` | M = N = K; M of 1, 4 and 16 with N = K |
| `tiny` | one transformer layer: 128 tokens, width 256, 4 heads, hidden layer of 1024 |
| `bert128`, `bert384` | BERT base with 128 and 384 tokens (Devlin et al. 2018) |
| `llama-prefill`, `llama-decode` | LLaMA 7B: a prompt of 2048 tokens; one token behind 2048 (Touvron et al. 2023) |
| `resnet18`, `resnet50` | 224 x 224 pixels (He et al. 2015) |
| `mobilenetv1` | 224 x 224 pixels, width 1.0 (Howard et al. 2017) |
"""

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from sley.driver import BadRequest

COLUMNS = ("family", "layer", "M", "N", "K", "count")

Size = tuple[int, int, int]
"""M, N, K."""


@dataclass(frozen=True)
class Layer:
    """A product of a network, which computes it ``count`` times."""

    family: str
    name: str
    size: Size
    count: int


def load_layers(path: Path | None = None) -> list[Layer]:
    """The layers of a CSV file with the columns ``COLUMNS``; those of the package if there is none."""
    try:
        text = (path or files("sley.bench.gemm") / "shapes.csv").read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadRequest(f"{path} is no text in UTF-8 ({error}); a list of shapes is a CSV file") from None
    rows = csv.DictReader(text.splitlines())
    if tuple(rows.fieldnames or ()) != COLUMNS:
        raise BadRequest(f"{path} has the columns {rows.fieldnames}; a list of shapes has {', '.join(COLUMNS)}")
    return [_layer(row, f"{path}, line {rows.line_num}") for row in rows]


def _layer(row: dict[str, str], where: str) -> Layer:
    try:
        m, n, k, count = (int(row[name]) for name in COLUMNS[2:])
    except (TypeError, ValueError):
        raise BadRequest(f"{where}: M, N, K and count must be integers, not {list(row.values())[2:]}") from None
    if min(m, n, k, count) < 1:
        raise BadRequest(f"{where}: M, N, K and count must be at least 1, not {(m, n, k, count)}")
    return Layer(row["family"], row["layer"], (m, n, k), count)


def families(layers: Iterable[Layer]) -> list[str]:
    """Names of the families, in the order of the list."""
    return list(dict.fromkeys(layer.family for layer in layers))


def choose(layers: Sequence[Layer], names: Sequence[str] = (), limit: int | None = None) -> Iterator[Layer]:
    """The first ``limit`` layers of each family, or of each of those named."""
    known = families(layers)
    for name in names:
        if name not in known:
            raise BadRequest(f"no family {name!r}; there are {', '.join(known)}")
    for family in known:
        if not names or family in names:
            yield from [layer for layer in layers if layer.family == family][:limit]
