"""Device memory and its contexts as the compiled model sees them."""

from functools import partial

from sley.sim.model.compiled.library import CompiledModel
from sley.sim.model.memory import AddressSpaces


class CompiledMemory:
    """``handle``: the memory of ``memory.h``. It holds the bytes and the roots of ``spaces``, and translates itself."""

    def __init__(self, library: CompiledModel, spaces: AddressSpaces) -> None:
        self._call, self._data = library.call, spaces[0].data
        self.handle = self._call.memory_create(self._data.ctypes.data, self._data.size)
        if not self.handle:
            raise MemoryError("the compiled model has no memory for its contexts")
        for number, space in enumerate(spaces.contexts):
            space.watch = partial(self._follow, spaces, number)
            self._follow(spaces, number, forget=False)

    def _follow(self, spaces: AddressSpaces, number: int, forget: bool) -> None:
        space = spaces[number]
        if forget:
            self._call.memory_invalidate(self.handle, number)
        else:
            root = space.layout.unpack(space.root)
            self._call.memory_root(self.handle, number, root["mode"], root["page"])

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            self._call.memory_destroy(self.handle)
            self.handle = None
