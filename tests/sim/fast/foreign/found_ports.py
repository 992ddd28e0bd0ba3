"""The ports of designs that are no components: signals, records and structures among their attributes."""

import warnings
from collections.abc import Iterator
from typing import Any

from amaranth.hdl import Elaboratable, Record, Signal, Value, ValueCastable
from amaranth.lib import wiring

PLAIN = (str, int, float, bytes, type(None), type)


def found_ports(design: Any) -> dict[str, Signal]:
    """Every public signal of a design by its path of attributes. Which way each goes is RTLIL's to find out."""
    found: dict[str, Signal] = {}
    known: set[int] = set()
    for name, signal in _signals("", _attributes(design), set()):
        if id(signal) not in known:
            known.add(id(signal))
            found[name] = signal
    return found


def _attributes(thing: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(thing).items() if not name.startswith("_")}


def _signals(path: str, things: dict[Any, Any], seen: set[int]) -> Iterator[tuple[str, Signal]]:
    for key, thing in things.items():
        name = f"{path}__{key}" if path else str(key)
        if isinstance(thing, Signal):
            yield name, thing
        elif isinstance(thing, PLAIN) or id(thing) in seen:
            continue
        else:
            seen.add(id(thing))
            yield from _inside(name, thing, seen)


def _inside(name: str, thing: Any, seen: set[int]) -> Iterator[tuple[str, Signal]]:
    if isinstance(thing, Record):
        yield from _signals(name, thing.fields, seen)
    elif isinstance(thing, ValueCastable):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = Value.cast(thing)
        if isinstance(value, Signal):
            yield name, value
    elif isinstance(thing, dict):
        yield from _signals(name, thing, seen)
    elif isinstance(thing, list | tuple):
        yield from _signals(name, dict(enumerate(thing)), seen)
    elif isinstance(getattr(thing, "signature", None), wiring.Signature):
        for parts, _, value in thing.signature.flatten(thing):
            yield from _signals(name, {"__".join(map(str, parts)): value}, seen)
    elif hasattr(thing, "__dict__") and not isinstance(thing, Elaboratable | Value):
        yield from _signals(name, _attributes(thing), seen)
