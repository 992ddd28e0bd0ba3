"""The Sley devices behind PyTorch's ``sley``: each an engine, opened when it is used first."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from sley.driver import BadRequest
from sley.runtime.device.device import Device
from sley.runtime.frameworks.torch_device.native import hooks

VARIABLE = "SLEY_TORCH_ENGINE"
"""The environment variable with the URLs of the engines, blanks between them: of sley:0, of sley:1, ..."""
DEFAULT_ENGINE = "model:base?memory=1G"
MOST = 16
"""Devices."""
_engines: list[str] = os.environ.get(VARIABLE, "").split() or [DEFAULT_ENGINE]
_devices: dict[int, Device] = {}
_others: dict[str, Device] = {}


def device_count() -> int:
    """How many devices there are."""
    return len(_engines)


def current_index() -> int:
    """The number of the device that is current in this thread."""
    return torch._C._accelerator_getDeviceIndex() if len(_engines) > 1 else 0


def set_current(index: int) -> None:
    """Makes a device current in this thread."""
    if index != current_index():
        torch._C._accelerator_setDeviceIndex(index)


@contextmanager
def on(index: int) -> Iterator[None]:
    """A device is current inside."""
    before = current_index()
    set_current(index)
    try:
        yield
    finally:
        set_current(before)


def checked_index(index: Any = None) -> int:
    """The number of a device by number, name, or ``torch.device``; without a number, that of the current one. Raises
    ``BadRequest`` for one that there is not."""
    number = index if isinstance(index, int) else None if index is None else torch.device(index).index
    if number is None:
        return current_index()
    if not 0 <= number < len(_engines):
        last = f" to sley:{len(_engines) - 1}" if len(_engines) > 1 else ""
        raise BadRequest(f"device sley:{number}; there is sley:0{last}; torch.sley.set_engine(url, index) adds one")
    return number


def announce() -> None:
    """Tells PyTorch how many devices the environment names. Raises ``NoNativePart`` if it cannot have a second one."""
    if len(_engines) > MOST:
        raise BadRequest(f"{VARIABLE} names {len(_engines)} engines; there may be {MOST}")
    if len(_engines) > 1:
        hooks.needed(f"a second engine in {VARIABLE}").set_device_count(len(_engines))


def engine(index: Any = None) -> str:
    """The URL of a device's engine: what ``set_engine`` was given, the variable ``SLEY_TORCH_ENGINE``, or a model of
    ``base`` with 1 GiB, which has values and no cycles."""
    return _engines[checked_index(index)]


def set_engine(url: str, index: int = 0) -> None:
    """Chooses the engine of a device before it is used; the next number adds a device. Raises ``BadRequest`` once it is
    open, and for other numbers."""
    if index in _devices and url != _engines[index]:
        raise BadRequest(
            f"the device sley:{index} is open on {_engines[index]}; choose {url} before the first tensor is made"
        )
    if not 0 <= index <= min(len(_engines), MOST - 1):
        raise BadRequest(f"an engine for sley:{index}; the next device is sley:{len(_engines)}, of {MOST} at most")
    if index == len(_engines):
        hooks.needed("a second device").set_device_count(index + 1)
        _engines.append(url)
    _engines[index] = url


def opened(index: Any = None) -> bool:
    """Whether a device is in use."""
    return checked_index(index) in _devices


def device(index: Any = None) -> Device:
    """A device, the current one if no other is named; opens it."""
    number = checked_index(index)
    if number not in _devices:
        url = _engines[number]
        _devices[number] = _others.pop(url) if url in _others else Device.open(url)
    return _devices[number]


def index_of(device: Any) -> int:
    """The number of a device that has one."""
    return next(number for number, one in _devices.items() if one is device)


def device_of(engine: str) -> Device:
    """The device of an engine's URL, opened once: the first one of PyTorch's, or one that has no number there."""
    if engine in _engines:
        return device(_engines.index(engine))
    if engine not in _others:
        _others[engine] = Device.open(engine)
    return _others[engine]
