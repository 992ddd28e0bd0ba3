"""Tilings that were measured, kept in the cache: one file for each kind of chip."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sley.abi.cache import unusable
from sley.abi.config import ChipConfig
from sley.abi.errors import SleyError
from sley.abi.types import ElementType
from sley.runtime.cache import cache_folder
from sley.runtime.kernels.epilogue import Epilogue
from sley.runtime.kernels.gemm.placement import Placement
from sley.runtime.kernels.gemm.problem import Problem, Strides
from sley.runtime.kernels.gemm.tiling import Plan, Tiling

VERSION = 2
"""Of the files; those of another version are not read. Raised when older measurements mean nothing any more."""


class TuningError(SleyError):
    """A file of tuned tilings cannot be read or written."""


def tuned_file(config: ChipConfig) -> Path:
    """Where the tilings of a chip are kept."""
    return cache_folder() / "tuned" / f"{config.hash:08x}.json"


def tuned(config: ChipConfig) -> Mapping[Problem, Plan]:
    """Measured tilings of a chip by problem."""
    return _read(config, tuned_file(config))


def keep(config: ChipConfig, problem: Problem, plan: Plan) -> None:
    """Keeps a tiling for all later products of this problem on chips like this. Raises ``TuningError``."""
    path = tuned_file(config)
    known = {**_read(config, path), problem: plan}
    entries = [{"problem": _plain(p), "plan": _plain(q)} for p, q in known.items()]
    part = path.with_suffix(".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps({"version": VERSION, "chip": config.name, "tilings": entries}, indent=1) + "\n")
        part.replace(path)
    except OSError as error:
        raise TuningError(unusable(cache_folder(), error)) from None
    _read.cache_clear()


@cache
def _read(config: ChipConfig, path: Path) -> Mapping[Problem, Plan]:
    if not path.exists():
        return MappingProxyType({})
    try:
        content = json.loads(path.read_text())
        if content["version"] != VERSION:
            return MappingProxyType({})
        found = {_problem(entry["problem"]): _plan(entry["plan"]) for entry in content["tilings"]}
    except (ValueError, KeyError, TypeError) as error:
        raise TuningError(f"{path} is no file of tuned tilings ({error!r}): remove it and tune again") from None
    for plan in found.values():
        if not Placement.of(config, plan.problem, plan.tiling).fits:
            raise TuningError(f"{path} has a tiling that does not fit {config.name}: remove it and tune again")
    return MappingProxyType(found)


def _plain(value: Any) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(json.dumps(asdict(value), default=lambda item: item.value))
    return fields


def _problem(fields: dict[str, Any]) -> Problem:
    epilogue = {**fields["epilogue"], "result": ElementType(fields["epilogue"]["result"])}
    strides = Strides(**fields["strides"]) if fields.get("strides") else None  # older files have none
    dtype = ElementType(fields["dtype"])
    return Problem(**{**fields, "dtype": dtype, "epilogue": Epilogue(**epilogue), "strides": strides})


def _plan(fields: dict[str, Any]) -> Plan:
    tiling = Tiling(**{**fields["tiling"], "grid": tuple(fields["tiling"]["grid"])})
    return Plan(_problem(fields["problem"]), tiling, fields["estimate"])
