"""Runs and beats: how the parts of a node ask for memory.

A run is a contiguous range of bytes at any alignment. Its data travels as left-justified beats: byte 0 of the
first beat is the run's first byte, whatever the address; the last beat is padded.
"""

# mypy: disable-error-code="valid-type"

from amaranth.lib import data

from sley.abi.config import ChipConfig
from sley.abi.pages import CONTEXT_BITS
from sley.hw.noc.access import ERROR_BITS
from sley.hw.noc.messages import SHARE_BITS

RUN_BYTES_BITS = 16


class Run(data.Struct):
    """``bytes`` (1 to 65535) bytes from byte address ``addr`` of a context; ``execute``: they are a program's;
    ``share``: a ``Share``, of reads that cores of a gang make together; ``more``: the next run begins where this one
    ends, and a bus beat that they share moves once; ``joins``: what the run before says of its next one, it says of
    this one. To a writer ``more`` is a promise; a reader shares nothing with a run that has no ``joins``."""

    addr: 32
    bytes: RUN_BYTES_BITS
    context: CONTEXT_BITS
    execute: 1
    share: SHARE_BITS
    more: 1
    joins: 1


def beat(config: ChipConfig) -> data.StructLayout:
    """One beat of a run read from memory: bytes past the run's end are zero; ``last`` ends the run;
    ``error`` (``AccessError``) is set on every beat from a burst that memory answered with an error."""
    return data.StructLayout({"data": 8 * config.bus_bytes, "last": 1, "error": ERROR_BITS})
