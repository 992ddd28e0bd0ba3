"""What is changed in a netlist is written, and nothing else is."""

import json
from pathlib import Path

import pytest

from sley.fpga.netlist.edit import edited

MODULES = {
    "top": {"attributes": {"top": "1"}, "cells": {}},
    "plain": {"cells": {}},
    "LUT4": {"attributes": {"blackbox": "1"}, "cells": {}, "netnames": {}},
}


def netlist(folder: Path) -> Path:
    path = folder / "netlist.json"
    path.write_text(json.dumps({"creator": "Yosys", "modules": MODULES}))
    return path


def test_modules_are_written_and_cells_of_the_family_are_left_out(tmp_path: Path) -> None:
    path = netlist(tmp_path)
    with edited(path) as modules:
        assert modules == [MODULES["top"], MODULES["plain"]]
        modules[1]["cells"]["new"] = {"type": "LUT4"}
    written = {**MODULES, "plain": {"cells": {"new": {"type": "LUT4"}}}}
    assert json.loads(path.read_text()) == {"creator": "Yosys", "modules": written}


def test_nothing_is_written_after_an_error(tmp_path: Path) -> None:
    path = netlist(tmp_path)
    before = path.read_text()
    with pytest.raises(KeyError, match="absent"), edited(path) as modules:
        del modules[0]["cells"], modules[0]["absent"]
    assert path.read_text() == before
