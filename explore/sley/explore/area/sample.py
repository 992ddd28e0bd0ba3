"""The sample that the area model is fitted to: each block on configurations that differ in what it depends on."""

from collections.abc import Iterator

from sley.abi.config import ChipConfig
from sley.abi.functions.table import Function

CENTRE = ChipConfig(name="centre")
Changes = dict[str, object]
BF16: Changes = {"operand_types": ("int8", "bf16")}


def _array(n: int, **more: object) -> Changes:
    return {"array": n, "vector_lanes": n, "scratchpad_rows": 512, "accumulator_rows": 128, **more}


SIZES: tuple[Changes, ...] = (_array(4), _array(8), _array(16))
WIDE: Changes = _array(16, **BF16)
EDGE: Changes = _array(8, **BF16, scratchpad_rows=2048, accumulator_rows=512)
EDGE_LISTS: Changes = {**EDGE, "gather": True}
BASE: Changes = _array(16, **BF16, scratchpad_rows=4096, accumulator_rows=1024)
BASE_LISTS: Changes = {**BASE, "gather": True}
FUNCTIONS = (
    tuple(function.name.lower() for function in Function),
    ("exp2", "reciprocal", "rsqrt", "normal_cdf"),
    ("tanh", "sigmoid", "normal_cdf"),
    ("exp2", "reciprocal", "rsqrt"),
    *((function.name.lower(),) for function in Function),
)
SAMPLE: dict[str, tuple[Changes, ...]] = {
    "semaphores": ({},),
    "counters": ({},),
    "bus-counters": ({},),
    "target": ({},),
    "scrub": ({}, WIDE),
    "front": ({}, {"unit_queue": 16}, {"unit_queue": 32}, {"unit_queue": 32, "program_words": 1024}),
    "load-reader": (*SIZES, WIDE),
    "fetch-reader": (*SIZES, WIDE),
    "writer": (*SIZES, WIDE),
    "node-port": (
        {},
        {"tlb_entries": 2},
        {"tlb_entries": 12},
        _array(8, tlb_entries=6),
        _array(16, **BF16, tlb_entries=12),
    ),
    "bank": ({}, {"queues": 8}, {"contexts": 8}, {"queues": 8, "contexts": 8}),
    "mesh": (
        {},
        _array(8),
        _array(16),
        {"cores_x": 2},
        {"cores_x": 2, "cores_y": 2},
        _array(16, cores_x=2, cores_y=2),
    ),
    "scratchpad": (
        {},
        {"gather": True},
        {"scratchpad_rows": 2048},
        {"scratchpad_banks": 8},
        _array(8),
        _array(16, scratchpad_rows=1024),
        _array(8, **BF16, scratchpad_rows=2048),
        _array(16, **BF16, scratchpad_rows=4096),
    ),
    "accumulators": (
        {},
        {"accumulator_banks": 4},
        _array(16, accumulator_rows=256),
        EDGE,
        EDGE_LISTS,
        BASE,
        BASE_LISTS,
    ),
    "gateway": ({}, _array(16), {"contexts": 8}, {"cores_x": 2, "cores_y": 2}),
    "sequencer": ({}, {"program_words": 1024}, _array(16)),
    "load": ({}, {"gather": True}, _array(8), EDGE, EDGE_LISTS, BASE, BASE_LISTS),
    "store": ({}, {"gather": True}, _array(8), EDGE, EDGE_LISTS, BASE, BASE_LISTS),
    "command": ({}, {"queues": 8}, {"contexts": 8}, _array(8), _array(16), {"cores_x": 2, "cores_y": 2}),
    "matrix": ({}, _array(8), BF16, _array(16), _array(8, **BF16)),
    "vector": (
        {"vector_lanes": 1},
        {},
        BF16,
        _array(8, vector_lanes=1),
        {"vector_chains": 15},
        {"vector_chains": 4, **BF16},
    ),
    "function": tuple(_array(16, **BF16, vector_chains=15, vector_functions=names) for names in FUNCTIONS),
}
"""By block: changes of ``CENTRE``."""


def sample() -> Iterator[tuple[str, ChipConfig]]:
    """Blocks and their configurations."""
    for name, changes in SAMPLE.items():
        for change in changes:
            yield name, CENTRE.replace(**change)
