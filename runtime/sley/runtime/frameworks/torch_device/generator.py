"""Random states of the devices: a seed, and how many calls have drawn from it."""

from __future__ import annotations

from typing import Any, Protocol

import torch

from sley.runtime.frameworks.torch_device.engine import checked_index, current_index, device_count
from sley.runtime.frameworks.torch_device.native import hooks
from sley.runtime.frameworks.torch_device.storage import NAME

MASK = (1 << 64) - 1
STEP = 0x9E3779B97F4A7C15
"""Seeds of calls are this far apart, an odd number, so that all 2^64 of them differ."""
FIRST_SEED = 67280421310721
"""PyTorch's, of generators that nobody has seeded."""


class State(Protocol):
    """What a device draws from: a ``torch.Generator``, or a ``PlainState``."""

    def manual_seed(self, seed: int) -> Any: ...

    def initial_seed(self) -> int: ...

    def get_offset(self) -> int: ...

    def set_offset(self, offset: int) -> Any: ...

    def get_state(self) -> torch.Tensor: ...

    def set_state(self, new_state: torch.Tensor) -> Any: ...


class PlainState:
    """The state of a device where the part in C++ is missing, with the methods of ``torch.Generator``."""

    def __init__(self) -> None:
        self._seed, self._offset = FIRST_SEED, 0

    def manual_seed(self, seed: int) -> PlainState:
        self._seed, self._offset = int(seed) & MASK, 0
        return self

    def initial_seed(self) -> int:
        return self._seed

    def get_offset(self) -> int:
        return self._offset

    def set_offset(self, offset: int) -> None:
        self._offset = offset

    def get_state(self) -> torch.Tensor:
        data = b"".join(part.to_bytes(8, "little") for part in (self._seed, self._offset))
        return torch.frombuffer(bytearray(data), dtype=torch.uint8)

    def set_state(self, new_state: torch.Tensor) -> PlainState:
        data = bytes(new_state.cpu().tolist())
        if len(data) != 16:
            raise RuntimeError(f"a random state of {len(data)} bytes; those of the device {NAME} have 16")
        self._seed, self._offset = int.from_bytes(data[:8], "little"), int.from_bytes(data[8:], "little")
        return self


_plain = PlainState()


def default_generator(index: Any = None) -> State:
    """What a device draws from if a call is given no generator."""
    number = checked_index(index)
    found: State = _plain if hooks.MODULE is None else hooks.MODULE.default_generator(number)
    return found


def manual_seed(seed: int) -> None:
    """Starts the random numbers of the current device again from a seed."""
    default_generator().manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Starts those of all devices again."""
    for index in range(device_count()):
        default_generator(index).manual_seed(seed)


def seed() -> None:
    """Starts the random numbers of the current device again from a seed that nobody knows."""
    manual_seed(torch.Generator().seed())


def seed_all() -> None:
    """Starts those of all devices again from one seed that nobody knows."""
    manual_seed_all(torch.Generator().seed())


def initial_seed() -> int:
    """The seed of the current device that was set last."""
    return default_generator().initial_seed()


def seed_of(generator: Any = None) -> int:
    """The seed of the next call; a generator of the host draws it. Raises ``RuntimeError`` for a generator of another
    device."""
    if generator is not None and generator.device.type == "cpu":
        return int(torch.randint(0, (1 << 63) - 1, (), generator=generator).item())
    if generator is not None and generator.device != torch.device(NAME, current_index()):
        raise RuntimeError(f"a generator of {generator.device} for a tensor on {NAME}:{current_index()}")
    state: State = generator or default_generator()
    drawn = state.get_offset() + 1
    state.set_offset(drawn)
    return (state.initial_seed() + drawn * STEP) & MASK


def get_rng_state(index: Any = None) -> torch.Tensor:
    """Seed and number of calls of a device, as 16 bytes of the host."""
    return default_generator(index).get_state()


def set_rng_state(new_state: torch.Tensor, index: Any = None) -> None:
    """Goes on from a state that ``get_rng_state`` gave."""
    default_generator(index).set_state(new_state)


def get_rng_state_all() -> list[torch.Tensor]:
    """The states of all devices."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state_all(new_states: list[torch.Tensor]) -> None:
    """Goes on from states that ``get_rng_state_all`` gave."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)
