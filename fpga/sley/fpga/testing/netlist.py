"""Netlists of an ECP5 written by hand, as Yosys leaves them in JSON."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

OUTPUTS = {"Z", "Q", "DO", "COUT", "S0", "S1"}
CONSTANTS = {"0", "1"}


class Netlist:
    """Cells with one bit at each pin; nets are called by name, cells by number unless they have a ``name``. The nets
    CONSTANTS are what they are called."""

    def __init__(self) -> None:
        self.bits: dict[str, int] = {}
        self._cells: dict[str, Any] = {}

    def add(self, kind: str, *, name: str = "", parameters: Mapping[str, str] | None = None, **pins: str) -> None:
        """A cell of type ``kind`` with a net at each pin, and what else it has."""
        self._cells[name or f"{kind}_{len(self._cells)}"] = {
            "type": kind,
            "parameters": dict(parameters or {}),
            "attributes": {},
            "connections": {pin: [self._bit(net)] for pin, net in pins.items()},
            "port_directions": {pin: "output" if pin in OUTPUTS else "input" for pin in pins},
        }

    def _bit(self, net: str) -> int | str:
        return net if net in CONSTANTS else self.bits.setdefault(net, 2 + len(self.bits))

    def write(self, path: Path, **outputs: str) -> Path:
        """Writes a module ``top`` with these ports, each driven by a net."""
        module = {
            "attributes": {},
            "ports": {name: {"direction": "output", "bits": [self.bits[net]]} for name, net in outputs.items()},
            "cells": self._cells,
            "netnames": {name: {"hide_name": 0, "bits": [bit]} for name, bit in self.bits.items()},
        }
        path.write_text(json.dumps({"modules": {"top": module}}))
        return path
