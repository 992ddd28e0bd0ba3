"""Files that describe a space: TOML, or Python that makes a ``Space`` or the same tables."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sley.abi.config import configuration
from sley.driver import BadRequest
from sley.explore.costs.workload import SourceWorkload, Workload, workload_of
from sley.explore.space.space import Space

SECTIONS = ("chip", "memory", "schedule")
KEYS = ("base", "networks", "objectives", *SECTIONS)
RANGE = "{from = 512, to = 4096, times = 2} or {from = 8, to = 64, step = 8}"


def read_space(path: Path) -> tuple[Space, tuple[str, ...]]:
    """The space, and the objectives that the file names. Raises ``BadRequest``, ``ConfigError``."""
    try:
        text = path.read_text()
        content = _python(path, text) if path.suffix == ".py" else tomllib.loads(text)
    except FileNotFoundError:
        raise BadRequest(f"there is no file {path}") from None
    except tomllib.TOMLDecodeError as error:
        raise BadRequest(f"{path} is no TOML: {error}") from None
    unknown = [key for key in content if key not in KEYS]
    if unknown:
        raise BadRequest(f"{path} has {unknown[0]!r}; a space has {', '.join(KEYS)}")
    values: dict[str, tuple[Any, ...]] = {}
    same: dict[str, str] = {}
    for section in SECTIONS:
        for name, given in content.get(section, {}).items():
            if section == "chip" and isinstance(given, str):
                same[name] = given
            else:
                values[name] = _values(name, given)
    base = content.get("base", "base")
    if str(base).endswith(".json"):
        base = str(path.parent / base)
    source = text if path.suffix == ".py" else ""
    workloads = tuple(_workload(network, source, path.parent) for network in content.get("networks", ()))
    return Space(configuration(base), values, workloads, same), tuple(content.get("objectives", ()))


def _python(path: Path, text: str) -> dict[str, Any]:
    """The names of a file of Python that a space has."""
    names: dict[str, Any] = {"__name__": "space", "__file__": str(path)}
    exec(compile(text, str(path), "exec"), names)
    return {key: names[key] for key in KEYS if key in names}


def _workload(network: Any, source: str, folder: Path) -> Workload:
    if callable(network):
        return SourceWorkload(network.__name__, source)
    return workload_of(network, folder)


def _values(name: str, given: Any) -> tuple[Any, ...]:
    if isinstance(given, list | tuple):
        return tuple(tuple(one) if isinstance(one, list) else one for one in given)
    if isinstance(given, Mapping):
        return _range(name, dict(given))
    return (given,)


def _range(name: str, given: dict[str, Any]) -> tuple[int, ...]:
    try:
        first, last = given.pop("from"), given.pop("to")
        ((how, by),) = given.items()
        if how not in ("step", "times") or not all(isinstance(n, int) for n in (first, last, by)) or by < 1:
            raise ValueError
        if first > last or (how == "times" and (by < 2 or first < 1)):
            raise ValueError
    except (KeyError, ValueError):
        raise BadRequest(f"{name} is no range: write {RANGE}") from None
    found = [first]
    while (after := found[-1] + by if how == "step" else found[-1] * by) <= last:
        found.append(after)
    return tuple(found)
