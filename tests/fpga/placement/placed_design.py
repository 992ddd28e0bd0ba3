"""A placed design as nextpnr writes it, cell by cell."""

import random
from collections import Counter, defaultdict
from typing import Any

from sley.fpga.placement.placement import FLIP_FLOP, Placement

PORTS = {
    "TRELLIS_COMB": ("F", "OFX", "FCO"),
    "TRELLIS_FF": ("Q",),
    "TRELLIS_RAMW": ("WDO0", "WADO0"),
    "DP16KD": ("DOA0",),
    "MULT18X18D": ("P0",),
    "DCCA": ("CLKO",),
}
"""Outputs by type; all other ports are inputs."""


class PlacedDesign:
    """Nets are named; ``design`` is what ``Placement`` reads."""

    def __init__(self) -> None:
        self._cells: dict[str, Any] = {}
        self._nets: dict[str, int] = {}
        self.add("global", "DCCA", "X0/Y0/DCC0", CLKO="clk")

    def add(
        self,
        name: str,
        kind: str,
        place: str,
        parameters: dict[str, str] | None = None,
        attributes: dict[str, str] | None = None,
        **nets: str,
    ) -> None:
        """``place`` as in X3/Y4/SLICEA.K0; a port without a net is in the file, too."""
        self._cells[name] = {
            "type": kind,
            "parameters": parameters or {},
            "attributes": {"NEXTPNR_BEL": place} | (attributes or {}),
            "port_directions": {port: "output" if port in PORTS[kind] else "input" for port in nets},
            "connections": {
                port: [self._nets.setdefault(net, len(self._nets) + 2)] if net else [] for port, net in nets.items()
            },
        }

    def lut(self, place: str, output: str, *inputs: str, mode: str | None = None, **nets: str) -> None:
        """Called like its output."""
        ports = dict(zip("ABCD", (*inputs, "", "", ""), strict=False))
        self.add(output, "TRELLIS_COMB", place, {"MODE": mode} if mode else {}, F=output, **(ports | nets))

    def flip_flop(
        self,
        place: str,
        output: str,
        data: str,
        *,
        fed: bool = False,
        enable: str = "",
        reset: str = "",
        **parameters: str,
    ) -> None:
        """Called like its output. ``fed`` by the LUT in its slot, or else by a wire."""
        port = {"DI": data, "M": ""} if fed else {"DI": "", "M": data}
        self.add(output, "TRELLIS_FF", place, parameters, Q=output, CLK="clk", CE=enable, LSR=reset, **port)

    def carry_chain(self, x: int, y: int, name: str, data: str, length: int, **registers: str) -> None:
        """From slice A on, so many cells, the first of which has an input. The last leads to a flip-flop ``name``_q in
        its slot; ``registers``: its rules."""
        for k in range(length):
            place = f"X{x + k // 8}/Y{y}/SLICE{'ABCD'[k // 2 % 4]}"
            ports = {"A": data if k == 0 else "", "FCI": f"{name}{k - 1}c" if k else "", "FCO": f"{name}{k}c"}
            self.add(f"{name}{k}", "TRELLIS_COMB", f"{place}.K{k % 2}", {"MODE": "CCU2"}, F=f"{name}{k}", **ports)
        self.flip_flop(f"{place}.FF{k % 2}", f"{name}_q", f"{name}{k}", fed=True, **registers)

    @property
    def design(self) -> dict[str, Any]:
        return {"modules": {"top": {"settings": {"arch.type": "lfe5u_85f"}, "cells": self._cells}}}


def halves() -> list[str]:
    return [f"{name}.{{}}{half}" for name in "ABCD" for half in (0, 1)]


def logic_row(design: PlacedDesign, columns: range, y: int) -> None:
    """Tiles of logic beside each other, with a LUT in each that leads nowhere."""
    for x in columns:
        design.lut(f"X{x}/Y{y}/SLICED.K1", f"idle{x}_{y}")


def check_moves(before: Placement, after: Placement) -> None:
    """No slot is taken twice, what is joined stays so, nothing else has moved, and each tile keeps nextpnr's rules."""
    names = {name for name in after.names}
    assert names == set(before.names)
    movable = {cell for item in (*before.movables, *before.chains) for cell in item.cells}
    for chain in before.chains:
        assert {
            (int(after.x[cell]) - offset, int(after.y[cell]), after.slots[cell] == before.slots[cell])
            for cell, offset in zip(chain.cells, chain.offsets, strict=True)
        } == {(int(after.x[chain.cells[0]]), int(after.y[chain.cells[0]]), True)}
    for cell in set(range(len(before.names))) - movable:
        assert (before.x[cell], before.y[cell], before.slots[cell]) == (
            after.x[cell],
            after.y[cell],
            after.slots[cell],
        )
    taken = Counter(
        (int(after.x[c]), int(after.y[c]), after.slots[c]) for c in range(len(after.names)) if after.slots[c]
    )
    assert set(taken.values()) == {1}
    tiles = defaultdict(list)
    for cell, kind in enumerate(after.kinds):
        if kind == FLIP_FLOP:
            nets = after.cells[cell]["connections"]
            tiles[after.x[cell], after.y[cell]].append((after.slots[cell], nets.get("CE", ()), nets.get("LSR", ())))
            feed = after.feeds[cell]
            if feed is not None:
                assert (after.x[feed], after.y[feed]) == (after.x[cell], after.y[cell])
                assert after.slots[feed] == after.slots[cell].replace("FF", "K")
    for found in tiles.values():
        assert len({tuple(reset) for _, _, reset in found}) == 1
        for name in "ABCD":
            assert len({tuple(enable) for slot, enable, _ in found if f"SLICE{name}" in slot}) <= 1


def random_design(seed: int) -> PlacedDesign:
    """Flip-flops with enables and resets, and LUTs before some of them, at random in tiles that are nearly full."""
    choose = random.Random(seed)
    design = PlacedDesign()
    free = {(x, y): halves() for x in range(1, 13) for y in range(1, 7)}
    resets = {tile: choose.choice(["", "", "r"]) for tile in free}
    enables = {(tile, name): choose.choice(["", "e", "f"]) for tile in free for name in "ABCD"}
    outputs = [f"n{k}" for k in range(380)]
    logic_row(design, range(3, 13, 3), 7)
    for k in range(4):
        design.carry_chain(1 + 3 * k, 7, f"n{380 + k}", choose.choice(outputs), choose.randint(2, 12))
        outputs.append(f"n{380 + k}_q")
    for k, output in enumerate(outputs[:380]):
        tile = choose.choice([tile for tile, left in free.items() if left])
        half = free[tile].pop(choose.randrange(len(free[tile])))
        at = f"X{tile[0]}/Y{tile[1]}/SLICE{half}"
        rules = {"enable": enables[tile, half[0]], "reset": resets[tile]}
        inputs = choose.sample(outputs[:k] or outputs[-3:], k=min(3, max(1, k)))
        if choose.random() < 0.3:
            design.flip_flop(at.format("FF"), output, choose.choice(outputs), **rules)
        elif choose.random() < 0.3:
            design.lut(at.format("K"), f"d{k}", *inputs)
            design.flip_flop(at.format("FF"), output, f"d{k}", fed=True, **rules)
        else:
            design.lut(at.format("K"), output, *inputs)
    return design
