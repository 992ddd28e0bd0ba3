"""The functions of a compiled library, as ``instance.h`` and ``recording.h`` have them."""

import ctypes
from typing import Any

STOPPED, NOT_YET = -3, -4
"""What the library answers when an event stopped it, and when a condition did not come to hold."""

HOOK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32)


def declare(library: ctypes.CDLL) -> None:
    """Gives the functions of a library their types."""
    handle, u32, u64, status = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int
    pointer = ctypes.c_void_p
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "manifest": (ctypes.c_char_p, []),
        "state_bytes": (u64, []),
        "state": (pointer, [handle]),
        "cycle": (u64, [handle]),
        "counts": (ctypes.POINTER(u64), [handle]),
        "hook": (None, [handle, HOOK]),
        "poke": (None, [handle, u32, pointer]),
        "settle": (status, [handle]),
        "write": (None, [handle, u32, u32, u64]),
        "snapshot_bytes": (u64, [handle, status]),
        "snapshot": (u64, [handle, pointer, u64, status]),
        "restore": (None, [handle, pointer, status]),
        "touch": (None, [handle]),
        "record": (status, [handle, u64]),
        "record_rows": (u64, [handle, u64, pointer]),
        "replay": (ctypes.c_int64, [handle, u64, u64, pointer, u32, pointer, pointer, pointer, u32, pointer, pointer]),
        "free": (None, [pointer]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, f"fast_{name}")
        function.restype, function.argtypes = result, arguments
