"""The contract between hardware and software: what both sides derive everything from.

``ChipConfig`` says what a chip is. Registers, packets, instructions, element types, faults and counters are described
once; ``Transport`` is the path to a device, and ``SleyError`` the root of all errors.
"""

from sley.abi.asm import AsmError, assemble, bytes_to_words, disassemble, words_to_bytes
from sley.abi.config import ABI_MAJOR, ABI_MINOR, PRESETS, ChipConfig, ConfigError, configuration, preset
from sley.abi.counters import COUNTERS, Counter, CounterGroup
from sley.abi.errors import SleyError
from sley.abi.faults import FaultCode, FaultRecord, QueueState, Unit, UnitState
from sley.abi.functions.own import OwnFunction
from sley.abi.functions.table import Function
from sley.abi.instructions import Op, Share, Space, VectorRow, decode, encode
from sley.abi.layout import Field, Layout, LayoutError
from sley.abi.packets import PacketOp, decode_packet, encode_packet
from sley.abi.pages import LARGE_PAGE_BYTES, PAGE_BYTES, AddressMode, Permission
from sley.abi.parameters import Param
from sley.abi.registers import Access, Register, RegisterBlock, RegisterMap
from sley.abi.sizes import parse_size
from sley.abi.transport import EngineError, Transport, TransportError
from sley.abi.types import TYPES, ElementType, TypeInfo
from sley.abi.vector.chains import Chain, Condition, Lanes, Late, Operand
from sley.abi.vector.operations import BinaryOp, Reduction

__all__ = [
    "ABI_MAJOR",
    "ABI_MINOR",
    "COUNTERS",
    "LARGE_PAGE_BYTES",
    "PAGE_BYTES",
    "PRESETS",
    "TYPES",
    "Access",
    "AddressMode",
    "AsmError",
    "BinaryOp",
    "Chain",
    "ChipConfig",
    "Condition",
    "ConfigError",
    "Counter",
    "CounterGroup",
    "ElementType",
    "EngineError",
    "FaultCode",
    "FaultRecord",
    "Field",
    "Function",
    "Lanes",
    "Late",
    "Layout",
    "LayoutError",
    "Op",
    "Operand",
    "OwnFunction",
    "PacketOp",
    "Param",
    "Permission",
    "QueueState",
    "Reduction",
    "Register",
    "RegisterBlock",
    "RegisterMap",
    "Share",
    "SleyError",
    "Space",
    "Transport",
    "TransportError",
    "TypeInfo",
    "Unit",
    "UnitState",
    "VectorRow",
    "assemble",
    "bytes_to_words",
    "configuration",
    "decode",
    "decode_packet",
    "disassemble",
    "encode",
    "encode_packet",
    "parse_size",
    "preset",
    "words_to_bytes",
]
