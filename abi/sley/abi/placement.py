"""Where everything sits in the mesh.

The western columns hold the command processor and the memory port, the cores fill the rest:

    one row of cores:        C M 0 1 2 ...
    more rows:               C 0 1 ...
                             M 2 3 ...
                             . 4 5 ...

x grows to the east, y to the south; (0, 0) is the north-western corner.
"""

from sley.abi.config import ChipConfig

Node = tuple[int, int]
"""x and y of a node of the mesh."""


def edge_columns(config: ChipConfig) -> int:
    """Columns without cores: as many as the command processor and the memory port take."""
    return -(-2 // config.cores_y)


def command_node(config: ChipConfig) -> Node:
    """The command processor's node."""
    return 0, 0


def memory_node(config: ChipConfig) -> Node:
    """The memory port's node: the destination of all reads and writes."""
    return (1, 0) if config.cores_y == 1 else (0, 1)


def core_node(config: ChipConfig, index: int) -> Node:
    """The node of a core; cores are numbered along the rows."""
    if not 0 <= index < config.cores:
        raise ValueError(f"core is {index}; it must be in 0..{config.cores - 1}")
    y, x = divmod(index, config.cores_x)
    return edge_columns(config) + x, y


def core_hops(config: ChipConfig, index: int) -> int:
    """Links of the network between a core and the memory port: packets go east or west, then north or south."""
    (x, y), (memory_x, memory_y) = core_node(config, index), memory_node(config)
    return abs(x - memory_x) + abs(y - memory_y)
