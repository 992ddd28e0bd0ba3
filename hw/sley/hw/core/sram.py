"""Banked on-chip memory: ports as its users see them (and, below, the memory itself)."""

from amaranth.lib.wiring import In, Out, Signature

READ_LATENCY = 2
"""Cycles from the one in which a read is granted to the one in which its data is valid: the memory's own register
and an output register behind it."""


def read_port(rows: int, width: int) -> Signature:
    """A reader's port: the read of ``row`` is granted in a cycle with ``valid`` and ``ready``; ``data`` is valid
    exactly READ_LATENCY cycles later and not held. The row must exist. A reader may take ``valid`` back."""
    return Signature(
        {
            "row": Out(range(rows)),
            "valid": Out(1),
            "ready": In(1),
            "data": In(width),
        }
    )


def write_port(rows: int, width: int, granules: int) -> Signature:
    """A writer's port: granted like a read; ``enable`` has one bit per granule, each width / granules bits. A read
    granted in a later cycle sees the new data; one granted in the same cycle sees the old."""
    return Signature(
        {
            "row": Out(range(rows)),
            "valid": Out(1),
            "ready": In(1),
            "data": Out(width),
            "enable": Out(granules),
        }
    )
