"""What Dynamo and Inductor ask of a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch._dynamo.device_interface import DeviceInterface

from sley.runtime.frameworks.torch_device import module
from sley.runtime.frameworks.torch_device.storage import NAME
from sley.runtime.frameworks.torch_device.types import STORED


@dataclass(frozen=True)
class Properties:
    """One program at a time runs on the device, of any size."""

    name: str = NAME
    multi_processor_count: int = 1
    warp_size: int = 1
    max_threads_per_multi_processor: int = 1


class SleyInterface(DeviceInterface):
    """The device under the names that Dynamo uses."""

    class Worker(DeviceInterface.Worker):
        """The same, asked in processes that compile; there are none."""

        @staticmethod
        def current_device() -> int:
            return 0

        @staticmethod
        def get_device_properties(device: Any = None) -> Properties:
            return Properties()

    device = module.device
    current_device = staticmethod(module.current_device)
    set_device = staticmethod(module.set_device)
    device_count = staticmethod(module.device_count)
    is_available = staticmethod(module.is_available)
    synchronize = staticmethod(module.synchronize)
    memory_allocated = staticmethod(module.memory_allocated)

    @staticmethod
    def exchange_device(device: int) -> int:
        module.set_device(device)
        return 0

    maybe_exchange_device = exchange_device

    @staticmethod
    def get_raw_stream(device_idx: int) -> int:
        return 0

    @staticmethod
    def get_compute_capability(device: Any = None) -> str:
        return ""

    @staticmethod
    def is_bf16_supported(including_emulation: bool = False) -> bool:
        return True

    @classmethod
    def is_dtype_supported(cls, dtype: torch.dtype, including_emulation: bool = False) -> bool:
        return dtype in STORED

    @staticmethod
    def is_triton_capable(device: Any = None) -> bool:
        return True

    @classmethod
    def raise_if_triton_unavailable(cls, device: Any = None) -> None:
        """Triton is there, or the caller has found that out."""
