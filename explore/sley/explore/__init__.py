"""Exploration: what networks cost on chips of a space, by the exact model; ``cost`` for whoever searches on their own.

A name is imported from where it is defined when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sley.explore.area.model import Area, area_of
    from sley.explore.costs.cost import Cost, cost
    from sley.explore.space.space import Design, Space
else:
    _HOMES = {
        "Area": "sley.explore.area.model",
        "Cost": "sley.explore.costs.cost",
        "Design": "sley.explore.space.space",
        "Space": "sley.explore.space.space",
        "area_of": "sley.explore.area.model",
        "cost": "sley.explore.costs.cost",
    }

    def __getattr__(name):
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_HOMES[name]), name)


__all__ = ["Area", "Cost", "Design", "Space", "area_of", "cost"]
