"""Networks in files: what comes back is what was written, for another device; what is no such file is refused."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from small_network import no_fold, random, small_network

from sley.driver import BadRequest
from sley.runtime import Device
from sley.runtime.networks.compilation import compile_network
from sley.runtime.networks.file import TEXT, load_network, save_network
from sley.runtime.networks.passes.unused import leave_out_unused


def test_round_trip(tmp_path: Path) -> None:
    network, path = leave_out_unused(small_network()), tmp_path / "small.sley"
    x = random(21, 2, 3, 5, 7)
    with Device.open("model:base?memory=32M") as device:
        compiled = compile_network(network, device, no_fold)
        right = compiled(x)["y"]
        compiled.save(path)
    again = load_network(path)
    assert any(node.operator == "Region" for node in again.nodes)
    with Device.open("model:quad?memory=32M") as device:
        np.testing.assert_array_equal(compile_network(again, device, no_fold)(x)["y"], right)
    save_network(again, path)
    assert str(load_network(path)) == str(again)


def test_what_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "small.sley"
    path.write_text("no archive")
    with pytest.raises(BadRequest, match=r"small\.sley is no network of Sley"):
        load_network(path)
    save_network(leave_out_unused(small_network()), path)
    with zipfile.ZipFile(path) as archive:
        text, parts = json.loads(archive.read(TEXT)), {name: archive.read(name) for name in archive.namelist()}
    parts.pop(TEXT)

    def write(text: dict[str, object], parts: dict[str, bytes]) -> None:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(TEXT, json.dumps(text))
            for name, data in parts.items():
                archive.writestr(name, data)

    write({**text, "version": 99}, parts)
    with pytest.raises(BadRequest, match="of version 99; this is 'sley network' of version 2"):
        load_network(path)
    name = next(iter(parts))
    write(text, {**parts, name: parts[name][:-1] + b"?"})
    with pytest.raises(BadRequest, match=r"small\.sley is damaged: arrays/0\.npy"):
        load_network(path)
