"""Device memory of the golden model: bytes that end somewhere, and what each context sees of them."""

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.abi.layout import Layout
from sley.abi.pages import (
    ENTRY_BYTES,
    PAGE_BITS,
    PAGE_BYTES,
    PAGE_ENTRY,
    TABLE_ENTRIES,
    AddressMode,
    Permission,
    table_index,
)


class FaultError(Exception):
    """A fault that stops a block or a packet, as the error record shows it."""

    def __init__(self, code: FaultCode, unit: Unit, pc: int = 0, address: int = 0):
        super().__init__(f"{code.name} in {unit.name} at pc {pc}, address {address:#x}")
        self.code, self.unit, self.pc, self.address = code, unit, pc, address & 0xFFFFFFFF


class AccessError(Exception):
    """An access that memory or the page tables refuse: BUS_ERROR, PAGE_FAULT or PERMISSION; ``address``: of the first
    byte that they refuse."""

    def __init__(self, code: FaultCode, address: int):
        super().__init__(f"{code.name} at {address:#x}")
        self.code, self.address = code, address

    def at(self, unit: Unit, pc: int, address: int) -> FaultError:
        """The fault of the unit that made the access, with the address that its record shows."""
        return FaultError(self.code, unit, pc, address)


class MemoryShadow(Protocol):
    """Who follows what the host and the command processor do with memory."""

    def written(self, address: int, length: int) -> None: ...

    def copied(self, source: int, destination: int, length: int) -> None: ...


class ModelMemory:
    """``data``: the bytes. ``limit``: the end of what an address can name. ``shadow``: who follows accesses, if
    somebody does. Accesses are with physical addresses."""

    def __init__(self, size: int, addr_bits: int):
        self.shadow: MemoryShadow | None = None
        self.data: NDArray[np.uint8] = np.zeros(size, np.uint8)
        self.limit = 1 << addr_bits

    def view(self, address: int, length: int) -> NDArray[np.uint8]:
        """A writable view of ``length`` bytes."""
        if address < 0 or address + length > self.data.size:
            raise AccessError(FaultCode.BUS_ERROR, max(address, self.data.size))
        return self.data[address : address + length]

    def check(self, address: int, length: int, need: Permission) -> None:
        """Raises ``AccessError`` unless all bytes may be used so."""
        self.view(address, length)

    def read(self, address: int, length: int, need: Permission = Permission.READ) -> NDArray[np.uint8]:
        return self.view(address, length)

    def write(self, address: int, data: NDArray[np.uint8]) -> None:
        self.view(address, data.size)[:] = data

    def read_word(self, address: int, length: int, need: Permission = Permission.READ) -> int:
        return int.from_bytes(self.read(address, length, need).tobytes(), "little")


class ContextMemory(ModelMemory):
    """Memory as one context sees it, through ``CONTEXT.ROOT`` and its page tables.

    Translations are remembered until ``invalidate``, also those of pages that are not there, so that software which
    forgets INVALIDATE is found out. ``watch`` is called when the register changes, and with true to forget.
    """

    def __init__(self, memory: ModelMemory, layout: Layout):
        self.memory, self.layout = memory, layout
        self.data, self.limit = memory.data, memory.limit
        self.watch: Callable[[bool], None] | None = None
        self.root = 0
        self.invalidate()

    @property
    def root(self) -> int:
        """The register."""
        return self._root

    @root.setter
    def root(self, value: int) -> None:
        self._root = value
        if self.watch:
            self.watch(False)

    def invalidate(self) -> None:
        self._seen: dict[int, tuple[int, int]] = {}
        if self.watch:
            self.watch(True)

    def check(self, address: int, length: int, need: Permission) -> None:
        for _ in self._views(address, length, need):
            pass

    def read(self, address: int, length: int, need: Permission = Permission.READ) -> NDArray[np.uint8]:
        parts = list(self._views(address, length, need))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def write(self, address: int, data: NDArray[np.uint8]) -> None:
        shadow = self.memory.shadow
        if shadow is not None:
            for place, size in self.pieces(address, data.size, Permission.WRITE):
                shadow.written(place, size)
        views = list(self._views(address, data.size, Permission.WRITE))
        done = 0
        for view in views:
            view[:] = data[done : done + view.size]
            done += view.size

    def copied(self, source: int, destination: int, length: int) -> None:
        """Bytes have been copied."""
        shadow = self.memory.shadow
        if shadow is not None:
            for place, size in self.pieces(destination, length, Permission.WRITE):
                for start, part in self.pieces(source, size, Permission.READ):
                    shadow.copied(start, place, part)
                    place += part
                source += size

    def physical(self, address: int) -> int:
        """Where a program's byte lies. Raises ``AccessError``."""
        return next(self.pieces(address, 1, Permission.EXECUTE))[0]

    def _views(self, address: int, length: int, need: Permission) -> Iterator[NDArray[np.uint8]]:
        for place, size in self.pieces(address, length, need):
            try:
                yield self.memory.view(place, size)
            except AccessError as error:
                raise AccessError(error.code, address + error.address - place) from None
            address += size

    def pieces(self, address: int, length: int, need: Permission) -> Iterator[tuple[int, int]]:
        """Physical ranges, one for each page. Raises ``AccessError``."""
        root = self.layout.unpack(self.root)
        if root["mode"] == AddressMode.PHYSICAL:
            yield address, length
            return
        end = address + length
        while True:
            page, offset = address >> PAGE_BITS, address & PAGE_BYTES - 1
            if page not in self._seen:
                self._seen[page] = self._walk(root, address)
            physical, rights = self._seen[page]
            if physical < 0:
                raise AccessError(FaultCode.PAGE_FAULT, address)
            if not rights >> need & 1:
                raise AccessError(FaultCode.PERMISSION, address)
            size = min(PAGE_BYTES - offset, end - address)
            yield physical + offset, size
            address += size
            if address >= end:
                return

    def _walk(self, root: dict[str, int], address: int) -> tuple[int, int]:
        """Physical address of a page and the rights to it; -1 if it is not there."""
        if root["mode"] != AddressMode.PAGED:
            return -1, 0
        upper, lower = table_index(address)
        found = self._entry(root["page"], upper)
        if found is None:
            return -1, 0
        page, rights = found
        if rights:
            if page & TABLE_ENTRIES - 1:
                return -1, 0
            return (page | lower) << PAGE_BITS, rights
        found = self._entry(page, lower)
        return (-1, 0) if found is None else (found[0] << PAGE_BITS, found[1])

    def _entry(self, table: int, index: int) -> tuple[int, int] | None:
        """Page and rights of an entry, if it means something."""
        try:
            word = self.memory.read_word((table << PAGE_BITS) + ENTRY_BYTES * index, ENTRY_BYTES)
        except AccessError:
            return None
        entry = PAGE_ENTRY.unpack(word)
        if not entry["valid"] or word & ~PAGE_ENTRY.mask:
            return None
        return entry["page"], sum(entry[p.name.lower()] << p for p in Permission)


class AddressSpaces:
    """The memories of all contexts; a context that the chip does not have sees nothing."""

    def __init__(self, config: ChipConfig, memory: ModelMemory, layout: Layout):
        self.contexts = [ContextMemory(memory, layout) for _ in range(config.contexts)]
        self._nothing = ContextMemory(memory, layout)

    def __getitem__(self, context: int) -> ContextMemory:
        return self.contexts[context] if context < len(self.contexts) else self._nothing

    def invalidate(self) -> None:
        for context in self.contexts:
            context.invalidate()
