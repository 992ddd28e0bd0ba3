"""Cycles of the small network with softplus: made of functions of ``base``, and by the unit of ``examples/softplus``.

Install that first: ``pip install -e examples/softplus``. ``python examples/changes/function_unit.py``
"""

import tempfile
from pathlib import Path

from network import ENGINE, cycles

from sley.abi import PRESETS
from sley.runtime import tile
from sley.runtime.nn.mapping import in_fp32


def softplus_tile(x: tile.Tile) -> tile.Tile:
    """softplus of a tile by the unit of that name."""
    return tile.apply("softplus", x)


def softplus(c: object, node: object, x: object) -> object:
    """The operator of networks."""
    return in_fp32("softplus", softplus_tile, c.array(x), stream=c.stream)


if __name__ == "__main__":
    base = PRESETS["base"]
    config = base.replace(name="own", vector_functions=(*base.vector_functions, "softplus"))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "own.json"
        file.write_text(config.to_json())
        engine = ENGINE.replace("base", str(file), 1)
        print(f"made of functions: {cycles(engine, 'Softplus'):,} cycles")
        print(f"by its own unit: {cycles(engine, 'Softplus', operators={'Softplus': softplus}):,} cycles")
