"""What travels on the network as C: constants of ``sley.hw.noc.messages`` for the twins."""

from typing import Any

from amaranth.lib import data

from sley.hw.noc.access import AccessError
from sley.hw.noc.messages import LaunchSizes, LaunchWord, RequestKind, Tag
from sley.sim.model.compiled.header import enumeration


def messages() -> str:
    """The text of ``messages.h``."""
    enums: dict[str, Any] = {"LAUNCH": LaunchWord, "KIND": RequestKind, "TAG": Tag, "ACCESS": AccessError}
    lines = ["// Made from sley.hw.noc by sley.sim.model.cycles.messages.", "#pragma once"]
    lines += [enumeration(prefix, enum) for prefix, enum in enums.items()]
    lines += [f"#define LAUNCH_WORDS {len(LaunchWord)}", *_fields("SIZES", data.Layout.cast(LaunchSizes))]
    return "\n".join(lines) + "\n"


def _fields(prefix: str, layout: data.Layout) -> list[str]:
    return [
        f"#define {prefix}_{str(name).upper()}(w) ((uint32_t)(w) >> {field.offset} & {(1 << field.width) - 1:#x}u)"
        for name, field in layout
    ]
