"""Random numbers of generators: what they repeat, keep and refuse."""

import copy
import pickle
from typing import Any

import pytest

from sley.abi.install import extra

torch = pytest.importorskip("torch", reason=f"PyTorch is not installed: {extra('torch')}")
pytest.importorskip("onnxscript", reason=f"onnxscript is not installed: {extra('torch')}")
pytest.importorskip("sley.runtime.frameworks.torch")


def drawn(generator: Any = None) -> list[float]:
    found: list[float] = torch.randn(5, device="sley", generator=generator).tolist()
    return found


def test_a_generator_repeats_itself() -> None:
    """By its seed, its state and its clone; it knows how often it was asked; the default one draws by itself."""
    torch.manual_seed(11)
    first = drawn()
    own = torch.Generator(device="sley")
    assert own.device == torch.device("sley:0")
    assert own.manual_seed(7) is own
    one, state, two = drawn(own), own.get_state(), drawn(own)
    assert len({*one, *two}) == 10
    assert (own.initial_seed(), own.get_offset()) == (7, 2)
    other = torch.Generator("sley")
    other.set_state(state)
    assert drawn(other) == two
    assert drawn(other.manual_seed(7)) == one
    assert drawn(pickle.loads(pickle.dumps(other))) == two
    assert drawn(other.clone_state()) == two
    assert drawn(other.manual_seed(8)) not in (one, two)
    assert own.seed() == own.initial_seed() != 7
    second = drawn()
    torch.manual_seed(11)
    assert [drawn(), drawn()] == [first, second]
    assert drawn(torch.Generator("sley").manual_seed(11)) == first, "of the same seed as the default one"


@pytest.mark.parametrize(
    "draw",
    [
        lambda g: torch.rand(6, device="sley", generator=g),
        lambda g: torch.randint(100, (6,), device="sley", generator=g),
        lambda g: torch.randperm(6, device="sley", generator=g),
        lambda g: torch.bernoulli(torch.full((20,), 0.5, device="sley"), generator=g),
        lambda g: torch.multinomial(torch.ones(9, device="sley"), 4, generator=g),
        lambda g: torch.normal(torch.ones(3, device="sley"), 2.0, generator=g),
        lambda g: torch.empty(3, device="sley").exponential_(generator=g),
    ],
)
def test_operators_draw_from_it(draw: Any) -> None:
    own = torch.Generator("sley").manual_seed(3)
    one, two = draw(own).tolist(), draw(own).tolist()
    assert one != two
    assert draw(own.manual_seed(3)).tolist() == one


def test_states_of_the_device() -> None:
    """``fork_rng`` leaves no trace; dropout draws from the default generator."""
    torch.sley.manual_seed(5)
    assert torch.sley.initial_seed() == torch.sley.default_generator().initial_seed() == 5
    state = torch.sley.get_rng_state()
    with torch.random.fork_rng():
        inside = drawn()
    assert drawn() == inside
    torch.sley.set_rng_state(state)
    assert drawn() == inside
    torch.sley.set_rng_state_all(torch.sley.get_rng_state_all())
    x = torch.ones(64, device="sley")
    torch.sley.manual_seed(5)
    one, two = torch.dropout(x, 0.5, True).tolist(), torch.dropout(x, 0.5, True).tolist()
    assert one != two
    torch.sley.manual_seed(5)
    assert torch.dropout(x, 0.5, True).tolist() == one
    torch.sley.seed()
    assert torch.sley.initial_seed() != 5


def test_what_is_refused() -> None:
    """Generators of the device for tensors of the host, states of another size; those of the host draw a seed."""
    own = torch.Generator("sley")
    with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator but found 'sley'"):
        torch.rand(3, generator=own)
    with pytest.raises(RuntimeError, match="a random state of 7 bytes; those of the device sley have 16"):
        own.set_state(torch.zeros(7, dtype=torch.uint8))
    with pytest.raises(RuntimeError, match="device sley:3; there is sley:0"):
        torch.Generator("sley:3")
    host = torch.Generator().manual_seed(1)
    assert drawn(host) != drawn(host)
    assert drawn(host.manual_seed(1)) == drawn(copy.copy(torch.Generator().manual_seed(1)))
