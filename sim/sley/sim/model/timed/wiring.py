"""What the C of a chip knows of its wiring: nodes, routers and their turns, and what twins are told at reset."""

from functools import lru_cache

from sley.abi.config import ChipConfig
from sley.abi.network import COORDINATE_BITS
from sley.abi.placement import Node, command_node, core_node, memory_node
from sley.abi.registers import RegisterMap
from sley.abi.vector.chains import FUNCTION_BITS
from sley.hw.core.sequencer.fetch import SPLIT_BYTES
from sley.hw.core.vector.tail import function_cycles
from sley.hw.core.vector.writes import output_rows
from sley.hw.noc.direction import Direction
from sley.hw.noc.routes import Pair, request_pairs, response_pairs, turns


def wiring(config: ChipConfig) -> str:
    """The text of ``wiring.h`` for a chip."""
    requests = _routers(request_pairs(config), copies=False)
    responses = _routers(response_pairs(config), copies=config.cores > 1)
    cores = [core_node(config, k) for k in range(config.cores)]
    nodes = [_number(node) for node in (memory_node(config), command_node(config), *cores)]
    command = [nodes[1], nodes[0], *(node[axis] for axis in (0, 1) for node in cores)]
    functions = {1 + function: function_cycles(function) for function in config.vector_functions}
    vector = [output_rows(config), *(functions.get(code, 0) for code in range(1 << FUNCTION_BITS))]
    numbers = {
        "REQUEST_ROUTERS": len(requests),
        "RESPONSE_ROUTERS": len(responses),
        "FETCH_SPLIT": SPLIT_BYTES,
    }
    return "\n".join(
        [
            "// Made by sley.sim.model.timed.wiring.",
            "#pragma once",
            *(f"#define {name} {value}" for name, value in numbers.items()),
            _table("request_routers", requests),
            _table("response_routers", responses),
            *_fields(config),
            f"static const uint32_t nodes[] = {_row(nodes)};",
            f"static const uint32_t command_parameters[] = {_row(command)};",
            f"static const uint32_t vector_parameters[] = {_row(vector)};",
            "",
        ]
    )


@lru_cache(maxsize=16)
def _fields(config: ChipConfig) -> list[str]:
    """``R_CHIP_CONTROL_RESET(word)`` of each field of a register, and ``R_CHIP_CONTROL_RESET_AT``, its lowest bit."""
    lines = []
    for block in RegisterMap(config).blocks:
        for register in block.registers:
            for name, field in register.layout.fields.items():
                full = f"R_{block.name}_{register.name}_{name.upper()}"
                lines.append(f"#define {full}(word) ((word) >> {field.lsb} & {(1 << field.width) - 1:#x}u)")
                lines.append(f"#define {full}_AT {field.lsb}")
    return lines


def _number(node: Node) -> int:
    return node[0] | node[1] << COORDINATE_BITS


def _routers(pairs: list[Pair], copies: bool) -> list[list[int]]:
    """Parameters of the twin of each router."""
    sides = list(Direction)
    return [
        [copies, *node, *(sum(1 << k for k, to in enumerate(sides) if (side, to) in taken) for side in sides)]
        for node, taken in turns(pairs).items()
    ]


def _row(numbers: list[int]) -> str:
    return f"{{{', '.join(str(int(number)) for number in numbers)}}}"


def _table(name: str, rows: list[list[int]]) -> str:
    return f"static const uint32_t {name}[][ROUTER_PARAMETERS] = {{{', '.join(map(_row, rows))}}};"
