"""g2p-en: spelling to phonemes, a GRU that reads letters and one that writes phonemes.

The encoder is a network of its own. The decoder is unrolled: each step is a GRU cell, logits, and the row of the
embedding table that the largest logit names, all on the device.
"""

from __future__ import annotations

import numpy as np

from sley.examples.zoo.subject import Array, Model, Subject, package_file
from sley.runtime.networks.graph import Network, Node, TensorType

FLOAT, INTEGER = np.dtype(np.float32), np.dtype(np.int64)
LETTERS = ["<pad>", "<unk>", "</s>", *"abcdefghijklmnopqrstuvwxyz"]
START, STEPS = 2, 8
"""The number of the phoneme that begins a word; phonemes that are written."""
WORD = "activationist"


def load(weights: str) -> Subject:
    """Reads it. Raises ``BadRequest`` without its package."""
    with np.load(package_file("g2p-en", "2.1.0", "checkpoint20.npz")) as archive:
        values = {name: archive[name] for name in archive.files}
    x = np.array([[LETTERS.index(letter)] for letter in [*WORD, "</s>"]])
    network = network_of(values, len(x))
    return Subject(network, {"letters": x}, {"logits": reference(values, x[:, 0])}, "numpy in float64")


def network_of(values: dict[str, Array], letters: int) -> Network:
    """Letters [letters, 1] to logits [steps, phonemes]."""
    state = values["enc_w_hh"].shape[1]
    constants = {
        "letters of": values["enc_emb"],
        "phonemes of": values["dec_emb"],
        "start": np.array([START]),
        "one step": np.array([1, 1, -1]),
        "row": np.array([1, state]),
        "scores": values["fc_w"],
        "scores bias": values["fc_b"],
    }
    for part in ("enc", "dec"):
        constants |= _gates(part, values)
    nodes = [
        Node("Gather", ("letters of", "letters"), ("read",), {"axis": 0}),
        Node("GRU", ("read", "enc w", "enc r", "enc b"), ("", "state 0"), _attributes(state), "encoder"),
        Node("Gather", ("phonemes of", "start"), ("written 0",), {"axis": 0}),
    ]
    for step in range(STEPS):
        now, behind = f"state {step}", f"state {step + 1}"
        nodes += [
            Node("Reshape", (f"written {step}", "one step"), (f"x {step}",)),
            Node("GRU", (f"x {step}", "dec w", "dec r", "dec b", "", now), ("", behind), _attributes(state), f"{step}"),
            Node("Reshape", (behind, "row"), (f"h {step}",)),
            Node("Gemm", (f"h {step}", "scores", "scores bias"), (f"logits {step}",), {"transB": 1}),
            Node("ArgMax", (f"logits {step}",), (f"phoneme {step}",), {"axis": 1, "keepdims": 0}),
            Node("Gather", ("phonemes of", f"phoneme {step}"), (f"written {step + 1}",), {"axis": 0}),
        ]
    nodes.append(Node("Concat", tuple(f"logits {step}" for step in range(STEPS)), ("logits",), {"axis": 0}))
    inputs = {"letters": TensorType(INTEGER, (letters, 1))}
    outputs = {"logits": TensorType(FLOAT, (STEPS, values["fc_b"].size))}
    return Network("g2p-en", inputs, outputs, nodes[:-2] + nodes[-1:], constants)


def _attributes(state: int) -> dict[str, int]:
    return {"hidden_size": state, "linear_before_reset": 1}


def _gates(part: str, values: dict[str, Array]) -> dict[str, Array]:
    """Weights with the gates in the order of ONNX, update before reset, with an axis of directions."""

    def turned(name: str) -> Array:
        reset, update, new = np.split(values[f"{part}_{name}"], 3)
        return np.concatenate([update, reset, new])[None]

    bias = np.concatenate([turned("b_ih"), turned("b_hh")], 1)
    return {f"{part} w": turned("w_ih"), f"{part} r": turned("w_hh"), f"{part} b": bias}


def reference(values: dict[str, Array], letters: Array) -> Array:
    """Logits of all steps in float64."""
    wide = {name: value.astype(np.float64) for name, value in values.items()}

    def cell(part: str, x: Array, h: Array) -> Array:
        a, b = (wide[f"{part}_w_{k}"] @ v + wide[f"{part}_b_{k}"] for k, v in (("ih", x), ("hh", h)))
        (ar, az, an), (br, bz, bn) = np.split(a, 3), np.split(b, 3)
        reset, update = 1 / (1 + np.exp(-ar - br)), 1 / (1 + np.exp(-az - bz))
        return (1 - update) * np.tanh(an + reset * bn) + update * h

    h = np.zeros(wide["enc_w_hh"].shape[1])
    for letter in letters:
        h = cell("enc", wide["enc_emb"][letter], h)
    found, x = [], wide["dec_emb"][START]
    for _ in range(STEPS):
        h = cell("dec", x, h)
        found.append(wide["fc_w"] @ h + wide["fc_b"])
        x = wide["dec_emb"][found[-1].argmax()]
    return np.stack(found)


MODEL = Model("g2p-en", f"phonemes of a word, {WORD!r}", "`g2p-en` 2.1.0", load)
