"""Systems on FPGAs: boards, their memories and host bridge, and the flow from a design to a bitstream.

A name is imported from where it is defined when it is first used, so that the host of a board needs no Amaranth.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sley.fpga.boards.board import Board, BoardTop
    from sley.fpga.boards.known import BOARDS
    from sley.fpga.bridge.bridge import HostBridge
    from sley.fpga.bridge.link import LinkError
    from sley.fpga.bridge.transport import FpgaTransport
    from sley.fpga.errors import FlowError
    from sley.fpga.flow.implementation import Implementation, implement
    from sley.fpga.memory.block_ram import BlockMemory
    from sley.fpga.memory.sdram.memory import SdramMemory
    from sley.fpga.system import BareSystem, System
else:
    _HOMES = {
        "BOARDS": "sley.fpga.boards.known",
        "BareSystem": "sley.fpga.system",
        "BlockMemory": "sley.fpga.memory.block_ram",
        "Board": "sley.fpga.boards.board",
        "BoardTop": "sley.fpga.boards.board",
        "FpgaTransport": "sley.fpga.bridge.transport",
        "FlowError": "sley.fpga.errors",
        "HostBridge": "sley.fpga.bridge.bridge",
        "Implementation": "sley.fpga.flow.implementation",
        "LinkError": "sley.fpga.bridge.link",
        "SdramMemory": "sley.fpga.memory.sdram.memory",
        "System": "sley.fpga.system",
        "implement": "sley.fpga.flow.implementation",
    }

    def __getattr__(name):
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_HOMES[name]), name)


__all__ = [
    "BOARDS",
    "BareSystem",
    "BlockMemory",
    "Board",
    "BoardTop",
    "FlowError",
    "FpgaTransport",
    "HostBridge",
    "Implementation",
    "LinkError",
    "SdramMemory",
    "System",
    "implement",
]
