"""RTLIL of a memory as a module, made from its dimensions: Amaranth takes time for every bit that a memory has."""

from amaranth.hdl import ClockSignal, Const, Instance, Shape, Value
from amaranth.lib.memory import Memory

NAME = "$memory"
"""A memory with this name is known by the path of its instance."""


def memory_text(memory: Memory) -> str:
    """The body of the module, which is the same for all memories with equal dimensions, ports and contents.

    Source: Yosys manual, "RTLIL text representation" and "Internal cell library", memories.
    """
    width, depth = Shape.cast(memory.shape).width, memory.depth
    address = (max(depth, 1) - 1).bit_length()
    lines: list[str] = []
    if width and depth:
        lines.append(f"memory width {width} size {depth} {NAME}")
    cells: list[str] = []
    for number, write in enumerate(memory.write_ports):
        granules = len(write.en)
        lines += [
            f"wire width 1 input {4 * number} \\write{number}_clk",
            f"wire width {address} input {4 * number + 1} \\write{number}_addr",
            f"wire width {width} input {4 * number + 2} \\write{number}_data",
            f"wire width {granules} input {4 * number + 3} \\write{number}_en",
        ]
        if width and depth:
            cells += _write_cell(number, width, address, granules)
    first = 4 * len(memory.write_ports)
    for number, read in enumerate(memory.read_ports):
        at = first + 4 * number
        lines += [
            f"wire width 1 input {at} \\read{number}_clk",
            f"wire width {address} input {at + 1} \\read{number}_addr",
            f"wire width 1 input {at + 2} \\read{number}_en",
            f"wire width {width} output {at + 3} \\read{number}_data",
        ]
        if width and depth:
            transparent = sum(1 << memory.write_ports.index(port) for port in read.transparent_for)
            cells += _read_cell(number, width, address, read.domain != "comb", transparent, len(memory.write_ports))
        elif width:
            cells.append(f"connect \\read{number}_data {_constant(0, width)}")
    if width and depth:
        cells += _contents(memory, width, depth)
    return "\n".join([*lines, *cells, "end", ""])


def memory_ports(memory: Memory) -> dict[str, Value]:
    """What an ``Instance`` of the module is connected to."""
    connections: dict[str, Value] = {}
    for number, write in enumerate(memory.write_ports):
        connections |= {
            f"i_write{number}_clk": ClockSignal(write.domain),
            f"i_write{number}_addr": Value.cast(write.addr),
            f"i_write{number}_data": Value.cast(write.data),
            f"i_write{number}_en": Value.cast(write.en),
        }
    for number, read in enumerate(memory.read_ports):
        connections |= {
            f"i_read{number}_clk": Const(0, 1) if read.domain == "comb" else ClockSignal(read.domain),
            f"i_read{number}_addr": Value.cast(read.addr),
            f"i_read{number}_en": Value.cast(read.en),
            f"o_read{number}_data": Value.cast(read.data),
        }
    return connections


def memory_instance(memory: Memory, name: str) -> Instance:
    """An instance of the module ``name``."""
    return Instance(name, **memory_ports(memory))


def _constant(value: int, width: int) -> str:
    return f"{width}'{value:0{width}b}" if width else "{ }"


def _write_cell(number: int, width: int, address: int, granules: int) -> list[str]:
    enables = (f"\\write{number}_en [{granule}] " * (width // granules) for granule in reversed(range(granules)))
    return [
        f"cell $memwr_v2 $write{number}",
        f'parameter \\MEMID "{NAME}"',
        f"parameter \\ABITS {address}",
        f"parameter \\WIDTH {width}",
        "parameter \\CLK_ENABLE 1",
        "parameter \\CLK_POLARITY 1",
        f"parameter \\PORTID {number}",
        "parameter \\PRIORITY_MASK 0",
        f"connect \\ADDR \\write{number}_addr",
        f"connect \\DATA \\write{number}_data",
        f"connect \\EN {{ {''.join(enables)}}}",
        f"connect \\CLK \\write{number}_clk",
        "end",
    ]


def _read_cell(number: int, width: int, address: int, clocked: bool, transparent: int, writes: int) -> list[str]:
    return [
        f"cell $memrd_v2 $read{number}",
        f'parameter \\MEMID "{NAME}"',
        f"parameter \\ABITS {address}",
        f"parameter \\WIDTH {width}",
        f"parameter \\TRANSPARENCY_MASK {_constant(transparent, writes) if writes else 0}",
        f"parameter \\CLK_ENABLE {int(clocked)}",
        "parameter \\CLK_POLARITY 1",
        f"connect \\ADDR \\read{number}_addr",
        f"connect \\DATA \\read{number}_data",
        f"connect \\EN \\read{number}_en",
        f"connect \\CLK \\read{number}_clk",
        "end",
    ]


def _contents(memory: Memory, width: int, depth: int) -> list[str]:
    """The initial contents; without this cell they are zero."""
    mask = (1 << width) - 1
    rows = [_number(memory, row) & mask for row in memory.init]
    if not any(rows):
        return []
    data = "".join(f"{row:0{width}b}" for row in reversed(rows))
    return [
        "cell $meminit_v2 $contents",
        f'parameter \\MEMID "{NAME}"',
        "parameter \\ABITS 0",
        f"parameter \\WIDTH {width}",
        f"parameter \\WORDS {depth}",
        "parameter \\PRIORITY 0",
        "connect \\ADDR { }",
        f"connect \\DATA {width * depth}'{data}",
        f"connect \\EN {_constant((1 << width) - 1, width)}",
        "end",
    ]


def _number(memory: Memory, row: object) -> int:
    """A row as a number; rows of a structure are what its shape makes of them."""
    if isinstance(row, int):
        return row
    shape = memory.shape
    value = row if isinstance(row, Const) or not hasattr(shape, "const") else shape.const(row)
    return Const.cast(value).value
