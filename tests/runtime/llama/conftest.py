"""Small models, each in its turn."""

import pytest
from small_llama import SHAPES, random_checkpoint

from sley.runtime.llama.checkpoint import Checkpoint


@pytest.fixture(params=list(SHAPES))
def checkpoint(request: pytest.FixtureRequest) -> Checkpoint:
    return random_checkpoint(SHAPES[request.param], 3)
