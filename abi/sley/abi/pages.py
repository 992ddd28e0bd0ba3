"""Page tables: how an address of a context becomes an address of memory.

Two levels of tables, 4 KiB each and aligned to that, of little-endian 32-bit entries. Bits 31:22 of an address choose
an entry of the *upper* table. If that entry has a permission, it maps a large page of 4 MiB; else it points to a
*lower* table, in which bits 21:12 choose the entry of a page of 4 KiB.

A page must be ``valid`` and grant what is done with it, in one entry: reading, writing, or fetching of programs
(``execute``). An entry with a reserved bit set, and a large page that is not aligned to its size, count as not valid.
"""

from enum import IntEnum

from sley.abi.layout import Field, Layout

CONTEXT_BITS = 4
"""Width of a context's number."""
PAGE_BITS = 12
TABLE_BITS = 10
PAGE_BYTES = 1 << PAGE_BITS
LARGE_PAGE_BYTES = PAGE_BYTES << TABLE_BITS
ENTRY_BYTES = 4
TABLE_ENTRIES = 1 << TABLE_BITS

PAGE_ENTRY = Layout(
    "PAGE_ENTRY",
    8 * ENTRY_BYTES,
    (
        Field("valid", 1, "The entry means something; else every access is a page fault."),
        Field("read", 1, "Load, COPY, WAIT, packets and arguments may read the page."),
        Field("write", 1, "Store, COPY, FILL, FENCE, SIGNAL and read indices may write it."),
        Field("execute", 1, "Cores may fetch programs from it."),
        Field("page", 20, "Bits 31:12 of the address in memory: of the page, or of the lower table.", lsb=12),
    ),
)


class AddressMode(IntEnum):
    """What the chip does with the addresses of a context."""

    OFF = 0  # every access is a page fault
    PHYSICAL = 1  # addresses are those of memory; everything is allowed
    PAGED = 2  # through the page tables


class Permission(IntEnum):
    """What an access needs: the position of its bit behind ``valid``."""

    READ = 0
    WRITE = 1
    EXECUTE = 2


def table_index(address: int) -> tuple[int, int]:
    """Index of an address in the upper and in the lower table."""
    return address >> PAGE_BITS + TABLE_BITS, address >> PAGE_BITS & TABLE_ENTRIES - 1
