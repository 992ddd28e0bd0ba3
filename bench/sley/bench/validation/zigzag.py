"""Cycles of ZigZag for products on a weight-stationary array: one of the peers of ``sley bench validation``.

ZigZag (Mei et al., IEEE Transactions on Computers 2021) is an analytical model with a search for the order of loops: it
adds up what each level of memory moves, and simulates nothing. It is told of an array of N x N elements like Sley's:
rows along K, columns along N, two weights in each element, 32-bit sums in a memory for each column, and one memory of
a row a cycle for each operand, as large as the problem, so that nothing waits for DRAM.

It runs in a process of its own, for it sets up logging and writes files.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sley.abi.errors import SleyError
from sley.abi.install import extra
from sley.bench.gemm.shapes import Size

SUMS = 1024
"""Rows of sums, as many as accumulators of the chips that are compared."""
_RUN = """
import json, sys
from zigzag.api import get_hardware_performance_zigzag
found = []
for number in range(int(sys.argv[1])):
    _, _, costs = get_hardware_performance_zigzag(
        f"work{number}.yaml", "hardware.yaml", "mapping.yaml", opt="latency", dump_folder="out",
        loma_show_progress_bar=False)
    cost = costs[0][0]
    found.append([int(cost.ideal_temporal_cycle), int(cost.latency_total2)])
json.dump(found, open("found.json", "w"))
"""


class ZigZagError(SleyError):
    """ZigZag is not installed, or fails."""


@dataclass(frozen=True)
class ZigZagCycles:
    """``computed``: of the array alone, all its places for a product in use or not; ``whole``: with loading, drain and
    storing."""

    computed: int
    whole: int


def cycles_of(array: int, sizes: Sequence[Size]) -> list[ZigZagCycles]:
    """Cycles of products (M, N, K) of int8, each in the order of loops that is best by ZigZag. Raises
    ``ZigZagError``."""
    if find_spec("zigzag") is None:
        raise ZigZagError(f"ZigZag is not installed: {extra('validation')}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # JSON is YAML.
        (folder / "hardware.yaml").write_text(json.dumps(_hardware(array)))
        (folder / "mapping.yaml").write_text(json.dumps(_mapping(array)))
        for number, size in enumerate(sizes):
            (folder / f"work{number}.yaml").write_text(json.dumps(_work(size)))
        command = [sys.executable, "-c", _RUN, str(len(sizes))]
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if result.returncode:
            raise ZigZagError(f"ZigZag failed: {(result.stderr.strip().splitlines() or ['no reason'])[-1]}")
        return [ZigZagCycles(*found) for found in json.loads((folder / "found.json").read_text())]


def _hardware(array: int) -> dict[str, Any]:
    row, sums = 8 * array, 32 * array
    weights = _memory(16, ["I2"], [], [_port("r_port_1", "read", 8, "I2, tl"), _port("w_port_1", "write", 8, "I2, fh")])
    partial = [("r_port_1", "read", "O, tl"), ("r_port_2", "read", "O, th")]
    partial += [("w_port_1", "write", "O, fh"), ("w_port_2", "write", "O, fl")]
    columns = _memory(32 * SUMS, ["O"], ["D1"], [_port(name, kind, 32, what) for name, kind, what in partial])
    operands = [_port("r_port_1", "read", row, "I1, tl"), _port("r_port_2", "read", row, "I2, tl")]
    operands.append(_port("r_port_3", "read", sums, "O, tl", "O, th"))
    operands.append(_port("w_port_1", "write", sums, "I1, fh", "I2, fh", "O, fh", "O, fl"))
    memory = _memory(1 << 36, ["I1", "I2", "O"], ["D1", "D2"], operands)
    return {
        "name": f"weight_stationary_{array}",
        "memories": {"weights": weights, "sums": columns, "memory": memory},
        "operational_array": {
            "input_precision": [8, 8],
            "unit_energy": 1,
            "unit_area": 1,
            "dimensions": ["D1", "D2"],
            "sizes": [array, array],
            "systolic_dimensions": ["D1", "D2"],
        },
    }


def _memory(bits: int, operands: list[str], shared: list[str], ports: list[dict[str, Any]]) -> dict[str, Any]:
    """A memory; costs are in energy and area, which nobody reads."""
    costs = {"r_cost": 1, "w_cost": 1, "area": 0, "latency": 1}
    return {"size": bits, **costs, "operands": operands, "ports": ports, "served_dimensions": shared}


def _port(name: str, kind: str, bits: int, *operands: str) -> dict[str, Any]:
    return {"name": name, "type": kind, "bandwidth_min": bits, "bandwidth_max": bits, "allocation": list(operands)}


def _mapping(array: int) -> list[dict[str, Any]]:
    places = {"D1": [f"C, {array}"], "D2": [f"K, {array}"]}
    return [{"name": "default", "spatial_mapping": places, "memory_operand_links": {"O": "O", "W": "I2", "I": "I1"}}]


def _work(size: Size) -> list[dict[str, Any]]:
    m, n, k = size
    return [
        {
            "id": 0,
            "name": "product",
            "operator_type": "Gemm",
            "equation": "O[b][k]+=W[k][c]*I[b][c]",
            "dimension_relations": [],
            "loop_dims": ["B", "K", "C"],
            "loop_sizes": [m, n, k],
            "operand_precision": {"W": 8, "I": 8, "O": 32, "O_final": 32},
            "operand_source": {"I": 0, "W": 0},
        }
    ]
