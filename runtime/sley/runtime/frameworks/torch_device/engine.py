"""The Sley device behind PyTorch's ``sley``: one, opened when it is used first."""

from __future__ import annotations

import os
from typing import Any

import torch

from sley.driver import BadRequest
from sley.runtime.device.device import Device

VARIABLE = "SLEY_TORCH_ENGINE"
"""The environment variable with the URL of the engine."""
DEFAULT_ENGINE = "model:base?memory=1G"
_devices: dict[str, Device] = {}
_chosen: list[str] = []


def device_of(engine: str) -> Device:
    """The device of an engine's URL, opened once."""
    if engine not in _devices:
        _devices[engine] = Device.open(engine)
    return _devices[engine]


def engine() -> str:
    """The URL of the device's engine: what ``set_engine`` was given, the variable ``SLEY_TORCH_ENGINE``, or a model of
    ``base`` with 1 GiB, which has values and exact cycles."""
    return _chosen[0] if _chosen else os.environ.get(VARIABLE, DEFAULT_ENGINE)


def set_engine(url: str) -> None:
    """Chooses the engine, before the device is used. Raises ``BadRequest`` once it is open."""
    if opened() and url != engine():
        raise BadRequest(f"the device sley is open on {engine()}; choose {url} before the first tensor is made")
    _chosen[:] = [url]


def opened() -> bool:
    """Whether the device is in use."""
    return engine() in _devices


def checked_index(index: Any) -> None:
    """Raises ``BadRequest`` for the number, or the name, of a device that there is not: there is ``sley:0``."""
    number = index if isinstance(index, int) else None if index is None else torch.device(index).index
    if number:
        raise BadRequest(f"device sley:{number}; there is sley:0")


def device() -> Device:
    """The device; opens it."""
    return device_of(engine())
