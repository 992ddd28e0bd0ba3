"""Late operands against a queue of rows: rows in flight, exchanged lanes, one lane for all."""

import random
from collections import deque

import pytest

from sley.abi.config import PRESETS
from sley.abi.vector.chains import Lanes
from sley.hw.core.vector.late import WAITING_ROWS, LateOperand
from sley.sim import Simulation

NANO = PRESETS["nano"].replace(vector_chains=1)
EIGHT = NANO.replace(array=8, vector_lanes=8)


def arranged(row: list[int], number: int, lanes: Lanes, exchange: int) -> list[int]:
    n = len(row)
    if lanes is Lanes.BROADCAST:
        return [row[number % n]] * n
    if lanes is Lanes.EXCHANGE:
        return [row[lane ^ exchange % n] for lane in range(n)]
    return row


@pytest.mark.parametrize("config", [NANO, EIGHT], ids=["4", "8"])
@pytest.mark.parametrize("lanes", Lanes)
def test_rows_in_order(config, lanes: Lanes) -> None:
    """Instructions of random lengths, of which some end with rows left inside; as many rows inside as may be."""
    rng, n = random.Random(lanes), config.array
    late, most = Simulation.of(LateOperand(config)), 0
    for exchange in [*range(n), *rng.sample(range(64), 6)]:
        late.poke("start", 1)
        late.poke("write", 0)
        late.poke("read", 0)
        late.tick()
        late.poke("start", 0)
        late.poke("lanes", lanes)
        late.poke("exchange", exchange)
        inside: deque[list[int]] = deque()
        due: deque[list[int] | None] = deque([None, None])
        read, fill = 0, rng.choice([0.3, 0.9])
        for _ in range(rng.choice([5, 90, 200])):
            writes = len(inside) < WAITING_ROWS and rng.random() < fill
            reads = bool(inside) and rng.random() < 1 - fill
            row = [rng.getrandbits(32) for _ in range(n)]
            late.poke("write", writes)
            late.poke("i", sum(word << 32 * lane for lane, word in enumerate(row)))
            late.poke("read", reads)
            expected = due.popleft()
            if expected is not None:
                o = late.peek("o")
                assert [o >> 32 * lane & 0xFFFFFFFF for lane in range(n)] == expected
            due.append(arranged(inside.popleft(), read, lanes, exchange) if reads else None)
            read += reads
            if writes:
                inside.append(row)
            most = max(most, len(inside))
            late.tick()
    assert most == WAITING_ROWS
