"""Emission of a component as text: its own module, and one for each component that it shares."""

import gc
import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from amaranth.hdl import Fragment, Value
from amaranth.lib import wiring

from sley.hw.elaboration.shared import EmissionPlatform, flat_ports

TOP = "sley"

Ports = dict[str, tuple[Value, None]]
"""Ports of a module by name."""

Convert = Callable[[str, Fragment, Ports], str]
"""Makes the text of a module from its name, what it was elaborated to, and its ports."""


class Emission:
    """Converts a component and all that it shares, each module once.

    Parameters
    ----------
    platform
        What to elaborate for; it collects what is shared.
    convert
        Makes the text of one module.
    beside
        Whether shared modules are converted in processes of their own, beside the module that shares them. These are
        forked: a process with threads must not ask for it.
    """

    def __init__(self, platform: EmissionPlatform, convert: Convert, beside: bool = False) -> None:
        self._platform, self._convert = platform, convert
        self._beside = beside and "fork" in multiprocessing.get_all_start_methods()

    def texts(self, component: wiring.Component, name: str = TOP) -> dict[str, str]:
        """The text of each module by its name: the component's first, then in order what it shares."""
        self._platform.share(name, component)
        with no_garbage_collection():
            return self._modules() | self._platform.written

    def _modules(self) -> dict[str, str]:
        """The modules that are pending, and what they share."""
        texts: dict[str, str] = {}
        pending, self._platform.pending = self._platform.pending, []
        for name, part in pending:
            fragment = Fragment.get(part, self._platform)
            ports: Ports = {port: (value, None) for port, (value, _) in flat_ports(part).items()}
            if self._beside:
                children = [_Child(self, shared) for shared in self._platform.pending]
                self._platform.pending = []
                try:
                    texts[name] = self._convert(name, fragment, ports)
                    for child in children:
                        modules, written = child.result()
                        texts |= modules
                        self._platform.written |= written
                finally:
                    for child in children:
                        child.close()
            else:
                texts[name] = self._convert(name, fragment, ports)
                texts |= self._modules()
        return texts

    def alone(self, module: tuple[str, wiring.Component]) -> tuple[dict[str, str], dict[str, str]]:
        """One pending module and what it shares, in a process forked for it; and what the platform wrote."""
        self._platform.pending = [module]
        return self._modules(), self._platform.written


class _Child:
    """A forked process that converts one module."""

    def __init__(self, emission: Emission, module: tuple[str, wiring.Component]) -> None:
        context = multiprocessing.get_context("fork")
        self._name = module[0]
        self._answer, answer = context.Pipe(duplex=False)

        def convert() -> None:
            self._answer.close()  # so that it notices if nobody waits for its answer any more
            with suppress(BrokenPipeError):
                answer.send(emission.alone(module))

        self._process = context.Process(target=convert)
        self._process.start()
        answer.close()

    def result(self) -> tuple[dict[str, str], dict[str, str]]:
        try:
            result: tuple[dict[str, str], dict[str, str]] = self._answer.recv()
        except EOFError:
            self._process.join()
            raise RuntimeError(f"module {self._name} could not be converted; the reason is above") from None
        self._process.join()
        return result

    def close(self) -> None:
        """Nobody waits for the answer any more."""
        self._answer.close()


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Without the search for garbage, which takes long among a netlist's millions of objects."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
