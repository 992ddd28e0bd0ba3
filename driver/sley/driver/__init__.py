"""The driver: what opens a device, lets several clients share it, and says what went wrong.

``Driver`` is one opened device, ``Context`` one client of it. A client maps memory (``BufferObject``, ``Mapping``),
submits packets to a ``Queue``, waits for a ``Fence``, and keeps work for later in a ``Recording``. Errors have one
root, ``SleyError``.
"""

from sley.abi.errors import SleyError
from sley.abi.transport import EngineError, Transport, TransportError
from sley.driver.context import Context
from sley.driver.device import Driver
from sley.driver.errors import (
    AbiMismatch,
    BadRequest,
    BufferFreed,
    CallbackFailed,
    ConfigMismatch,
    ContextClosed,
    ContextHang,
    ContextReset,
    DeviceCorrupt,
    DeviceHang,
    DeviceReset,
    DriverClosed,
    NoCycleCounts,
    NoRoom,
    OutOfDeviceMemory,
    ProbeError,
    QueueFault,
    QueueFull,
    ResetFailed,
    WaitTimeout,
)
from sley.driver.hardware.engines import engines, open_transport, parse_url
from sley.driver.hardware.probe import probe
from sley.driver.hardware.registers import Registers
from sley.driver.hardware.statistics import Statistics
from sley.driver.memory.buffer import ALL_RIGHTS, READ_WRITE, BufferObject, Rights
from sley.driver.memory.heap import Heap, HeapStatistics
from sley.driver.memory.ranges import MemoryStatistics
from sley.driver.memory.space import AddressSpace, Mapping
from sley.driver.observe.counters import CORE_GROUPS, Counters, Values
from sley.driver.observe.dump import Dump
from sley.driver.queue.fence import Fence, FenceHandle, ImportedFence, import_fence, wait_all, wait_any
from sley.driver.queue.queue import Queue
from sley.driver.queue.recording import Recording

__all__ = [
    "ALL_RIGHTS",
    "CORE_GROUPS",
    "READ_WRITE",
    "AbiMismatch",
    "AddressSpace",
    "BadRequest",
    "BufferFreed",
    "BufferObject",
    "CallbackFailed",
    "ConfigMismatch",
    "Context",
    "ContextClosed",
    "ContextHang",
    "ContextReset",
    "Counters",
    "DeviceCorrupt",
    "DeviceHang",
    "DeviceReset",
    "Driver",
    "DriverClosed",
    "Dump",
    "EngineError",
    "Fence",
    "FenceHandle",
    "Heap",
    "HeapStatistics",
    "ImportedFence",
    "Mapping",
    "MemoryStatistics",
    "NoCycleCounts",
    "NoRoom",
    "OutOfDeviceMemory",
    "ProbeError",
    "Queue",
    "QueueFault",
    "QueueFull",
    "Recording",
    "Registers",
    "ResetFailed",
    "Rights",
    "SleyError",
    "Statistics",
    "Transport",
    "TransportError",
    "Values",
    "WaitTimeout",
    "engines",
    "import_fence",
    "open_transport",
    "parse_url",
    "probe",
    "wait_all",
    "wait_any",
]
