"""Keys and values of all requests, in pages."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sley.driver import BadRequest
from sley.runtime.device.buffer import BF16, Buffer
from sley.runtime.device.device import Device
from sley.runtime.llama.shape import LlamaShape

PAGE = 64
"""Tokens of a page."""


class CacheFull(BadRequest):  # noqa: N818 (named like the driver's)
    """No page is free."""


class Table:
    """The pages of a request, in the order of its tokens; made by ``PagedCache.table``.

    Attributes: ``length``: tokens in it.
    """

    def __init__(self, cache: PagedCache) -> None:
        self._cache, self._pages, self.length = cache, list[int](), 0

    def extend(self, count: int) -> NDArray[np.int32]:
        """Slots of so many more tokens. Raises ``CacheFull``, and takes no page then."""
        last = self.length + count
        self._pages += self._cache.take(-(-last // PAGE) - len(self._pages))
        first, self.length = self.length, last
        return self.slots()[first:]

    def slots(self) -> NDArray[np.int32]:
        """Where the keys and values of each token are: page · PAGE + place in it."""
        rows = np.asarray(self._pages, np.int32)[:, None] * PAGE + np.arange(PAGE, dtype=np.int32)
        return rows.reshape(-1)[: self.length]

    def free(self) -> None:
        """Gives all pages back."""
        self._cache.give(self._pages)
        self._pages, self.length = [], 0


class PagedCache:
    """Keys and values of every layer on a device, for so many tokens of all requests together.

    Attributes
    ----------
    keys, values: of each layer [slots, key heads, head] bfloat16. idle: a slot that is nobody's.
    """

    def __init__(self, device: Device, shape: LlamaShape, tokens: int) -> None:
        count = -(-tokens // PAGE) + 1
        sides = count * PAGE, shape.key_heads, shape.head
        self.keys: list[Buffer] = [device.zeros(sides, BF16) for _ in range(shape.layers)]
        self.values: list[Buffer] = [device.zeros(sides, BF16) for _ in range(shape.layers)]
        self.idle = 0
        self._free = list(range(count - 1, 0, -1))

    def table(self) -> Table:
        """An empty one, for a new request."""
        return Table(self)

    @property
    def free_tokens(self) -> int:
        """Tokens of the pages that are free."""
        return len(self._free) * PAGE

    def take(self, count: int) -> list[int]:
        """So many free pages. Raises ``CacheFull``."""
        if count > len(self._free):
            raise CacheFull(
                f"{count} pages of {PAGE} tokens are needed and {len(self._free)} are free: end a request, or give "
                "the model a larger cache"
            )
        return [self._free.pop() for _ in range(count)]

    def give(self, pages: list[int]) -> None:
        """Takes pages back."""
        self._free += reversed(pages)
