"""The C types in which values are stored, and how many bytes they take."""

SIZES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8}
"""Bytes of each type."""

BITS = {kind: 8 * size for kind, size in SIZES.items()}

WIDTHS = frozenset(BITS.values())
"""Bits that fill a type."""

ALIGN_ARRAYS = 64
"""Arrays start at this multiple of bytes, a cache line and the widest vector."""


def c_type(width: int) -> str:
    """The smallest type of that many bits, up to 64."""
    return "u8" if width <= 8 else "u16" if width <= 16 else "u32" if width <= 32 else "u64"


def words(width: int) -> int:
    """64-bit words of a value wider than 64 bits."""
    return -(-width // 64)
