"""``torch.sley.Stream`` and ``torch.sley.Event``: PyTorch's own, on the device's hardware queues.

A device has as many queues as ``Device.streams``; the first one is the default stream, the others are handed out in
turn. Memory that is freed is used again when the work of all streams so far is done. A millisecond between events is
a million cycles.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from sley.driver import BadRequest
from sley.runtime.frameworks.torch_device import plain_streams, queues
from sley.runtime.frameworks.torch_device.engine import checked_index
from sley.runtime.frameworks.torch_device.native import hooks
from sley.runtime.frameworks.torch_device.storage import NAME

NATIVE = hooks.MODULE is not None
Stream: Any = torch.Stream if NATIVE else plain_streams.PlainStream
Event: Any = torch.Event if NATIVE else plain_streams.PlainEvent


def cycles(start: Any, end: Any) -> int:
    """Cycles of the device between two events made with ``enable_timing=True``; waits for both. Raises ``ValueError``
    if one was not recorded, ``NoCycleCounts`` on an engine without cycles."""
    start.synchronize()
    end.synchronize()
    return round(start.elapsed_time(end) * queues.HERTZ / 1e3)


def default_stream(index: Any = None) -> Any:
    """The first one of a device."""
    return _numbered(checked_index(index), 0)


def current_stream(index: Any = None) -> Any:
    """That of ``stream``, or the default one."""
    number = checked_index(index)
    return _numbered(number, queues.current(number))


def _numbered(index: int, number: int) -> Any:
    if not NATIVE:
        return Stream(stream_id=number)
    return Stream(stream_id=number, device_index=index, device_type=int(torch._C._autograd.DeviceType.PrivateUse1))


def set_stream(stream: Any) -> None:
    """Sends the work from now on to a stream. Raises ``BadRequest`` for what is none of this device."""
    if not isinstance(stream, Stream) or (NATIVE and stream.device.type != NAME):
        raise BadRequest(f"{stream} is no stream of the device sley: make one with torch.sley.Stream()")
    if NATIVE:
        torch.accelerator.set_stream(stream)
    else:
        queues.exchange(0, stream.stream_id)


def stream(stream: Any) -> AbstractContextManager[Any]:
    """A context that sends the work inside to a stream."""
    return nullcontext() if stream is None else stream
