"""The names of ``sley.runtime.energy``: what a run took, by unit, launch and operator, at any operating point."""

from sley.runtime.energy.estimate import Energy, estimate
from sley.runtime.energy.governor import Governor, Interval, Meter
from sley.runtime.energy.layers import Layer, by_launch, by_layer
from sley.runtime.energy.point import OperatingPoint
from sley.runtime.energy.table import DEFAULT, Table, published

__all__ = [
    "DEFAULT",
    "Energy",
    "Governor",
    "Interval",
    "Layer",
    "Meter",
    "OperatingPoint",
    "Table",
    "by_launch",
    "by_layer",
    "estimate",
    "published",
]
