"""Random page tables, and what they mean by the rules of ``sley.abi.pages``, written down once more."""

import random

from sley.abi.pages import ENTRY_BYTES, LARGE_PAGE_BYTES, PAGE_BYTES, PAGE_ENTRY, AddressMode, Permission, table_index

Mapping = dict[str, int]


class Tables:
    """The page tables of some contexts in ``memory``, whose pages from ``data`` on they map.

    ``roots``: mode and page of each context's ``CONTEXT.ROOT``.
    """

    def __init__(self, rng: random.Random, memory: bytearray, contexts: int, data: int) -> None:
        self.rng = rng
        self.memory = memory
        self.data = data
        self._free = PAGE_BYTES
        self.roots = [(rng.choice(list(AddressMode)), 0) for _ in range(contexts)]
        self.roots = [(mode, self._table() if mode is AddressMode.PAGED else 0) for mode, _ in self.roots]

    def _table(self) -> int:
        page, self._free = self._free // PAGE_BYTES, self._free + PAGE_BYTES
        assert self._free <= self.data, "more tables than there is room for"
        return page

    def put(self, table: int, index: int, **fields: int) -> None:
        """Writes an entry of the table in a page."""
        at = table * PAGE_BYTES + index * ENTRY_BYTES
        self.memory[at : at + ENTRY_BYTES] = PAGE_ENTRY.pack(**fields).to_bytes(ENTRY_BYTES, "little")

    def entry(self, table: int, index: int) -> Mapping:
        at = table * PAGE_BYTES + index * ENTRY_BYTES
        return PAGE_ENTRY.unpack(int.from_bytes(self.memory[at : at + ENTRY_BYTES], "little"))

    def raw(self, table: int, index: int, word: int) -> None:
        at = table * PAGE_BYTES + index * ENTRY_BYTES
        self.memory[at : at + ENTRY_BYTES] = word.to_bytes(ENTRY_BYTES, "little")

    def map_page(self, context: int, address: int, page: int, rights: int) -> None:
        """Maps a small page; ``rights``: bits of ``Permission``."""
        upper, lower = table_index(address)
        root = self.roots[context][1]
        if not self.entry(root, upper)["valid"]:
            self.put(root, upper, valid=1, page=self._table())
        table = self.entry(root, upper)["page"]
        self.put(table, lower, valid=1, page=page, **_rights(rights))

    def map_large(self, context: int, address: int, page: int, rights: int) -> None:
        self.put(self.roots[context][1], table_index(address)[0], valid=1, page=page, **_rights(rights))

    def translate(self, context: int, address: int, need: Permission, addr_bits: int) -> tuple[str, int]:
        """("", address in memory), or ("page", 0) or ("permission", 0)."""
        mode, root = self.roots[context] if context < len(self.roots) else (AddressMode.OFF, 0)
        if mode is AddressMode.PHYSICAL:
            return "", address
        if mode is AddressMode.OFF:
            return "page", 0
        upper, lower = table_index(address)
        table = root
        for index, size in ((upper, LARGE_PAGE_BYTES), (lower, PAGE_BYTES)):
            at = table * PAGE_BYTES + index * ENTRY_BYTES
            if at + ENTRY_BYTES > len(self.memory):
                return "page", 0
            word = int.from_bytes(self.memory[at : at + ENTRY_BYTES], "little")
            entry = PAGE_ENTRY.unpack(word)
            if not entry["valid"] or word & ~PAGE_ENTRY.mask or entry["page"] * PAGE_BYTES >> addr_bits:
                return "page", 0
            rights = [entry["read"], entry["write"], entry["execute"]]
            if size == LARGE_PAGE_BYTES and not any(rights):
                table = entry["page"]
                continue
            if entry["page"] * PAGE_BYTES % size:
                return "page", 0
            return ("", entry["page"] * PAGE_BYTES + address % size) if rights[need] else ("permission", 0)
        raise AssertionError


def _rights(bits: int) -> dict[str, int]:
    return {name: bits >> k & 1 for k, name in enumerate(("read", "write", "execute"))}
