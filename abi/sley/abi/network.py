"""Numbers of the network that its gateware and the model of its cycles share."""

from enum import IntEnum

from sley.abi.layout import Field, Layout

COORDINATE_BITS = 4
"""Width of a coordinate of a node."""


class RequestKind(IntEnum):
    """What a packet of the request network is."""

    READ = 0
    WRITE = 1
    MESSAGE = 2
    WALK = 3


class Tag(IntEnum):
    """Which part of a node asked; responses carry it back."""

    FETCH = 0
    LOAD = 1
    STORE = 2
    MESSAGE = 3
    WORD = 4
    TABLE = 5


class AccessError(IntEnum):
    """What an answer says about an access."""

    NONE = 0
    BUS = 1  # memory answered SLVERR or DECERR
    PAGE = 2  # nothing is mapped there
    PERMISSION = 3  # the page does not allow it


WALK_ANSWER = Layout(
    "WALK_ANSWER",
    25,
    (
        Field("valid", 1, "The page is mapped."),
        Field("read", 1, "It may be read."),
        Field("write", 1, "It may be written."),
        Field("execute", 1, "Cores may fetch programs from it."),
        Field("large", 1, "It is a large page."),
        Field("page", 20, "Bits 31:12 of its address in memory."),
    ),
)
"""How a page is mapped: the fields of its entry, and whether it is a large page."""
