"""Carry chains without the cells that nextpnr puts at their ends, on an ECP5."""

from collections import Counter
from pathlib import Path
from typing import Any

from sley.fpga.devices.family import Family
from sley.fpga.netlist.edit import edited

CHAINS = {"ecp5": "CCU2C"}
"""Two bits of a carry chain, by family."""
LUT = "LUT4"
OPEN = "x"
"""At a pin of a chain that leads nowhere, which nextpnr wants to be there."""


def trim_carry_chains(netlist: Path, family: Family) -> int:
    """Leaves out each carry into a chain that is a constant, and each carry out of one that leads nowhere.

    For either nextpnr would put two LUTs at that end of the chain, one to let the carry in and one to let it out. The
    LUT of the first bit gives the next carry by itself where it gives 0, whatever the carry into it; what it gave
    before, the first bit of the sum, has a LUT of its own then, if it leads anywhere. Chains of which a first bit
    depends on more than two inputs stay.

    Other families than ECP5 stay as they are. ``netlist`` is Yosys' JSON of a flat design, which is rewritten. Returns
    how many ends were trimmed.
    """
    chains = CHAINS.get(family.name)
    if chains is None:
        return 0
    with edited(netlist) as modules:
        return sum(_trim_in(module, chains) for module in modules)


def _trim_in(module: dict[str, Any], chains: str) -> int:
    cells: dict[str, Any] = module["cells"]
    used = Counter(bit for port in module["ports"].values() for bit in port["bits"])
    for cell in cells.values():
        for pin, bits in cell["connections"].items():
            if cell["port_directions"][pin] != "output":
                used.update(bits)
    trimmed = 0
    for name, cell in [(name, cell) for name, cell in cells.items() if cell["type"] == chains]:
        pins = cell["connections"]
        if isinstance(pins["COUT"][0], int) and not used[pins["COUT"][0]]:
            pins["COUT"] = [OPEN]
            trimmed += 1
        first = _FirstBit(cell) if pins["CIN"][0] in ("0", "1") else None
        if first and first.simple:
            if used[pins["S0"][0]]:
                cells[f"{name}_first"] = first.sum_lut()
            first.begin_chain()
            trimmed += 1
    return trimmed


class _FirstBit:
    """The first bit of a chain with a constant carry into it. ``simple``: all inputs but A and B are constants."""

    def __init__(self, cell: dict[str, Any]) -> None:
        self._cell = cell
        pins = cell["connections"]
        carry, c, d = (pins[pin][0] for pin in ("CIN", "C0", "D0"))
        parameters = cell["parameters"]
        self.simple = {c, d} <= {"0", "1"} and parameters["INJECT1_0"] == "NO"
        if self.simple:
            table = int(parameters["INIT0"], 2)
            chosen = [table >> (k + 4 * int(c) + 8 * int(d)) & 1 for k in range(4)]
            self._sum = [out ^ int(carry) for out in chosen]
            self._carry = [int(carry) if out else table >> k & 1 for k, out in enumerate(chosen)]

    def sum_lut(self) -> dict[str, Any]:
        """A LUT with the bit of the sum."""
        pins = self._cell["connections"]
        table = "".join(map(str, reversed(self._sum)))
        return {
            "hide_name": 1,
            "type": LUT,
            "parameters": {"INIT": table * 4},
            "attributes": {},
            "port_directions": dict.fromkeys("ABCD", "input") | {"Z": "output"},
            "connections": {"A": [*pins["A0"]], "B": [*pins["B0"]], "C": ["0"], "D": ["0"], "Z": pins["S0"]},
        }

    def begin_chain(self) -> None:
        """Makes the LUT of the chain give the carry alone."""
        pins = self._cell["connections"]
        self._cell["parameters"]["INIT0"] = "0" * 12 + "".join(map(str, reversed(self._carry)))
        pins["C0"], pins["D0"] = ["1"], ["1"]
        pins["CIN"], pins["S0"] = [OPEN], []
