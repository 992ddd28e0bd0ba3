"""The list of shapes: what the package has, and lists of users."""

from pathlib import Path

import pytest

from sley.bench.gemm.shapes import Layer, choose, families, load_layers
from sley.driver import BadRequest

HEADER = "family,layer,M,N,K,count\n"


@pytest.mark.parametrize(
    ("family", "macs"),
    [
        ("resnet18", 1_814_073_344),
        ("resnet50", 4_089_184_256),
        ("mobilenetv1", 568_740_352),
        ("bert128", 12 * (128 * 768 * 768 * 12 + 2 * 128 * 128 * 768)),
        ("bert384", 12 * (384 * 768 * 768 * 12 + 2 * 384 * 384 * 768)),
        ("llama-decode", 32 * (4096 * 4096 * 4 + 2 * 2048 * 4096 + 3 * 4096 * 11008) + 32000 * 4096),
        ("llama-prefill", 32 * 2048 * (4096 * 4096 * 4 + 2 * 2048 * 4096 + 3 * 4096 * 11008)),
    ],
)
def test_networks_have_their_published_macs(family: str, macs: int) -> None:
    layers = [layer for layer in load_layers() if layer.family == family]
    assert sum(layer.count * layer.size[0] * layer.size[1] * layer.size[2] for layer in layers) == macs


def test_choice() -> None:
    layers = load_layers()
    assert list(choose(layers)) == layers
    assert [layer.name for layer in choose(layers, ["tiny", "square"], 2)] == ["sq16", "sq24", "qkv", "qkT"]
    assert len(list(choose(layers, limit=1))) == len(families(layers))
    with pytest.raises(BadRequest, match="no family 'vgg'; there are square, skinny"):
        list(choose(layers, ["vgg"]))


def test_own_list(tmp_path: Path) -> None:
    path = tmp_path / "shapes.csv"
    path.write_text(HEADER + "mine,one,1,2,3,4\n")
    assert load_layers(path) == [Layer("mine", "one", (1, 2, 3), 4)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has the columns None; a list of shapes has family, layer"),
        ("layer,M,N,K\n", "has the columns"),
        (HEADER + "mine,one,1,2,3,4\nmine,two,1,2,many,4\n", "line 3: M, N, K and count must be integers"),
        (HEADER + "mine,one,1,2,3\n", "line 2: M, N, K and count must be integers"),
        (HEADER + "mine,one,1,2,0,4\n", "line 2: M, N, K and count must be at least 1"),
    ],
)
def test_bad_lists(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "shapes.csv"
    path.write_text(text)
    with pytest.raises(BadRequest, match=message):
        load_layers(path)
