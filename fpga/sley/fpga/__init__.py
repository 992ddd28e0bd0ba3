"""FPGA boards: the system of a board, its host bridge, and the flow to a bitstream.

A name is imported from where it is defined when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sley.fpga.boards.board import Board
    from sley.fpga.bridge.bridge import HostBridge
    from sley.fpga.bridge.link import LinkError
    from sley.fpga.bridge.transport import FpgaTransport, SerialPort
    from sley.fpga.errors import FlowError
    from sley.fpga.flow.implementation import implement
    from sley.fpga.system import System
else:
    _HOMES = {
        "Board": "sley.fpga.boards.board",
        "System": "sley.fpga.system",
        "FlowError": "sley.fpga.errors",
        "FpgaTransport": "sley.fpga.bridge.transport",
        "HostBridge": "sley.fpga.bridge.bridge",
        "LinkError": "sley.fpga.bridge.link",
        "SerialPort": "sley.fpga.bridge.transport",
        "implement": "sley.fpga.flow.implementation",
    }

    def __getattr__(name):
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_HOMES[name]), name)


__all__ = [
    "Board",
    "FlowError",
    "FpgaTransport",
    "HostBridge",
    "LinkError",
    "SerialPort",
    "System",
    "implement",
]
