"""Requests that share the device: they join and leave between tokens."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from sley.driver import BadRequest
from sley.runtime.llama.cache import Table
from sley.runtime.llama.model import Llama
from sley.runtime.llama.sampling import Sampling


@dataclass(eq=False)
class Request:
    """A prompt and its answer so far; made by ``Batch.submit``.

    Attributes
    ----------
    prompt: its tokens. limit: tokens of the answer at most. tokens: the answer so far, with the token that ends
    it. done: whether there will be no more.
    """

    prompt: tuple[int, ...]
    limit: int
    sampling: Sampling
    random: np.random.Generator
    tokens: list[int] = field(default_factory=list)
    done: bool = False
    table: Table | None = None


class Batch:
    """Continuous batching: up to ``size`` requests get a token each by one launch.

    A request that waits joins as soon as a place is free and the cache has room for all that it may become: its prompt
    is a launch of its own. A request that has ended leaves, with its pages.
    """

    def __init__(self, model: Llama, size: int, end: int) -> None:
        if size < 1:
            raise BadRequest(f"a batch of {size}; it has 1 place or more")
        self.model, self.end = model, end
        self._places: list[Request | None] = [None] * size
        self._waiting: deque[Request] = deque()

    def submit(self, prompt: Sequence[int], limit: int, sampling: Sampling | None = None, seed: int = 0) -> Request:
        """Puts a request in the queue. Raises ``BadRequest`` for one that can never run."""
        most = min(self.model.weights.context, self.model.cache.tokens)
        if not prompt or limit < 1 or len(prompt) + limit > most:
            raise BadRequest(
                f"a prompt of {len(prompt)} tokens and an answer of up to {limit}; each is at least 1, both together "
                f"at most {most}"
            )
        self.model.check_tokens(prompt)
        request = Request(tuple(prompt), limit, sampling or Sampling(), np.random.default_rng(seed))
        self._waiting.append(request)
        return request

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        return bool(self._waiting) or any(self._places)

    def step(self) -> list[tuple[Request, int]]:
        """One more token of each request, and the first ones of those that join: which request got which token."""
        found = self._joined()
        active = [request for request in self._places if request is not None]
        if active:
            tokens = [request.tokens[-1] if request else 0 for request in self._places]
            logits = self.model.decode(tokens, [request.table if request else None for request in self._places])
            for request, values in zip(self._places, logits, strict=True):
                if request is not None:
                    found.append((request, self._append(request, values)))
        return found

    def _joined(self) -> list[tuple[Request, int]]:
        found = []
        for place, held in enumerate(self._places):
            if held is not None or not self._waiting:
                continue
            request = self._waiting[0]
            if not self.model.cache.has_room(len(request.prompt) + request.limit):
                break  # in their order: a long request is not passed by short ones for ever
            self._waiting.popleft()
            request.table = self.model.cache.table(len(request.prompt) + request.limit)
            self._places[place] = request
            found.append((request, self._append(request, self.model.prompt(request.prompt, request.table)[0])))
        return found

    def _append(self, request: Request, logits: np.ndarray) -> int:
        token = request.sampling.choose(logits, request.random)
        request.tokens.append(token)
        if token == self.end or len(request.tokens) == request.limit:
            request.done = True
            assert request.table is not None
            request.table.free()
            request.table = None
            self._places[self._places.index(request)] = None
        return token
