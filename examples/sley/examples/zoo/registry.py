"""The models of the zoo by name, in the order of its list."""

from __future__ import annotations

from sley.driver import BadRequest
from sley.examples.zoo.models import basic_pitch, bert, digits, g2p, light, smollm2
from sley.examples.zoo.subject import Model

MODELS: dict[str, Model] = {
    model.name: model
    for model in (*light.MODELS, bert.MODEL, basic_pitch.MODEL, g2p.MODEL, *digits.MODELS, smollm2.MODEL)
}


def model_of(name: str) -> Model:
    """Raises ``BadRequest`` for a name that the zoo has not."""
    if name not in MODELS:
        raise BadRequest(f"the zoo has no {name!r}; it has {', '.join(MODELS)}")
    return MODELS[name]
