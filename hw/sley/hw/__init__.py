"""The gateware: the chip, its blocks, and the text that is made of them.

A name is imported from where it is defined when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sley.hw.chip import Chip
    from sley.hw.core.core import Core
    from sley.hw.core.load.unit import LoadUnit
    from sley.hw.core.matrix.array import SystolicArray
    from sley.hw.core.matrix.unit import MatrixUnit
    from sley.hw.core.store.unit import StoreUnit
    from sley.hw.core.vector.unit import VectorUnit
    from sley.hw.ip.export import ExportError, ip_files, write_export
    from sley.hw.rtlil import chip_rtlil, component_rtlil
    from sley.hw.verilog import VerilogError, chip_verilog, component_verilog
else:
    _HOMES = {
        "Chip": "sley.hw.chip",
        "Core": "sley.hw.core.core",
        "ExportError": "sley.hw.ip.export",
        "LoadUnit": "sley.hw.core.load.unit",
        "MatrixUnit": "sley.hw.core.matrix.unit",
        "StoreUnit": "sley.hw.core.store.unit",
        "SystolicArray": "sley.hw.core.matrix.array",
        "VectorUnit": "sley.hw.core.vector.unit",
        "VerilogError": "sley.hw.verilog",
        "chip_rtlil": "sley.hw.rtlil",
        "chip_verilog": "sley.hw.verilog",
        "component_rtlil": "sley.hw.rtlil",
        "component_verilog": "sley.hw.verilog",
        "ip_files": "sley.hw.ip.export",
        "write_export": "sley.hw.ip.export",
    }

    def __getattr__(name):
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_HOMES[name]), name)


__all__ = [
    "Chip",
    "Core",
    "ExportError",
    "LoadUnit",
    "MatrixUnit",
    "StoreUnit",
    "SystolicArray",
    "VectorUnit",
    "VerilogError",
    "chip_rtlil",
    "chip_verilog",
    "component_rtlil",
    "component_verilog",
    "ip_files",
    "write_export",
]
