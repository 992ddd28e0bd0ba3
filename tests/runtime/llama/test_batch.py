"""Continuous batching: requests join and leave between tokens, and nobody sees the others."""

import numpy as np
import pytest

from sley.driver import BadRequest
from sley.runtime import Device
from sley.runtime.llama.batch import Batch
from sley.runtime.llama.checkpoint import Checkpoint
from sley.runtime.llama.model import Llama
from sley.runtime.llama.sampling import Sampling

ENGINE = "model:base?memory=32M"


def alone(model: Llama, prompt: list[int], limit: int, end: int) -> list[int]:
    table, tokens = model.cache.table(len(prompt) + limit), list[int]()
    logits = model.prompt(prompt, table)
    while True:
        tokens.append(int(logits[0].argmax()))
        if tokens[-1] == end or len(tokens) == limit:
            table.free()
            return tokens
        logits = model.decode([tokens[-1]], [table])


def test_join_and_leave(checkpoint: Checkpoint) -> None:
    """Five requests on two places, in a cache that holds three: each gets the answer that it gets alone."""
    random = np.random.default_rng(1)
    prompts = [random.integers(0, checkpoint.shape.vocabulary, size).tolist() for size in (1, 5, 60, 64, 17)]
    limits = [4, 1, 7, 3, 5]
    with Device.open(ENGINE) as device:
        model = Llama(device, checkpoint, cache=192)
        right = [alone(model, prompt, limit, 3) for prompt, limit in zip(prompts, limits, strict=True)]
        batch = Batch(model, 2, 3)
        requests = [batch.submit(prompt, limit) for prompt, limit in zip(prompts[:3], limits, strict=False)]
        told: dict[int, list[int]] = {}
        while batch:
            for request, token in batch.step():
                told.setdefault(id(request), []).append(token)
            if len(requests) == 3 and requests[0].done:
                requests += [batch.submit(prompt, limit) for prompt, limit in zip(prompts[3:], limits[3:], strict=True)]
        assert [request.tokens for request in requests] == right
        assert [told[id(request)] for request in requests] == right
        assert model.cache.has_room(192)


def test_bad_requests(checkpoint: Checkpoint) -> None:
    with Device.open(ENGINE) as device:
        batch = Batch(Llama(device, checkpoint, context=64), 1, 0)
        with pytest.raises(BadRequest, match=r"a prompt of 60 tokens and an answer of up to 5;.*at most 64"):
            batch.submit([1] * 60, 5)
        with pytest.raises(BadRequest, match="a prompt of 0 tokens"):
            batch.submit([], 5)
        with pytest.raises(BadRequest, match="temperature and likeliest are 0 or more"):
            Sampling(-1)
        with pytest.raises(BadRequest, match="a batch of 0"):
            Batch(batch.model, 0, 0)
        assert not batch


def test_sampling() -> None:
    """Shares of tokens are those of the softmax, of the likeliest ones alone."""
    random, logits = np.random.default_rng(0), np.log(np.array([0.1, 0.2, 0.3, 0.4], np.float32))
    counts = np.bincount([Sampling(1.0, 2).choose(logits, random) for _ in range(2000)], minlength=4) / 2000
    assert np.abs(counts - [0, 0, 3 / 7, 4 / 7]).max() < 0.04
    assert Sampling().choose(logits, random) == 3
