"""Random chains of the vector unit on a whole chip: the RTL in the fast engine against the golden model, bit by bit."""

import random
from pathlib import Path

import numpy as np
from chain_commands import FOLDS, chain_flags, random_chain, random_word
from small_chain_chip import SMALL, small_chip
from vector_model import Model

from sley.abi.faults import Unit
from sley.abi.instructions import Space, VectorRow
from sley.abi.types import WORD_TYPES, ElementType
from sley.runtime import Device, KernelBuilder, Program

PROGRAMS = 140
"""With a chain for each place in the table: 2,100 chains."""


def signed(word: int) -> int:
    return word - (word >> 31 << 32)


def random_program(seed: int) -> tuple[Program, np.ndarray]:
    """A program that fills both memories, lets a chain of each index work on them, and writes them back. Arguments are
    what the memories hold first, and where they go."""
    rng, config = random.Random(seed), SMALL
    k = KernelBuilder(f"chains{seed}", config)
    source, target = k.arg("source"), k.arg("target")
    a, out, count = k.reg("a", 0), k.reg("out", 0), k.reg("count", 0)
    loaded, done = k.semaphore("loaded"), k.semaphore("done")
    spaces = {Space.SCRATCHPAD: config.scratchpad_rows, Space.ACCUMULATOR: config.accumulator_rows}
    sizes = {Space.SCRATCHPAD: config.row_bytes, Space.ACCUMULATOR: config.accumulator_row_bytes}
    for space, rows in spaces.items():
        k.set(Unit.LOAD, run_bytes=sizes[space], mem_stride=sizes[space])
        k.mov(count, rows)
        k.load(source, 0, count, space=space, signal=loaded if space == Space.ACCUMULATOR else ())
        k.add(source, source, rows * sizes[space])
    wait = loaded
    for _ in range(config.vector_chains):
        if rng.random() < 0.3 or wait:
            k.set(Unit.VECTOR, **{f"splat{index}": signed(random_word(rng)) for index in range(4)})
            k.set(Unit.VECTOR, iota_base=rng.randint(-60, 20), iota_row=rng.choice([0, 1, -1, 7]))
            k.set(Unit.VECTOR, iota_lane=rng.choice([0, 1, -1, -5]), exchange=rng.randrange(config.array))
            k.vrow(rng.choice(list(VectorRow)), signed(random_word(rng)), splat=True)
        chain = random_chain(config, rng)
        flags = chain_flags(config, rng, chain)
        rows = rng.choice([1, 2, 5, 8, 13, 40, 60])

        out_space = Space.ACCUMULATOR if flags["out"] in WORD_TYPES else Space.SCRATCHPAD

        def walk(space: int, upper: bool = False, rows: int = rows) -> tuple[int, int]:
            """First row and stride, in the half of a memory; sources and output never meet but in place."""
            limit, stride = spaces[Space(space)] // 2, rng.choice([0, 1, 1, 1, -1, 3, -2])
            stride = 1 if abs(stride * (rows - 1)) >= limit or (upper and not stride) else stride
            span = stride * (rows - 1)
            return rng.randrange(max(0, -span), min(limit, limit - span)) + (limit if upper else 0), stride

        a_walk, b_walk, c_walk = walk(flags["a_space"]), walk(flags["b_space"]), walk(1 - flags["b_space"])
        out_walk = walk(out_space, upper=True)
        if rng.random() < 0.2 and flags["a_space"] == out_space:
            a_walk = out_walk  # in place
        k.set(Unit.VECTOR, a_stride=a_walk[1], b_row=b_walk[0], b_stride=b_walk[1])
        k.set(Unit.VECTOR, c_row=c_walk[0], c_stride=c_walk[1], out_stride=out_walk[1])
        k.mov(a, a_walk[0])
        k.mov(out, out_walk[0])
        index = k.chain(chain)
        named = {"dtype": ElementType(flags.pop("dtype")), "out": ElementType(flags.pop("out"))}
        k.vector(a, out, rows, chain=index, wait=wait, **named, **flags)
        wait = ()
        if rng.random() < 0.4:
            k.vfold(VectorRow(rng.randrange(4)), rng.choice(FOLDS), dtype=rng.choice(WORD_TYPES))
    k.vector(0, 0, 0, signal=done)
    wait = done
    for space, rows in spaces.items():
        k.set(Unit.STORE, run_bytes=sizes[space], mem_stride=sizes[space])
        k.mov(count, rows)
        k.store(target, 0, count, space=space, wait=wait)
        k.add(target, target, rows * sizes[space])
        wait = ()
    k.end()
    contents = Model.random(config, np.random.default_rng(seed))
    both = (contents.scratchpad, contents.accumulators)
    return k.build(), np.concatenate([memory.view(np.uint8).ravel() for memory in both])


def memories(url: str, programs: range) -> list[np.ndarray]:
    """What the programs leave in the memories of the engine's core."""
    results = []
    with Device.open(url) as device:
        for seed in programs:
            program, contents = random_program(seed)
            source, target = device.array(contents), device.array(np.zeros_like(contents))
            device.stream.launch(program, [source, target])
            results.append(target.numpy())
    return results


def test_fast_equals_model(tmp_path: Path) -> None:
    results = [memories(f"{engine}:{small_chip(tmp_path)}?memory=4M", range(PROGRAMS)) for engine in ("fast", "model")]
    for seed, (got, expected) in enumerate(zip(*results, strict=True)):
        assert (got == expected).all(), f"program {seed} differs at {np.flatnonzero(got != expected)[:8].tolist()}"
