"""Functions of one's own: what a package adds to those of Sley, by an entry point of ``sley.functions``.

The entry point names an ``OwnFunction``::

    [project.entry-points."sley.functions"]
    softplus = "softplus:SOFTPLUS"
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from sley.abi.errors import SleyError
from sley.abi.functions.table import Function

GROUP = "sley.functions"
FIRST_CODE, LAST_CODE = 16, 30
"""Codes for functions that Sley does not have."""


class OwnFunctionError(SleyError, ValueError):
    """A function of a package that cannot be one."""


class OwnFunction(int):
    """A function of one fp32 operand that a package adds; as a number its code.

    Parameters
    ----------
    code: 16 to 30; no two installed functions share one.
    name: as configurations name it, in capitals.
    doc: what it is, with its error and special values.
    golden: ``module:attribute`` of its definition: takes and returns an array of bit patterns, ``np.uint32``.
    gateware: ``module:attribute`` of an Amaranth component with ``use: In(1)``, ``i: In(32)`` and ``o: Out(32)``: ``o``
        is the function of ``i`` of ``LATENCY`` cycles ago, an attribute of the class, and 0 without ``use``.

    Raises ``OwnFunctionError``.
    """

    name: str
    doc: str
    golden: str
    gateware: str

    def __new__(cls, code: int, name: str = "", doc: str = "", golden: str = "", gateware: str = "") -> OwnFunction:
        if not FIRST_CODE <= code <= LAST_CODE:
            raise OwnFunctionError(f"code is {code}; a function of one's own has one in {FIRST_CODE}..{LAST_CODE}")
        self = super().__new__(cls, code)
        self.name, self.doc, self.golden, self.gateware = name, doc, golden, gateware
        return self

    def __repr__(self) -> str:
        return f"<OwnFunction.{self.name}: {int(self)}>"

    def load_golden(self) -> Callable[[Any], Any]:
        """The definition."""
        function: Callable[[Any], Any] = _attribute(self.golden)
        return function

    def load_gateware(self) -> Any:
        """The class of the component."""
        return _attribute(self.gateware)

    @property
    def source(self) -> bytes:
        """The text of the file with the component, which decides what a chip with it is."""
        file = import_module(self.gateware.partition(":")[0]).__file__
        return Path(file).read_bytes() if file else b""


def _attribute(spec: str) -> Any:
    module, _, name = spec.partition(":")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise OwnFunctionError(f"{spec} cannot be loaded: {error}; write module:attribute") from error


@cache
def own_functions() -> dict[str, OwnFunction]:
    """Those that are installed, by name in small letters. Raises ``OwnFunctionError`` if two share a code, or one has
    the name of a function of Sley."""
    found: dict[str, OwnFunction] = {}
    codes: dict[int, str] = {}
    for point in entry_points(group=GROUP):
        try:
            function = point.load()
        except (ImportError, AttributeError) as error:
            raise OwnFunctionError(f"the entry point {point.name} = {point.value} cannot be loaded: {error}") from error
        if not isinstance(function, OwnFunction):
            raise OwnFunctionError(f"the entry point {point.name} is {function!r}; it must name an OwnFunction")
        if function in codes:
            raise OwnFunctionError(
                f"{function.name} and {codes[function]} have code {int(function)}: change one of them"
            )
        if function.name.upper() in Function.__members__:
            raise OwnFunctionError(f"{function.name} is a function of Sley; give yours another name")
        codes[function] = function.name
        found[function.name.lower()] = function
    return found
