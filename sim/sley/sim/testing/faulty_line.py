"""A serial line that loses, alters and invents bytes."""

import random
from typing import Protocol


class Line(Protocol):
    """A line without faults."""

    name: str

    def write(self, data: bytes) -> None: ...

    def read(self) -> bytes: ...


class FaultyLine:
    """The line ``inner`` with faults both ways, each byte with probability ``rate``; ``seed`` decides everything.

    ``faults``: how many of each kind there were. ``rate`` may be changed at any time.
    """

    def __init__(self, inner: Line, rate: float, seed: int) -> None:
        self.name = inner.name
        self.rate = rate
        self._inner = inner
        self._random = random.Random(seed)
        self.faults = {"lost": 0, "flipped": 0, "replaced": 0, "added": 0, "burst": 0}

    def write(self, data: bytes) -> None:
        self._inner.write(self._damage(data))

    def read(self) -> bytes:
        return self._damage(self._inner.read())

    def _damage(self, data: bytes) -> bytes:
        random, result = self._random, bytearray()
        lost = 0
        for byte in data:
            if lost:
                lost -= 1
                continue
            if random.random() >= self.rate:
                result.append(byte)
                continue
            kind = random.choice(list(self.faults))
            self.faults[kind] += 1
            if kind == "flipped":
                result.append(byte ^ 1 << random.randrange(8))
            elif kind == "replaced":
                result.append(random.getrandbits(8))
            elif kind == "added":
                result += bytes([byte, random.getrandbits(8)])
            elif kind == "burst":
                lost = random.randrange(20)
        return bytes(result)
