"""Errors of the runtime, below the driver's root."""

# ruff: noqa: N818 (named like the driver's)

from sley.driver import SleyError


class ShapeMismatch(SleyError, ValueError):
    """Shapes of arrays do not fit together."""


class BadIndex(SleyError, IndexError):
    """An index selects no part of an array that could be a view of it."""


class UnsupportedType(SleyError, TypeError):
    """An operation does not work on arrays of this element type."""


class KernelError(SleyError):
    """A kernel cannot be built: out of registers, unknown label, too long, ..."""
