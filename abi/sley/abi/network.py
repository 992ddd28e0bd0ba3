"""Numbers of the network that its gateware and the model of its cycles share."""

from enum import IntEnum

from sley.abi.layout import Field, Layout
from sley.abi.packets import INLINE_ARGS
from sley.abi.pages import CONTEXT_BITS

COORDINATE_BITS = 4
"""Width of a coordinate of a node."""
QUEUE_BITS = 3
"""Width of a queue number (``ChipConfig.queues`` is at most 8)."""


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


class LaunchWord(IntEnum):
    """Each 32-bit word in the message from the command processor that starts a block, in their order.

    ARGS is there if the arguments are in memory. Arguments from the packet follow GRID_Z.
    """

    SIZES = 0  # ``LAUNCH_SIZES``
    PROGRAM = 1  # byte address
    TAG = 2  # of the program; not 0: a core that holds it need not fetch it
    ARGS = 3  # byte address
    BLOCK_X = 4
    BLOCK_Y = 5
    BLOCK_Z = 6
    GRID_X = 7
    GRID_Y = 8
    GRID_Z = 9


LAUNCH_SIZES = Layout(
    "LAUNCH_SIZES",
    32,
    (
        Field("program_words", 16, "Instructions of the program."),
        Field("arg_words", 8, "Arguments."),
        Field("context", CONTEXT_BITS, "Whose block it is."),
        Field("queue", QUEUE_BITS, "The queue of its grid."),
        Field("gang", 1, "The block is of a gang."),
    ),
)
"""LaunchWord.SIZES."""


LAUNCH_FIELDS: dict[int, str] = {
    LaunchWord.PROGRAM: "program",
    LaunchWord.TAG: "tag",
    LaunchWord.ARGS: "args",
    **{LaunchWord.GRID_X + k: f"grid_{axis}" for k, axis in enumerate("xyz")},
    **{len(LaunchWord) + k: f"arg{k}" for k in range(INLINE_ARGS)},
}
"""The words of that message which are fields of the LAUNCH packet, arguments too."""


class DoneWord(IntEnum):
    """Position of each 32-bit word in the message from a core that ends a block (response network)."""

    STATUS = 0  # bits 7:0 core, 15:8 FaultCode, 19:16 Unit
    PC = 1
    ADDRESS = 2


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
