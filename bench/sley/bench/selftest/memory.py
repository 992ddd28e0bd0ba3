"""Device memory through the link: lines of the address, and a march over windows.

The march is C- (van de Goor): w0 upwards; r0 w1 upwards; r1 w0 upwards; r0 w1 downwards; r1 w0 downwards; r0. It finds
stuck bits, transitions that fail, cells that share an address, and cells that change others of the window. A *cell* is
what one burst of the link writes; its 0 is a pattern that no other address has, its 1 the complement.
"""

import random
import time
from collections.abc import Callable, Iterator

import numpy as np

from sley.abi.transport import Transport
from sley.bench.selftest.checks import Check

CELL = 128
WINDOW = 4096
LINE_BYTES = 16
"""Bytes at each place of the test of address lines."""
_MULTIPLIER = 0x9E3779B1


def pattern(address: int, length: int, inverse: bool = False) -> bytes:
    """What the cell at ``address`` holds, a multiple of 4, as a 0, or as a 1 if ``inverse``: words mixed of their own
    addresses, so that no two places of memory hold the same."""
    words = (address // 4 + 1 + np.arange(-(-length // 4), dtype=np.uint64)) * _MULTIPLIER & 0xFFFFFFFF
    mixed = (words ^ words >> 15).astype("<u4")
    return (~mixed if inverse else mixed).tobytes()[:length]


def compare(check: Check, address: int, expected: bytes, found: bytes, what: str) -> None:
    """Enters every 32-bit word that differs."""
    if expected == found:
        return
    for offset in range(0, len(expected), 4):
        wanted, got = expected[offset : offset + 4], found[offset : offset + 4]
        if wanted != got:
            check.differs(f"address {address + offset:#x}, {what}", f"0x{wanted[::-1].hex()}", f"0x{got[::-1].hex()}")


def address_lines(transport: Transport, check: Check) -> None:
    """Writes address 0 and each power of two below the size, then reads all: lines that are stuck or joined."""
    size = transport.memory_bytes
    places = [0, *(1 << bit for bit in range(LINE_BYTES.bit_length() - 1, size.bit_length()) if 1 << bit < size)]
    check.about = f"address 0 and {len(places) - 1} powers of two below {size:,}"
    for inverse in (False, True):
        for place in places:
            transport.write_memory(place, pattern(place, LINE_BYTES, inverse))
        transport.barrier()
        for place in places:
            expected, found = pattern(place, LINE_BYTES, inverse), transport.read_memory(place, LINE_BYTES)
            alias = [p for p in places if p != place and pattern(p, LINE_BYTES, inverse) == found]
            if alias:
                check.differs(f"address {place:#x}", "what was written there", f"what was written to {alias[0]:#x}")
            else:
                compare(check, place, expected, found, "lines of the address")


def windows(size: int, seed: int = 1) -> Iterator[int]:
    """Where windows begin: the first and the last one, then all others in random order."""
    count = max(1, size // WINDOW)
    order = [*range(1, count - 1)]
    random.Random(seed).shuffle(order)
    yield from (WINDOW * number for number in dict.fromkeys([0, count - 1, *order]))


def march(
    transport: Transport, check: Check, seconds: float, advance: Callable[[float], None] = lambda share: None
) -> None:
    """Marches over windows until ``seconds`` have passed, or all of memory is done; over two at least.

    ``advance`` is called with the share that is done.
    """
    size, begin, done = transport.memory_bytes, time.monotonic(), 0
    for start in windows(size):
        spent = time.monotonic() - begin
        if done >= 2 and spent >= seconds:
            break
        march_window(transport, check, start, min(WINDOW, size - start))
        done += 1
        advance(min(1.0, max(done * WINDOW / size, spent / seconds if seconds else 1.0)))
    check.about = f"{min(done * WINDOW, size):,} of {size:,} bytes, March C-"


def march_window(transport: Transport, check: Check, start: int, length: int) -> None:
    """The six elements over one window."""
    cells = [(start + offset, min(CELL, length - offset)) for offset in range(0, length, CELL)]

    def element(name: str, upwards: bool, reads: bool | None, writes: bool | None) -> None:
        for address, count in cells if upwards else reversed(cells):
            if reads is not None:
                expected, found = pattern(address, count, reads), transport.read_memory(address, count)
                compare(check, address, expected, found, f"march element {name}")
            if writes is not None:
                transport.write_memory(address, pattern(address, count, writes))

    element("w0 upwards", True, None, False)
    element("r0 w1 upwards", True, False, True)
    element("r1 w0 upwards", True, True, False)
    element("r0 w1 downwards", False, False, True)
    element("r1 w0 downwards", False, True, False)
    element("r0", True, False, None)
