"""The convolutions of published networks that ``sley bench conv`` measures.

| network | what |
|---|---|
| `resnet50` | the 53 convolutions for 224 x 224 pixels (He et al. 2015), with the stride in the 3 x 3 convolutions |
| `mobilenetv1` | the 13 depthwise convolutions for 224 x 224 pixels, width 1.0 (Howard et al. 2017) |
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from sley.driver import BadRequest


@dataclass(frozen=True)
class ConvLayer:
    """Square images and windows of a layer, which the network computes ``count`` times."""

    network: str
    layer: str
    size: int
    channels: int
    outputs: int
    taps: int
    stride: int
    padding: int
    groups: int
    count: int

    @property
    def out(self) -> int:
        """Pixels of the result along each axis."""
        return (self.size + 2 * self.padding - self.taps) // self.stride + 1

    @property
    def macs(self) -> int:
        return self.out**2 * self.outputs * self.taps**2 * self.channels // self.groups

    @property
    def text(self) -> str:
        """Window, stride and groups."""
        found = f"{self.taps} x {self.taps}" + (f" / {self.stride}" if self.stride > 1 else "")
        return found + (f", {self.groups} groups" if self.groups > 1 else "")


def layers() -> list[ConvLayer]:
    """All of the package's list."""
    rows = csv.DictReader((files("sley.bench.conv") / "layers.csv").read_text(encoding="utf-8").splitlines())
    return [
        ConvLayer(row.pop("network"), row.pop("layer"), **{name: int(value) for name, value in row.items()})
        for row in rows
    ]


def choose(known: Sequence[ConvLayer], networks: Sequence[str], names: Sequence[str]) -> list[ConvLayer]:
    """Those of these networks, and of them those with these names; all if none are given. Raises ``BadRequest``."""
    for network in networks:
        if network not in {layer.network for layer in known}:
            there = ", ".join(dict.fromkeys(layer.network for layer in known))
            raise BadRequest(f"no network {network!r}; there are {there}")
    found = [layer for layer in known if not networks or layer.network in networks]
    for name in names:
        if name not in {layer.layer for layer in found}:
            raise BadRequest(f"no layer {name!r}; there are {', '.join(layer.layer for layer in found)}")
    return [layer for layer in found if not names or layer.layer in names]
