"""Tokens and prompts on a device, bit by bit against golden arithmetic."""

from pathlib import Path

import numpy as np
import pytest
from golden_llama import GoldenLlama
from small_llama import SHAPES, random_checkpoint

from sley.abi.config import ChipConfig, preset
from sley.driver import BadRequest
from sley.runtime import Device, KernelError, Program
from sley.runtime.kernels.many_rows.problem import ManyRows, Source
from sley.runtime.llama import weights
from sley.runtime.llama.cache import CacheFull
from sley.runtime.llama.checkpoint import Checkpoint
from sley.runtime.llama.model import Llama
from sley.runtime.llama.shape import LlamaShape
from sley.sim.golden import float32

ENGINE = "model:base?memory=32M"


def same(found: np.ndarray, right: np.ndarray) -> None:
    assert (np.ascontiguousarray(found).view(right.dtype) == right).all()


def cached(model: Llama, table: object) -> list[np.ndarray]:
    slots = table.slots()  # type: ignore[attr-defined]
    arrays = [*model.cache.keys, *model.cache.values]
    return [array.numpy().reshape(-1, model.weights.shape.key_width)[slots].view(np.uint16) for array in arrays]


@pytest.mark.parametrize("parts", [1, 2])
def test_a_request(checkpoint: Checkpoint, parts: int) -> None:
    """A prompt, and tokens that begin a page: logits, and keys and values of every layer."""
    random = np.random.default_rng(parts)
    count = checkpoint.shape.vocabulary
    with Device.open(ENGINE) as device:
        model = Llama(device, checkpoint, prompt_parts=parts)
        golden = GoldenLlama(checkpoint, parts=parts)
        table = model.cache.table(140)
        prompt = random.integers(0, count, 127 if parts == 1 else 62)
        same(model.prompt(list(prompt), table), golden.run(prompt))
        golden.parts = 2
        for token in random.integers(0, count, 3):
            same(model.decode([int(token)], [table]), golden.run(np.array([token])))
        for found, right in zip(cached(model, table), [*golden.keys, *golden.values], strict=True):
            same(found, right)
        assert np.isfinite(float32.to_float(golden.x)).all()


def test_a_prompt_in_pieces(checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """Products of a long prompt are several launches."""
    monkeypatch.setattr(weights, "AT_A_TIME", 64)
    prompt = np.random.default_rng(7).integers(0, checkpoint.shape.vocabulary, 127)
    with Device.open(ENGINE) as device:
        model, golden = Llama(device, checkpoint, prompt_parts=1), GoldenLlama(checkpoint, parts=1)
        table = model.cache.table(127)
        same(model.prompt(list(prompt), table), golden.run(prompt))
        for found, right in zip(cached(model, table), [*golden.keys, *golden.values], strict=True):
            same(found, right)


def test_programs_that_are_too_long(checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a core has too few instructions for tokens that are floats, they become int8 before, with the same bits."""
    made = weights.many_rows_program

    def short(config: ChipConfig, problem: ManyRows) -> Program:
        if problem.source is not Source.INT8:
            raise KernelError(f"{problem.name} has 517 instructions; a core holds 512")
        return made(config, problem)

    monkeypatch.setattr(weights, "many_rows_program", short)
    with Device.open(ENGINE) as device:
        model, golden = Llama(device, checkpoint, context=64), GoldenLlama(checkpoint)
        table = model.cache.table(40)
        for token in (5, 17, 5):
            same(model.decode([token], [table]), golden.run(np.array([token]), True))


@pytest.mark.parametrize("array", [4, 8])
def test_more_heads_than_lanes(array: int, tmp_path: Path) -> None:
    """Six heads, two of keys: a launch for each head of keys on four lanes, one for both on eight."""
    sizes = {"array": array, "vector_lanes": array, "accumulator_rows": 4096, "scratchpad_rows": 8192}
    config = preset("base").replace(name="narrow", **sizes)
    (tmp_path / "chip.json").write_text(config.to_json())
    checkpoint = random_checkpoint(SHAPES["grouped"], 3)
    with Device.open(f"model:{tmp_path}/chip.json?memory=32M") as device:
        model, golden = Llama(device, checkpoint, context=64), GoldenLlama(checkpoint, config)
        table = model.cache.table(40)
        for token in (5, 17, 5):
            same(model.decode([token], [table]), golden.run(np.array([token]), True))


def test_requests_side_by_side(checkpoint: Checkpoint) -> None:
    """Each has the bits that it has alone, whatever its place, length, and who else is there."""
    random, count = np.random.default_rng(5), checkpoint.shape.vocabulary
    with Device.open(ENGINE) as device:
        model = Llama(device, checkpoint, cache=256)
        goldens, tables = [], []
        for length in (3, 64):
            golden, table, prompt = (
                GoldenLlama(checkpoint),
                model.cache.table(length + 4),
                random.integers(0, count, length),
            )
            same(model.prompt(list(prompt), table), golden.run(prompt))
            goldens.append(golden)
            tables.append(table)
        for order, places in (((0, 1), 3), ((1, 0), 3), ((1, 0), 5), ((0, 1), 17), ((1, 0), 64)):
            tokens = [0] * places
            used: list[object] = [None] * places
            for place, number in zip((0, places - 1), order, strict=True):
                tokens[place], used[place] = int(random.integers(0, count)), tables[number]
            logits = model.decode(tokens, used)
            for place, number in zip((0, places - 1), order, strict=True):
                same(logits[place : place + 1], goldens[number].run(np.array([tokens[place]])))


def test_bad_requests(checkpoint: Checkpoint) -> None:
    """Refused with a bound and a remedy; the model goes on."""
    with Device.open(ENGINE) as device:
        with pytest.raises(BadRequest, match="prompt_parts is 3; activations have 1 or 2 parts"):
            Llama(device, checkpoint, prompt_parts=3)
        with pytest.raises(BadRequest, match="a context of 257 tokens; this model has 1 to 256"):
            Llama(device, checkpoint, context=257)
        model = Llama(device, checkpoint, context=64, cache=128)
        table = model.cache.table(64)
        with pytest.raises(BadRequest, match="a prompt of 65 tokens; the model was given a context of 64"):
            model.prompt([0] * 65, table)
        with pytest.raises(CacheFull, match="2 pages of 64 tokens are needed and 1 are free"):
            model.cache.table(65)
        model.prompt([1] * 64, table)
        with pytest.raises(BadRequest, match="65 tokens of a request; the model was given a context of 64"):
            model.decode([1], [table])
        with pytest.raises(BadRequest, match="token 9999, and the vocabulary has"):
            model.prompt([9999], model.cache.table(1))
        with pytest.raises(BadRequest, match="1 tokens behind 64"):
            model.prompt([1], table)
        table.free()
        assert np.isfinite(model.prompt([1] * 64, model.cache.table(64))).all()


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (LlamaShape(1, 48, 32, 64, 2, 1, 32, 64, 1e4, 1e-5), "tokens of 48 elements and heads of 32.*multiples of 32"),
        (LlamaShape(1, 64, 32, 64, 2, 1, 16, 64, 1e4, 1e-5), "tokens of 64 elements and heads of 16.*multiples of 32"),
        (LlamaShape(1, 64, 32, 64, 18, 1, 32, 64, 1e4, 1e-5), "18 heads of queries for each of keys.*at most 16"),
    ],
)
def test_other_sizes(shape: LlamaShape, words: str) -> None:
    """Refused before anything is on the device."""
    with Device.open(ENGINE) as device, pytest.raises(BadRequest, match=words):
        Llama(device, random_checkpoint(shape, 1))
