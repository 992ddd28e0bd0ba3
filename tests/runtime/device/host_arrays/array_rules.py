"""Rules of arrays: made, viewed, written, freed, dropped, closed with their device."""

from __future__ import annotations

import gc

import numpy as np
from array_world import NUMBER, QUEUES, Array, ArrayWorld, Owner
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

TYPES = st.sampled_from([np.int8, np.uint8, np.int32, np.float32])
SHAPES = st.sampled_from([(), (0,), (3,), (4, 5), (5, 4), (2, 3, 4), (70,)])


class ArrayRules(ArrayWorld):
    """Memory of arrays."""

    def some(self, device: int, number: int) -> tuple[Owner, Array] | tuple[None, None]:
        """An array of a device, also one that was freed."""
        owner = self.pick(self.owners, device)
        array = self.pick(owner.arrays if owner else [], number)
        return (owner, array) if array else (None, None)

    @precondition(lambda self: self.owners)
    @rule(device=NUMBER, dtype=TYPES, shape=SHAPES, value=st.integers(0, 127))
    def make(self, device: int, dtype: type, shape: tuple[int, ...], value: int) -> None:
        owner = self.pick(self.owners, device)
        if len(owner.arrays) < 10:
            self.did("array")
            owner.arrays.append(self.put(owner, np.full(shape, value, dtype)))

    @precondition(lambda self: self.owners)
    @rule(device=NUMBER, number=NUMBER, cut=st.integers(0, 3))
    def view(self, device: int, number: int, cut: int) -> None:
        owner, array = self.some(device, number)
        if not owner or not array or array.real.ndim == 0 or array.base or array.gone or len(owner.arrays) >= 10:
            return
        self.did("view")
        real = array.real[min(cut, array.real.shape[0]) :]
        owner.arrays.append(Array(real, array.place, array.real.nbytes - real.nbytes, base=array))
        assert not real.size or real.address == array.real.address + array.real.nbytes - real.nbytes

    @precondition(lambda self: self.owners)
    @rule(device=NUMBER, number=NUMBER, value=st.integers(0, 127))
    def write(self, device: int, number: int, value: int) -> None:
        """From the host, after all work of the device."""
        owner, array = self.some(device, number)
        if not owner or not array:
            return
        values = np.full(array.real.shape, value, array.real.dtype)
        refused = "BufferFreed" if array.gone else self.drain(owner, owner.lines)
        self.did("write")
        self.attempt(refused, lambda: array.real.write(values))
        if refused is None:
            array.host[...] = values

    @precondition(lambda self: self.owners)
    @rule(device=NUMBER, number=NUMBER)
    def read(self, device: int, number: int) -> None:
        owner, array = self.some(device, number)
        if not owner or not array:
            return
        refused = "BufferFreed" if array.gone else self.drain(owner, owner.lines)
        self.did("read")
        found = self.attempt(refused, array.real.numpy)
        if refused is None:
            assert found.tobytes() == array.host.tobytes()
            assert (found.shape, found.dtype) == (array.real.shape, array.real.dtype)

    @precondition(lambda self: self.owners)
    @rule(device=NUMBER, number=NUMBER)
    def free(self, device: int, number: int) -> None:
        """Its memory stays with work in flight."""
        owner, array = self.some(device, number)
        if not owner or not array:
            return
        if array.base:
            self.did("free a view")
            self.attempt("BadRequest", array.real.free)
            return
        used, idle = owner.real.memory.used, not any(queue.pending for queue in owner.host.queues)
        self.did("free" if idle else "free in flight")
        self.attempt("BufferFreed" if array.gone else None, array.real.free)
        if not array.gone:
            array.freed = True
            size = max(-(-array.real.nbytes // 64) * 64, 64)
            assert owner.real.memory.used == used - (size if idle else 0)

    @precondition(lambda self: self.owners)
    @rule(device=NUMBER, number=NUMBER)
    def drop(self, device: int, number: int) -> None:
        """The last reference to an array is gone, and views keep it."""
        owner, array = self.some(device, number)
        if not owner or not array or any(array in tape.arrays for tape in owner.tapes):
            return
        self.did("drop")
        owner.arrays.remove(array)
        whole = array.base or array
        kept = [other for other in owner.arrays if whole in (other, other.base)]
        pool = owner.real.pool
        pool.collect()
        used, idle = pool.used, not any(queue.pending for queue in owner.host.queues)
        size = 0 if array.gone or kept or not idle else max(-(-whole.real.nbytes // 64) * 64, 64)
        del array, whole
        gc.collect(0)
        assert owner.real.memory.used == used - size

    # Devices come and go

    @precondition(lambda self: self.owners)
    @rule()
    def open(self) -> None:
        if len(self.owners) < 2:
            self.did("open")
            self.open_device()

    @precondition(lambda self: len(self.owners) > 1)
    @rule(device=NUMBER)
    def close(self, device: int) -> None:
        owner = self.pick(self.owners, device)
        self.did("close")
        owner.real.close()
        self.chip.close(owner.host)
        self.owners.remove(owner)
        self.gone.append(owner)
        assert self.driver.free_queues == QUEUES
        for event, fence, _ in owner.events:
            self.attempt(fence.loss.name if fence.loss else None, lambda event=event: event.done)

    @precondition(lambda self: self.gone)
    @rule(number=NUMBER)
    def use_closed(self, number: int) -> None:
        self.did("use of a closed device")
        owner = self.gone[-1]
        device, array = owner.real, self.pick([array for array in owner.arrays if not array.gone], number)
        calls = [
            lambda: device.array([1, 2]),
            lambda: device.memory,
            device.synchronize,
            device.stream.synchronize,
            device.stream.record,
            lambda: device.stream.callback(print),
        ]
        if array is not None:
            calls += [array.real.numpy, lambda: device.stream.fill(array.real, 1)]
            calls += [] if array.base else [array.real.free]
        for call in calls:
            self.attempt("ContextClosed", call)
        device.close()
