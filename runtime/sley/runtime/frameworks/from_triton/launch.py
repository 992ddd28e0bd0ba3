"""Launches of ``@triton.jit`` functions; Triton is imported when one is launched."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from sley.abi.install import extra
from sley.driver import BadRequest
from sley.runtime.device.stream import Stream
from sley.runtime.frameworks.from_triton.kernel import TritonKernel, kernel_of
from sley.runtime.tile.choices import sides


def need_triton() -> None:
    """Raises ``BadRequest`` if Triton is not installed."""
    if find_spec("triton") is None:
        raise BadRequest(f"Triton is not installed; {extra('triton')} brings it")


def activate() -> None:
    """Makes Sley the target of Triton in this process, so that ``kernel[grid](...)`` runs on the device that its arrays
    are on. Raises ``BadRequest`` if Triton is not installed."""
    need_triton()
    from triton.runtime.driver import driver

    from sley.runtime.frameworks.from_triton.backend.driver import SleyDriver

    driver.set_active(SleyDriver())


def launch(kernel: Any, grid: Any, *args: Any, stream: Stream | None = None, **kwargs: Any) -> None:
    """Runs a ``@triton.jit`` function for each program of a grid, whatever the target of Triton is.

    Parameters
    ----------
    kernel: the function. grid: numbers of programs along one to three axes, or a function of all arguments by name.
        args, kwargs: its arguments; device arrays for pointers, numbers for scalars and for ``tl.constexpr``.

    Raises ``BadRequest``, ``TritonRefused``, and what Triton's compiler does.
    """
    need_triton()
    if not hasattr(kernel, "params"):
        raise BadRequest(
            f"{kernel!r} is no @triton.jit function: with autotune or heuristics, use activate() and kernel[grid](...)"
        )
    bound = kernel.signature.bind(*args, **kwargs)
    bound.apply_defaults()
    compiled, given = compiled_for(kernel, bound.arguments)
    made = sides(grid(bound.arguments) if callable(grid) else grid, kernel.__name__, {})
    compiled[made](*given, stream=stream)


def compiled_for(kernel: Any, arguments: dict[str, Any], exchanged: bool = False) -> tuple[TritonKernel, list[Any]]:
    """What a ``@triton.jit`` function becomes for arguments of these types, and those of them that it takes then.
    ``exchanged``: as of ``TritonKernel``."""
    from sley.runtime.frameworks.from_triton.backend.front_end import ttir_of, type_of

    constants = {p.name: arguments[p.name] for p in kernel.params if p.is_constexpr}
    given = {name: value for name, value in arguments.items() if name not in constants}
    types = {name: "constexpr" if name in constants else type_of(name, value) for name, value in arguments.items()}
    key = (kernel.cache_key, tuple(types.items()), repr(constants))
    if key not in _TEXTS:
        _TEXTS[key] = ttir_of(kernel, types, constants)
    return kernel_of(_TEXTS[key], exchanged), list(given.values())


_TEXTS: dict[Any, str] = {}
"""TTIR of kernels for types of arguments and constants."""
