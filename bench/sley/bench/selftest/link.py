"""The way to the device: how long a word takes, how many bytes pass in a second, bursts of random lengths, losses."""

import random
import time

from sley.abi.transport import Transport
from sley.bench.selftest.checks import Check
from sley.bench.selftest.memory import compare

WORDS = 50
BURST = 8192
ROUNDS = 30
LONGEST = 700
MARGIN = 64
"""Bytes on both sides of a burst that must stay as they were."""


def latency(transport: Transport, check: Check) -> None:
    """Reads of four bytes, one after the other."""
    times = []
    for _ in range(WORDS):
        begin = time.perf_counter()
        transport.read_memory(0, 4)
        times.append(time.perf_counter() - begin)
    check.about = (
        f"{1e3 * sum(times) / WORDS:.3g} ms for a word on average, {1e3 * max(times):.3g} ms at most, of {WORDS}"
    )


def throughput(transport: Transport, check: Check) -> None:
    """A long burst each way, of bytes that are not zero."""
    length = min(BURST, transport.memory_bytes)
    data = bytes(random.Random(2).randint(1, 255) for _ in range(length))
    begin = time.perf_counter()
    transport.write_memory(0, data)
    transport.barrier()
    written = time.perf_counter()
    found = transport.read_memory(0, length)
    read = time.perf_counter()
    compare(check, 0, data, found, "long burst")
    rates = [length / (end - start) for start, end in ((begin, written), (written, read))]
    check.about = f"{rates[0]:,.0f} bytes a second written, {rates[1]:,.0f} read, of {length:,}"


def random_lengths(transport: Transport, check: Check) -> None:
    """Bursts of any length at any place, zeros among them; the bytes around each stay."""
    draw = random.Random(3)
    longest = min(LONGEST, transport.memory_bytes // 2)
    span = longest + 2 * MARGIN
    total = 0
    for number in range(ROUNDS):
        start = draw.randrange(0, transport.memory_bytes - span)
        before = draw.randbytes(span)
        offset, length = MARGIN + draw.randrange(0, 8), draw.randint(0, longest - 8)
        data = bytes(length) if number % 5 == 0 else draw.randbytes(length)
        transport.write_memory(start, before)
        transport.write_memory(start + offset, data)
        expected = before[:offset] + data + before[offset + length :]
        compare(check, start, expected, transport.read_memory(start, span), f"burst of {length} at +{offset}")
        total += length
    check.about = f"{ROUNDS} bursts of up to {longest} bytes, {total:,} in all"


def losses(transport: Transport, check: Check) -> None:
    """Commands that a line with a protocol had to send again since it was opened."""
    count = getattr(transport, "recoveries", None)
    if count is None:
        check.about = "this way loses nothing"
        return
    check.expect("line", "0 losses", f"{count} losses" if count else "0 losses")
    check.about = "lost or altered frames, since the board was opened; each was sent again"
