"""Sizes as people write them."""

import re

_SHIFT = {"": 0, "K": 10, "M": 20, "G": 30}


def parse_size(text: str) -> int:
    """Bytes of ``64M`` or ``4096``. Raises ``ValueError`` for what is no size."""
    match = re.fullmatch(r"([0-9]+)([KMG]?)", text.upper())
    if match is None:
        raise ValueError(f"{text!r} is no size; write bytes, or a number with K, M or G")
    return int(match[1]) << _SHIFT[match[2]]
