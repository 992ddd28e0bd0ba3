"""A placed design as nextpnr writes it, cell by cell."""

from typing import Any

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
