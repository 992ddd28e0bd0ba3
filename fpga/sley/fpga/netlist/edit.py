"""Netlists as Yosys leaves them in JSON, read, changed and written."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def edited(netlist: Path) -> Iterator[list[dict[str, Any]]]:
    """The modules of ``netlist`` but those that are cells of the family; what is changed in them is written."""
    design = json.loads(netlist.read_text())
    yield [module for module in design["modules"].values() if "blackbox" not in module.get("attributes", {})]
    netlist.write_text(json.dumps(design))
