"""Opens engines by URL: ``fast:base?memory=128M`` is engine ``fast``, given ``base`` and the option ``memory``."""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import cast
from urllib.parse import parse_qsl

from sley.abi.sizes import parse_size
from sley.abi.transport import EngineError, Transport

GROUP = "sley.engines"


@cache
def engines() -> dict[str, EntryPoint]:
    """Engines that are installed, by name."""
    return {point.name: point for point in entry_points(group=GROUP)}


def parse_url(url: str) -> tuple[str, str, dict[str, str]]:
    """Engine, what it is given, and options. Sizes such as ``memory=64M`` become plain numbers."""
    if not isinstance(url, str):
        raise EngineError(f"{url!r} names no engine; write for example fast:base or pysim:nano?memory=4M")
    head, _, query = url.partition("?")
    name, _, spec = head.partition(":")
    if not name:
        raise EngineError(f"{url!r} names no engine; write for example fast:base or pysim:nano?memory=4M")
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True) if query else []
    except ValueError:
        raise EngineError(f"{query!r} is no list of options; write for example memory=64M&latency=32") from None
    options = dict(pairs)
    if "memory" in options:
        options["memory"] = str(_size(options["memory"]))
    return name, spec, options


def _size(text: str) -> int:
    try:
        size = parse_size(text)
    except ValueError:
        size = 0
    if not size:
        raise EngineError(f"memory={text} is no size; write bytes, or a number with K, M or G")
    return size


def open_transport(url: str) -> Transport:
    """The engine behind ``url``. Raises ``EngineError`` when there is none or it cannot run here."""
    name, spec, options = parse_url(url)
    found = engines()
    if name not in found:
        raise EngineError(f"no engine {name!r}; installed are {', '.join(sorted(found)) or 'none'}")
    try:
        factory = found[name].load()
    except ImportError as error:
        raise EngineError(f"engine {name} cannot be loaded: {error}") from error
    try:
        return cast(Transport, factory(spec or "base", options))
    except (OSError, ValueError, RuntimeError) as error:
        raise EngineError(f"engine {url} cannot be opened: {error}") from error
