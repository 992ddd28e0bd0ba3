import pytest

from sley.abi.config import ChipConfig, preset
from sley.abi.network import COORDINATE_BITS
from sley.abi.placement import Node, command_node, core_hops, core_node, memory_node


def nodes(config: ChipConfig) -> list[Node]:
    return [command_node(config), memory_node(config), *(core_node(config, k) for k in range(config.cores))]


@pytest.mark.parametrize("cores_x", range(1, 9))
@pytest.mark.parametrize("cores_y", range(1, 9))
def test_no_node_twice_and_none_outside(cores_x: int, cores_y: int) -> None:
    config = ChipConfig(cores_x=cores_x, cores_y=cores_y)
    width, height = cores_x + (2 if cores_y == 1 else 1), cores_y
    assert len(nodes(config)) == len(set(nodes(config))) == config.cores + 2
    assert all(0 <= x < width < 1 << COORDINATE_BITS and 0 <= y < height for x, y in nodes(config))


def test_presets() -> None:
    assert nodes(preset("base")) == [(0, 0), (1, 0), (2, 0)]
    assert nodes(preset("quad")) == [(0, 0), (0, 1), (1, 0), (2, 0), (1, 1), (2, 1)]


def test_no_such_core() -> None:
    with pytest.raises(ValueError, match=r"core is 4; it must be in 0\.\.3"):
        core_node(preset("quad"), 4)


def test_hops_to_the_memory_port() -> None:
    assert [core_hops(preset("base"), 0)] == [1]
    assert [core_hops(preset("quad"), core) for core in range(4)] == [2, 3, 1, 2]
