"""Copies of drivers with many ends."""

import json
from pathlib import Path
from typing import Any

import pytest

from sley.fpga.devices.family import FAMILIES
from sley.fpga.netlist.fanout import copy_drivers
from sley.fpga.testing.netlist import Netlist


def copied(made: Netlist, folder: Path, most: int, **outputs: str) -> tuple[int, dict[str, Any]]:
    """How many copies were made, and the module then."""
    path = made.write(folder / "netlist.json", **outputs)
    count = copy_drivers(path, FAMILIES["ecp5"], most)
    return count, json.loads(path.read_text())["modules"]["top"]


def leads_to(module: dict[str, Any], driver: str, output: str) -> list[str]:
    """Cells that a driver leads to."""
    (bit,) = module["cells"][driver]["connections"][output]
    return [
        name
        for name, cell in module["cells"].items()
        if any([bit] == bits and cell["port_directions"][pin] == "input" for pin, bits in cell["connections"].items())
    ]


@pytest.mark.parametrize("ends", [1, 3, 4, 5, 8, 9, 23])
@pytest.mark.parametrize(("kind", "output"), [("LUT4", "Z"), ("TRELLIS_FF", "Q")])
def test_ends_are_shared_out_in_the_order_of_names(kind: str, output: str, ends: int, tmp_path: Path) -> None:
    made = Netlist()
    made.add(kind, name="driver", A="before", **{output: "many"})
    names = [f"block{k // 4}.cell{k % 4}" for k in range(ends)]
    for name in reversed(names):
        made.add("TRELLIS_FF", name=name, DI=f"data of {name}", CE="many", Q=f"q of {name}")
    copies, module = copied(made, tmp_path, 4)
    assert copies == -(-ends // 4) - 1
    drivers = ["driver", *(f"driver_copy{k + 1}" for k in range(copies))]
    found = [sorted(leads_to(module, driver, output)) for driver in drivers]
    assert max(map(len, found)) <= 4
    assert max(map(len, found)) - min(map(len, found)) <= 1
    assert [name for share in found for name in share] == sorted(names)  # neighbours stay together
    for driver in drivers:
        cell = module["cells"][driver]
        assert (cell["type"], cell["connections"]["A"]) == (kind, [made.bits["before"]])
    bits = [bit for name in drivers for bit in module["cells"][name]["connections"][output]]
    assert len(set(bits)) == len(bits)
    assert {bit for net in module["netnames"].values() for bit in net["bits"]} >= set(bits)


@pytest.mark.parametrize(
    ("others", "enables", "resets", "shares"),
    [
        (4, 0, 8, [12]),
        (5, 0, 8, [3, 2, 8]),
        (4, 0, 9, [4, 5, 4]),
        (0, 0, 17, [6, 6, 5]),
        (9, 0, 0, [3] * 3),
        (1, 3, 8, [12]),
        (1, 4, 8, [1, 4, 8]),
        (5, 9, 0, [3, 2, 3, 3, 3]),
    ],
)
def test_enables_and_resets_have_shares_of_their_own(
    others: int, enables: int, resets: int, shares: list[int], tmp_path: Path
) -> None:
    """Those of resets are larger."""
    made = Netlist()
    made.add("LUT4", name="driver", A="before", Z="many")
    for k in range(others):
        made.add("LUT4", name=f"other{k}", A="many", Z=f"z{k}")
    for k in range(enables):
        made.add("TRELLIS_FF", name=f"enable{k}", DI=f"d of {k}", CE="many", Q=f"q of {k}")
    for k in range(resets):
        made.add("TRELLIS_FF", name=f"reset{k:02}", DI=f"d{k}", LSR="many", Q=f"q{k}")
    path = made.write(tmp_path / "netlist.json")
    assert copy_drivers(path, FAMILIES["ecp5"], 4, 8) == len(shares) - 1
    module = json.loads(path.read_text())["modules"]["top"]
    found = [
        leads_to(module, name, "Z") for name in ("driver", *(f"driver_copy{k + 1}" for k in range(len(shares) - 1)))
    ]
    assert sorted(map(len, found)) == sorted(shares)
    if len(shares) > 1:
        assert all(len({name.rstrip("0123456789") for name in share}) == 1 for share in found)


def test_clocks_ports_and_other_cells_stay(tmp_path: Path) -> None:
    made = Netlist()
    made.add("LUT4", name="gate", A="a", Z="clock")
    made.add("LUT4", name="seen", A="a", Z="outside")
    made.add("DP16KD", name="ram", A="a", Q="read")
    for k in range(9):
        made.add("TRELLIS_FF", CLK="clock", DI="outside", CE="read", Q=f"q{k}")
    copies, module = copied(made, tmp_path, 4, pin="outside")
    assert copies == 0
    assert len(module["cells"]) == 12


def test_a_copy_is_copied_with_the_driver_in_front_of_it(tmp_path: Path) -> None:
    """What a chain of two drivers leads to is the same: each end still follows the first one."""
    made = Netlist()
    made.add("TRELLIS_FF", name="first", DI="start", Q="near")
    for k in range(5):
        made.add("LUT4", name=f"second{k}", A="near", Z=f"far{k}")
        for end in range(9):
            made.add("TRELLIS_FF", name=f"end{k}.{end}", DI=f"far{k}", Q=f"q{k}.{end}")
    copies, module = copied(made, tmp_path, 4)
    assert copies == 5 * 2 + 1
    driver = {
        cell["connections"][pin][0]: name
        for name, cell in module["cells"].items()
        for pin in ("Z", "Q")
        if pin in cell["connections"]
    }
    for k in range(5):
        for end in range(9):
            second = driver[module["cells"][f"end{k}.{end}"]["connections"]["DI"][0]]
            assert second.partition("_")[0] == f"second{k}"
            first = driver[module["cells"][second]["connections"]["A"][0]]
            assert first.partition("_")[0] == "first"
