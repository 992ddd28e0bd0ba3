"""What Triton's launcher does for Sley: arguments of ``kernel[grid](...)`` go to ``TritonKernel``."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

from sley.driver import BadRequest
from sley.runtime.device.stream import Stream
from sley.runtime.frameworks.from_triton.backend.compiler import TARGET
from sley.runtime.frameworks.from_triton.kernel import TritonKernel, kernel_of
from sley.runtime.tile.operations import TileError

NAME = "sley"
THREADS = 1 << 30
"""More than any launch asks for: Triton's options of threads have no meaning here."""


PRICES: ContextVar[list[int] | None] = ContextVar("prices", default=None)
"""Prices of launches, where these are asked for instead of the launches."""


def priced(launch: Callable[[], None], quantiles: Sequence[float] | None = None, **options: Any) -> Any:
    """The price of the launches of a function, as a benchmarker of Triton gives times: infinite if the device refuses
    them, as blocks may be too large."""
    prices: list[int] = []
    token = PRICES.set(prices)
    try:
        launch()
        total = float(sum(prices))
    except TileError:
        total = float("inf")
    finally:
        PRICES.reset(token)
    return total if quantiles is None else [total] * len(quantiles)


class SleyUtilities:
    """Programs as Triton loads them."""

    def get_device_properties(self, device: int) -> dict[str, int]:
        return {"max_shared_mem": 1, "multiprocessor_count": 1, "warpSize": 1}

    def load_binary(self, name: str, program: bytes, shared: int, device: int) -> tuple[Any, Any, int, int, int]:
        kernel = kernel_of(program.decode())
        return kernel, kernel, 0, 0, THREADS

    def unload_module(self, module: Any) -> None:
        """Nothing is loaded before a launch."""


class SleyLauncher:
    """``kernel[grid](...)`` when it is compiled. Arguments that are constants are not in TTIR."""

    def __init__(self, source: Any, metadata: Any) -> None:
        self.kept = [type != "constexpr" for type in source.signature.values()]

    def __call__(self, x: int, y: int, z: int, stream: Stream | None, kernel: TritonKernel, *rest: Any) -> None:
        _, about, enter, leave, *arguments = rest
        if not all((x, y, z)):
            return
        kept = [given for given, keep in zip(arguments, self.kept, strict=True) if keep]
        prices = PRICES.get()
        if prices is not None:
            prices.append(kernel.priced((x, y, z), kept))
            return
        if enter is not None:
            enter(about)
        kernel[x, y, z](*kept, stream=stream)
        if leave is not None:
            leave(about)


class SleyDriver(DriverBase):
    """The driver of the target. It is active if the environment variable ``TRITON_DEFAULT_BACKEND`` is ``sley``, or
    ``activate`` was called."""

    def __init__(self) -> None:
        super().__init__()
        self.utils = SleyUtilities()
        self.launcher_cls = SleyLauncher

    @staticmethod
    def is_active() -> bool:
        return os.environ.get("TRITON_DEFAULT_BACKEND") == NAME

    def map_python_to_cpp_type(self, type: str) -> str:
        raise BadRequest(f"no launcher in C++ is made for {type} on Sley")

    def get_current_target(self) -> GPUTarget:
        return TARGET

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        if device:
            raise BadRequest(f"device {device}; the device is the one that the arrays are on")

    def get_current_stream(self, device: int) -> Stream | None:
        """The one of the device that the arrays are on."""
        return None

    def get_active_torch_device(self) -> Any:
        raise BadRequest("no device of PyTorch is used; give arrays of sley.runtime")

    def get_benchmarker(self) -> Callable[..., Any]:
        """What ``@triton.autotune`` chooses by: cycles as the tile compiler thinks; nothing is run."""
        return priced
