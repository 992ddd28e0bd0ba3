"""Text of ``Print``, ``Assert`` and ``Cover`` from the format of RTLIL, as Amaranth's simulator writes it.

The format is that of Yosys' ``$print``: text with ``{{`` for a brace, and ``{WIDTH:...}`` for the next bits of the
arguments, the lowest bits first. After the colon stand ``U`` (a character), or alignment, fill, minimal
width, type (``d h H b o``, ``c`` for a string), sign, ``#``, ``_`` and ``s`` or ``u`` for signed or unsigned numbers.
"""

import re
from functools import cache

from sley.sim.fast.read.semantics import signed

_CHUNK = re.compile(r"\{\{|\}\}|\{(\d+):(?:(U)|([<>=])(.)(\d*)([dhHboc])([+\- ]?)(#?)(_?)([su]?))\}", re.DOTALL)
_TYPES = {"d": "d", "h": "x", "H": "X", "b": "b", "o": "o"}


@cache
def _chunks(text: str) -> list[str | tuple[int, str, bool, str]]:
    """Literal text, and (bits, type, signed, Python's format) for arguments."""
    result: list[str | tuple[int, str, bool, str]] = []
    end = 0
    for match in _CHUNK.finditer(text):
        result.append(text[end : match.start()])
        end = match.end()
        width, character, align, fill, size, kind, sign, base, group, sign_of = match.groups()
        if width is None:
            result.append(match[0][0])
        elif character:
            result.append((int(width), "U", False, ""))
        else:
            number = f"{sign}{base}{size}{group}{_TYPES[kind]}" if kind != "c" else f"{size}s"
            result.append((int(width), kind, sign_of == "s", f"{fill}{align}{number}"))
    return [*result, text[end:]]


def render(text: str, arguments: int) -> str:
    """The text with the arguments in it."""
    chunks = _chunks(text)
    position = 0
    result = []
    for chunk in chunks:
        if isinstance(chunk, str):
            result.append(chunk)
            continue
        width, kind, is_signed, form = chunk
        value = arguments >> position & ((1 << width) - 1)
        position += width
        if kind == "U":
            result.append(chr(value) if value <= 0x10FFFF else "\ufffd")
        elif kind == "c":
            raw = value.to_bytes(-(-width // 8), "big").replace(b"\0", b"")
            result.append(format(raw.decode(errors="replace"), form))
        else:
            result.append(format(signed(value, width) if is_signed else value, form))
    return "".join(result)
