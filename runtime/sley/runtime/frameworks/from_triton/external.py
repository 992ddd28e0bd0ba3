"""Functions of ``libdevice``, those of ``sley.runtime.nn`` among them."""

from __future__ import annotations

from collections.abc import Callable

from sley.runtime.frameworks.from_triton.conversion import Conversion, lowers
from sley.runtime.frameworks.from_triton.elements import result, tiles_of
from sley.runtime.frameworks.from_triton.floats import absolute, check
from sley.runtime.frameworks.from_triton.refusal import refuse
from sley.runtime.frameworks.from_triton.ttir import Operation
from sley.runtime.frameworks.from_triton.values import Known
from sley.runtime.nn.functions import TILES, power_tile
from sley.runtime.nn.special import SPECIAL
from sley.runtime.tile import language as tile
from sley.runtime.tile.trace import Tile

FLOATS: dict[str, Callable[[Tile], Tile]] = {
    **TILES,
    **SPECIAL,
    "rint": tile.round,
    "nearbyint": tile.round,
    "abs": absolute,
}
"""Functions with a result of floating point."""
TESTS: dict[str, Callable[[Tile], Tile]] = {
    "isnan": lambda x: x != x,
    "isinf": lambda x: absolute(x) == float("inf"),
}
"""Functions with 1 or 0 as their result."""
OF_TWO: dict[str, Callable[[Tile, Tile], Tile]] = {"pow": power_tile}
"""Functions of two elements."""
NAMES = (*FLOATS, *TESTS, *OF_TWO)
FUNCTIONS: dict[str, Callable[..., Tile]] = {**FLOATS, **TESTS, **OF_TWO}
SYMBOLS = {f"sley_{name}": function for name, function in FUNCTIONS.items()}
"""As TTIR has them."""


@lowers("tt.extern_elementwise", note="a function of `libdevice`: " + ", ".join(f"`{name}`" for name in NAMES))
def lower_external(conversion: Conversion, operation: Operation) -> Known:
    check(conversion, operation)
    function = SYMBOLS.get(operation.attributes.get("symbol", ""))
    if function is None:
        raise refuse(operation, f"a function of another target; libdevice has {', '.join(NAMES)} here")
    operands, tiles = tiles_of(conversion, operation)
    return result(operands, function(*tiles), operation.result.type)
