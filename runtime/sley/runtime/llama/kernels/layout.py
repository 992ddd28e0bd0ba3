"""How tokens lie in tiles: a token a row, or the elements of one token in all lanes of several rows.

Arrays have three axes, [tokens, rows, columns]. With one row, a tile has a token in each row, which suits many
tokens. With as many columns as the chip has lanes, a tile is one token, and an operation on all of its elements is a
single instruction, which suits few of them. Statistics of a token that has several rows go along rows first, then along
columns: bits of a sum depend on it.
"""

from __future__ import annotations

from typing import Any

from sley.driver import BadRequest
from sley.runtime.device.buffer import Buffer
from sley.runtime.tile import language as tile


def folded(array: Buffer, lanes: int) -> Buffer:
    """[tokens, elements] as [tokens, rows, lanes]. Raises ``BadRequest``."""
    count, elements = array.shape
    if elements % lanes:
        raise BadRequest(f"{elements} elements of a token; on a chip of {lanes} lanes they are a multiple of {lanes}")
    return array.reshape(count, elements // lanes, lanes)


def flat(array: Buffer) -> Buffer:
    """[tokens, elements] as [tokens, 1, elements]."""
    return array.reshape(array.shape[0], 1, array.shape[1])


def is_folded(array: Any) -> bool:
    """Whether a tile is one token."""
    return bool(array.shape[1] > 1)


def load(array: Any, row: Any, rows: int, first: Any = 0, count: int | None = None) -> Any:
    """``rows`` tokens, or the one at ``row``; of their rows, or columns, ``count`` from ``first`` on."""
    if is_folded(array):
        return tile.load(array, (row, first, 0), (count or array.shape[1], array.shape[2]), axes=(1, 2))
    return tile.load(array, (row, 0, first), (rows, count or array.shape[2]), axes=(0, 2))


def place(array: Any, row: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Where the tile of tokens from ``row`` on is stored, and along which axes."""
    return (row, 0, 0), {"axes": (1, 2) if is_folded(array) else (0, 2)}


def largest(x: Any, one: bool) -> Any:
    """The largest absolute value of each token."""
    sizes = tile.maximum(x, -x)
    return sizes.max(0).max(1) if one else sizes.max(1)
