"""basic-pitch: notes, onsets and pitch contours of two seconds of sound, by convolutions on a constant-Q transform."""

from __future__ import annotations

import numpy as np

from sley.abi.install import extra
from sley.driver import BadRequest
from sley.examples.zoo.subject import Model, Subject, package_file

RATE = 22050
"""Samples a second."""


def load(weights: str) -> Subject:
    """Reads it. Raises ``BadRequest`` without its package, or without onnx."""
    path = package_file("basic-pitch", "0.4.0", "nmp.onnx")
    try:
        import onnx
        from onnx.reference import ReferenceEvaluator
    except ImportError as error:
        raise BadRequest(f"basic-pitch is a model of onnx ({error}): {extra('onnx')}") from None
    from sley.runtime.frameworks.from_onnx.importer import read_model

    model = onnx.load(path)
    (sound,) = model.graph.input
    samples = sound.type.tensor_type.shape.dim[1].dim_value
    time = np.arange(samples) / RATE
    notes = sum(
        np.sin(2 * np.pi * pitch * time) * np.exp(-3 * (time - start)) * (time >= start) for start, pitch in CHORD
    )
    x = (np.asarray(notes) / len(CHORD)).astype(np.float32).reshape(1, samples, 1)
    wanted = ReferenceEvaluator(model).run(None, {sound.name: x})
    names = [output.name for output in model.graph.output]
    expected = dict(zip(names, wanted, strict=True))
    return Subject(read_model(model), {sound.name: x}, expected, "onnx's reference implementation")


CHORD = ((0.1, 261.63), (0.5, 329.63), (0.9, 392.0), (1.3, 523.25))
"""Begins, in seconds, and pitches of the notes that it hears."""

MODEL = Model("basic-pitch", "notes of two seconds of sound", "`basic-pitch` 0.4.0", load)
