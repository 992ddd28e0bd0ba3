"""The table of chains against a dictionary."""

import random

import pytest

from sley.abi.vector.chains import CHAIN_PARAM, CHAIN_WORDS, WORDS, WORDS_KEPT, chain_parameter
from sley.hw.core.vector.chain_table import CHAIN, ChainTable
from sley.sim import Simulation


def words_of(table: Simulation, index: int) -> list[int]:
    table.poke("index", index)
    view = CHAIN.from_bits(table.peek("o"))
    return [getattr(view, name).as_bits() for name, _ in CHAIN]


@pytest.mark.parametrize("chains", [1, 3, 15])
def test_every_parameter_and_every_bit(chains: int) -> None:
    """Which numbers are words of the table, and which bits of a value a word has."""
    table = Simulation.of(ChainTable(chains))
    existing = {
        chain_parameter(chain, word): WORDS[word] for chain in range(1, chains + 1) for word in range(CHAIN_WORDS)
    }
    for param in range(256):
        table.poke("param", param)
        for value in (0, *(1 << bit for bit in range(32))):
            table.poke("value", value)
            layout = existing.get(param)
            assert table.peek("known") == (param >= CHAIN_PARAM)
            if param >= CHAIN_PARAM:
                assert table.peek("bad") == (layout is None or bool(value & ~layout.mask)), (param, value)


@pytest.mark.parametrize("chains", [1, 3, 15])
def test_random_writes(chains: int) -> None:
    """Bad ones, too, and values that nobody writes; a word is 0 until it is written and after ``clear``."""
    rng, table = random.Random(chains), Simulation.of(ChainTable(chains))
    expected: dict[tuple[int, int], int] = {}
    for _ in range(600):
        clears = rng.random() < 0.02
        chain, word = rng.randrange(chains + 2), rng.randrange(WORDS_KEPT)
        value = rng.getrandbits(32) & (WORDS[word % CHAIN_WORDS].mask if rng.random() < 0.8 else ~0)
        writes = not clears and rng.random() < 0.7
        table.poke("param", CHAIN_PARAM + WORDS_KEPT * chain + word)
        table.poke("value", value)
        table.poke("set", writes)
        table.poke("clear", clears)
        table.tick()
        if clears:
            expected.clear()
        if writes and 1 <= chain <= chains and word < CHAIN_WORDS and not value & ~WORDS[word].mask:
            expected[chain, word] = value
        for index in (chain, rng.randint(1, chains)):
            if 1 <= index <= chains:
                assert words_of(table, index) == [expected.get((index, word), 0) for word in range(CHAIN_WORDS)]


def test_chain_0_does_nothing() -> None:
    table = Simulation.of(ChainTable(2))
    for word in range(CHAIN_WORDS):
        table.poke("param", CHAIN_PARAM + word)
        table.poke("value", 1)
        table.poke("set", 1)
        assert table.peek("bad")
        table.tick()
    assert words_of(table, 0) == [0, 0, 0]
