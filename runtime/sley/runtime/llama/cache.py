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


class CacheFull(BadRequest):
    """There are not enough free pages."""


class Table:
    """The pages of a request, in the order of its tokens; made by ``PagedCache.table``.

    Attributes: ``length``: tokens in it.
    """

    def __init__(self, cache: PagedCache, pages: list[int]) -> None:
        self._cache, self._pages, self.length = cache, pages, 0

    def check_room(self, count: int) -> None:
        """Raises ``CacheFull`` if the table was made for fewer than so many more tokens."""
        if self.length + count > len(self._pages) * PAGE:
            raise CacheFull(
                f"{count} tokens behind {self.length}; this request was given {len(self._pages)} pages of {PAGE}"
            )

    def extend(self, count: int) -> NDArray[np.int32]:
        """Slots of so many more tokens. Raises ``CacheFull``."""
        self.check_room(count)
        self.length += count
        return self.slots()[self.length - count :]

    def slots(self) -> NDArray[np.int32]:
        """Where the keys and values of each token are: page · PAGE + place in it."""
        rows = np.asarray(self._pages, np.int32)[:, None] * PAGE + np.arange(PAGE, dtype=np.int32)
        slots: NDArray[np.int32] = rows.reshape(-1)[: self.length].astype(np.int32)
        return slots

    def free(self) -> None:
        """Gives all pages back."""
        self._cache.give(self._pages)
        self._pages, self.length = [], 0


class PagedCache:
    """Keys and values of every layer on a device, for so many tokens of all requests together.

    Attributes
    ----------
    keys, values: of each layer [slots, key heads, head] bfloat16. tokens: of all pages. idle: a slot that is nobody's.
    """

    def __init__(self, device: Device, shape: LlamaShape, tokens: int) -> None:
        if tokens < 1:
            raise BadRequest(f"a cache of {tokens} tokens; it holds 1 or more")
        count = -(-tokens // PAGE)
        self.tokens = count * PAGE
        sides = self.tokens + PAGE, shape.key_heads, shape.head
        self.keys: list[Buffer] = [device.zeros(sides, BF16) for _ in range(shape.layers)]
        self.values: list[Buffer] = [device.zeros(sides, BF16) for _ in range(shape.layers)]
        self.idle = 0
        self._free = list(range(count, 0, -1))

    @property
    def slot_bytes(self) -> int:
        """From the keys, or values, of a slot to those of the next one."""
        return self.keys[0].strides[0]

    def has_room(self, tokens: int) -> bool:
        """Whether a request may become so long."""
        return -(-tokens // PAGE) <= len(self._free)

    def table(self, tokens: int) -> Table:
        """Pages for a request that may become so long. Raises ``CacheFull``."""
        count = -(-tokens // PAGE)
        if count > len(self._free):
            raise CacheFull(
                f"{count} pages of {PAGE} tokens are needed and {len(self._free)} are free: end a request, or give "
                "the model a larger cache"
            )
        return Table(self, [self._free.pop() for _ in range(count)])

    def give(self, pages: list[int]) -> None:
        """Takes pages back."""
        self._free += reversed(pages)
