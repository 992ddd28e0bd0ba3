import pytest

from sley.abi.config import ChipConfig, preset
from sley.hw.noc.placement import command_node, core_node, memory_node, mesh_size, used_nodes


@pytest.mark.parametrize("cores_x", range(1, 9))
@pytest.mark.parametrize("cores_y", range(1, 9))
def test_no_node_twice_and_none_outside(cores_x: int, cores_y: int) -> None:
    config = ChipConfig(cores_x=cores_x, cores_y=cores_y)
    width, height = mesh_size(config)
    nodes = used_nodes(config)
    assert len(nodes) == len(set(nodes)) == config.cores + 2
    assert all(0 <= x < width <= 16 and 0 <= y < height <= 16 for x, y in nodes)


def test_presets() -> None:
    assert mesh_size(preset("base")) == (3, 1)
    assert used_nodes(preset("base")) == [(0, 0), (1, 0), (2, 0)]
    quad = preset("quad")
    assert mesh_size(quad) == (3, 2)
    assert (command_node(quad), memory_node(quad)) == ((0, 0), (0, 1))
    assert [core_node(quad, k) for k in range(4)] == [(1, 0), (2, 0), (1, 1), (2, 1)]


def test_no_such_core() -> None:
    with pytest.raises(ValueError, match=r"core is 4; it must be in 0\.\.3"):
        core_node(preset("quad"), 4)
