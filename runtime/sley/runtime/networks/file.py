"""Networks in files: ``model.sley``, a zip archive with ``network.json`` and an array in numpy's format for each
constant.

The text says which version it is and what the arrays' digest is, so what is damaged or from another version is refused.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from sley.driver import BadRequest
from sley.runtime.device.buffer import BF16
from sley.runtime.networks.graph import Array, Network, Node, TensorType
from sley.runtime.networks.region import Region, Step

FORMAT, VERSION = "sley network", 2
TEXT = "network.json"


def save_network(network: Network, path: str | Path) -> None:
    """Writes a network to a file, in place of what is there."""
    text, arrays = _written(network)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(TEXT, text)
        for name, data in arrays.items():
            archive.writestr(name, data)


def digest_of(network: Network) -> str:
    """Of all that a file of the network says: operators, shapes and the values of constants."""
    return hashlib.sha256(_written(network)[0].encode()).hexdigest()


def _written(network: Network) -> tuple[str, dict[str, bytes]]:
    """The text, which has the digests of the arrays, and the arrays by name."""
    arrays: dict[str, bytes] = {}

    def array(value: Array) -> dict[str, str]:
        name = f"arrays/{len(arrays)}.npy"
        stream = io.BytesIO()
        kind, plain = str(value.dtype), value.view(np.uint16) if value.dtype == BF16 else value
        np.save(stream, np.ascontiguousarray(plain), allow_pickle=False)
        arrays[name] = stream.getvalue()
        return {"array": name, "dtype": kind, "digest": hashlib.sha256(arrays[name]).hexdigest()}

    def written(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return array(value)
        if isinstance(value, Region):
            steps = [[s.operator, s.operands, s.numbers] for s in value.steps]
            return {"inputs": value.inputs, "steps": steps, "result": value.result}
        return value

    text = {
        "format": FORMAT,
        "version": VERSION,
        "name": network.name,
        "inputs": _types(network.inputs),
        "outputs": _types(network.outputs),
        "types": _types(network.types),
        "constants": {name: array(np.asarray(value)) for name, value in network.constants.items()},
        "nodes": [
            [n.operator, n.inputs, n.outputs, {k: written(v) for k, v in n.attributes.items()}, n.name, n.version]
            for n in network.nodes
        ],
    }
    return json.dumps(text), arrays


def load_network(path: str | Path) -> Network:
    """The network in a file. Raises ``BadRequest`` for a file that is none, is damaged, or of another version."""
    try:
        with zipfile.ZipFile(path) as archive:
            text = json.loads(archive.read(TEXT))
            data = {name: archive.read(name) for name in archive.namelist() if name != TEXT}
    except (zipfile.BadZipFile, KeyError, json.JSONDecodeError) as error:
        raise BadRequest(f"{path} is no network of Sley: {error}; sley compile makes one") from None
    if text.get("format") != FORMAT or text.get("version") != VERSION:
        found = f"{text.get('format')!r} of version {text.get('version')}"
        raise BadRequest(f"{path} is {found}; this is {FORMAT!r} of version {VERSION}: compile the model again")

    def array(value: dict[str, str]) -> Array:
        content = data.get(value["array"], b"")
        if hashlib.sha256(content).hexdigest() != value["digest"]:
            raise BadRequest(f"{path} is damaged: {value['array']} has another digest; compile the model again")
        found: Array = np.load(io.BytesIO(content), allow_pickle=False)
        return found.view(BF16) if value["dtype"] == str(BF16) else found

    def read(value: Any) -> Any:
        if isinstance(value, dict) and "array" in value:
            return array(value)
        if isinstance(value, dict):
            steps = tuple(Step(name, tuple(operands), tuple(numbers)) for name, operands, numbers in value["steps"])
            return Region(value["inputs"], steps, value["result"])
        return value

    nodes = [
        Node(operator, tuple(inputs), tuple(outputs), {k: read(v) for k, v in attributes.items()}, name, version)
        for operator, inputs, outputs, attributes, name, version in text["nodes"]
    ]
    inputs, outputs, types = (_read_types(text[part]) for part in ("inputs", "outputs", "types"))
    constants = {name: array(value) for name, value in text["constants"].items()}
    return Network(text["name"], inputs, outputs, nodes, constants, types)


def _types(types: dict[str, TensorType]) -> dict[str, Any]:
    return {name: [str(type.dtype), type.shape] for name, type in types.items()}


def _read_types(text: dict[str, Any]) -> dict[str, TensorType]:
    return {
        name: TensorType(BF16 if dtype == str(BF16) else np.dtype(dtype), None if shape is None else tuple(shape))
        for name, (dtype, shape) in text.items()
    }
