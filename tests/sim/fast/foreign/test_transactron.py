"""Transactions of transactron: its library with every method at ports of its own, and a small module that uses it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from amaranth.hdl import Elaboratable, Module, Signal
from bench import cases, lockstep
from found_ports import found_ports
from package import Package

lib, core, storage = Package("transactron.lib"), Package("transactron"), Package("transactron.lib.storage")
extension, memories = Package("transactron.utils.amaranth_ext"), Package("transactron.utils.amaranth_ext.memory")
WORD = [("data", 9), ("tag", 3)]


class Exposed(Elaboratable):
    """A block with transactions, and an adapter at each of its methods: enable, arguments, done, results."""

    def __init__(self, block: Any) -> None:
        self.block = block
        self.adapters = {name: self._adapter(name, method) for name, method in self._methods()}

    def _methods(self) -> Iterator[tuple[str, Any]]:
        for name, value in vars(self.block).items():
            if isinstance(value, core.Method):
                yield name, value
            elif isinstance(value, core.Methods):
                yield from ((f"{name}_{number}", method) for number, method in enumerate(value))

    def _adapter(self, name: str, method: Any) -> Any:
        required: set[str] = set()
        for kind in type(self.block).__mro__:
            hints = getattr(kind, "__annotations__", {})
            required |= {key for key, hint in hints.items() if "Required" in str(hint)}
        return (lib.Adapter if name.rstrip("_0123456789") in required else lib.AdapterTrans).create(method)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.block = self.block
        for name, adapter in self.adapters.items():
            m.submodules[name] = adapter
        return m


def ports(design: Any) -> dict[str, Any]:
    """Those of the adapters; without them, of the design itself."""
    adapters = design.elaboratable.adapters if hasattr(design, "elaboratable") else None
    return found_ports(design) if adapters is None else found_ports(_Adapters(adapters))


class _Adapters:
    def __init__(self, adapters: dict[str, Any]) -> None:
        for name, adapter in adapters.items():
            members = ("data_in", "data_out", "en", "done")
            setattr(self, name, [getattr(adapter, member) for member in members])


def exposed(make: Callable[[], Any]) -> Any:
    manager = core.utils.DependencyManager()
    with core.utils.DependencyContext(manager):
        return core.TransactronContextElaboratable(Exposed(make()), manager)


def accumulator() -> Any:
    """A method that adds to a sum, one that clears it, and a transaction that sends it on when it is large."""

    class Accumulator(Elaboratable):
        def __init__(self) -> None:
            self.add = core.Method(i=[("value", 8)])
            self.clear = core.Method(o=[("sum", 12)])
            self.sent = lib.BasicFifo([("sum", 12)], 3)
            self.take = self.sent.read

        def elaborate(self, platform: Any) -> Any:
            m = core.TModule()
            m.submodules.sent = self.sent
            total = Signal(12)

            @core.def_method(m, self.clear, nonexclusive=False)
            def _() -> Any:
                m.d.sync += total.eq(0)
                return {"sum": total}

            @core.def_method(m, self.add, ready=total < 3000)
            def _(value: Any) -> None:
                m.d.sync += total.eq(total + value)

            with core.Transaction().body(m, ready=total > 2000):
                self.sent.write(m, sum=self.clear(m).sum)
            return m

    return exposed(Accumulator)


DESIGNS: dict[str, Callable[[], Any]] = {
    "accumulator": accumulator,
    "basic_fifo": lambda: exposed(lambda: lib.BasicFifo(WORD, 6)),
    "wide_fifo": lambda: exposed(lambda: lib.fifo.WideFifo(8, 12, 3, 2)),
    "forwarder": lambda: exposed(lambda: lib.Forwarder(WORD)),
    "pipe": lambda: exposed(lambda: lib.Pipe(WORD)),
    "allocator": lambda: exposed(lambda: lib.allocators.PriorityEncoderAllocator(11, 2)),
    "memory_bank": lambda: exposed(lambda: storage.MemoryBank(shape=16, depth=11, granularity=8, read_ports=2)),
    "associative": lambda: exposed(lambda: storage.ContentAddressableMemory([("key", 4)], WORD, 6)),
    "one_hot_turns": lambda: extension.elaboratables.OneHotRoundRobin(7),
    "ring_priorities": lambda: extension.elaboratables.RingMultiPriorityEncoder(11, 2),
    "selecting_network": lambda: extension.elaboratables.StableSelectingNetwork(6, 5),
    "xor_memory": lambda: multiport("MultiportXORMemory"),
    "table_memory": lambda: multiport("MultiportILVTMemory"),
}


MORE: dict[str, Callable[[], Any]] = {
    "fifo": lambda: exposed(lambda: lib.FIFO(WORD, 5)),
    "semaphore": lambda: exposed(lambda: lib.fifo.Semaphore(5)),
    "connect": lambda: exposed(lambda: lib.Connect(WORD, [("back", 4)])),
    "stack": lambda: exposed(lambda: lib.stack.Stack(WORD, 7)),
    "ordered_allocator": lambda: exposed(lambda: lib.allocators.PreservedOrderAllocator(6)),
    "transparent_bank": lambda: exposed(
        lambda: storage.MemoryBank(shape=9, depth=8, transparent=True, read_on_resp=True)
    ),
    "async_bank": lambda: exposed(lambda: storage.AsyncMemoryBank(shape=12, depth=5, granularity=4, write_ports=1)),
    "zipper": lambda: exposed(lambda: lib.reqres.ArgumentsToResultsZipper(WORD, [("result", 5)])),
    "turns": lambda: extension.elaboratables.RoundRobin(count=5),
    "priorities": lambda: extension.elaboratables.MultiPriorityEncoder(13, 3),
    "gray_encoder": lambda: extension.coding.GrayEncoder(9),
}
"""Those that CI has no time for."""


def multiport(kind: str) -> Any:
    """A memory of several write ports, made of memories with one."""

    class Ported(Elaboratable):
        def __init__(self) -> None:
            self.memory = getattr(memories, kind)(shape=8, depth=9, init=[3, 1, 4])
            self.reads = [self.memory.read_port() for _ in range(2)]
            self.writes = [self.memory.write_port() for _ in range(3)]

        def elaborate(self, platform: Any) -> Module:
            m = Module()
            m.submodules.memory = self.memory
            return m

    return Ported()


@pytest.mark.parametrize("name", cases(DESIGNS, MORE))
def test_lockstep(name: str) -> None:
    lockstep((DESIGNS | MORE)[name], ports=ports)
