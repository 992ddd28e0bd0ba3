"""``torch.sley``: the device's own functions, with the names that ``torch.cuda`` has."""

from __future__ import annotations

from sley.runtime.frameworks.torch_device.engine import device


def is_available() -> bool:
    return True


def is_initialized() -> bool:
    return True


def device_count() -> int:
    return 1


def current_device() -> int:
    return 0


def _is_in_bad_fork() -> bool:
    return False


def manual_seed_all(seed: int) -> None:
    pass


def synchronize(index: object = None) -> None:
    device().synchronize()
