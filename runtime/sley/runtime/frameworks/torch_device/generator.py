"""The random state of the device: a seed, and how many calls have drawn from it."""

from __future__ import annotations

from typing import Any

import torch

MASK = (1 << 64) - 1
STEP = 0x9E3779B97F4A7C15
"""Seeds of calls are this far apart, an odd number, so that all 2^64 of them differ."""
_state = [0, 0]


def manual_seed(seed: int) -> None:
    """Starts the random numbers of the device again from a seed."""
    _state[:] = [int(seed) & MASK, 0]


def initial_seed() -> int:
    """The seed that was set last."""
    return _state[0]


def seed_of(generator: Any = None) -> int:
    """The seed of the next call; a generator of the host draws it."""
    if generator is not None:
        return int(torch.randint(0, (1 << 63) - 1, (), generator=generator).item())
    _state[1] += 1
    return (_state[0] + _state[1] * STEP) & MASK


def get_rng_state(index: Any = None) -> torch.Tensor:
    """Seed and number of calls, as 16 bytes of the host."""
    data = b"".join(part.to_bytes(8, "little") for part in _state)
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def set_rng_state(state: torch.Tensor, index: Any = None) -> None:
    """Goes on from a state that ``get_rng_state`` gave."""
    data = bytes(state.cpu().tolist())
    if len(data) != 16:
        raise RuntimeError(f"a random state of {len(data)} bytes; those of the device sley have 16")
    _state[:] = [int.from_bytes(data[:8], "little"), int.from_bytes(data[8:], "little")]
