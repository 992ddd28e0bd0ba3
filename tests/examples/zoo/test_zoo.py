"""The zoo: its page is current, its models compile and agree, and what is missing is named."""

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from sley.driver import BadRequest
from sley.examples.zoo.command import zoo_app
from sley.examples.zoo.measure import measure
from sley.examples.zoo.models import basic_pitch, bert, digits, g2p, light
from sley.examples.zoo.page import zoo_page
from sley.examples.zoo.registry import MODELS, model_of
from sley.examples.zoo.results import Result, keep, read_results
from sley.examples.zoo.subject import Subject, agreement, package_file
from sley.runtime import Device
from sley.runtime.networks.graph import Network

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "zoo.md"
CYCLES = "model:base?memory=1G&cycles=on&values=off"
BOTH = "model:base?memory=64M&cycles=on"


def installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def run(subject: Subject, engine: str, precision: str = "medium") -> Result:
    with Device.open(engine) as device:
        return measure(device, "model", subject, precision, "package", engine, launches=True)


def test_the_page_is_what_was_kept() -> None:
    assert PAGE.read_text() == zoo_page(read_results())


def test_kept_results_are_of_the_zoo() -> None:
    for result in read_results().values():
        model = MODELS[result.model]
        assert result.precision in model.precisions
        assert result.weights in model.weights
        assert 0 < result.share <= 1
        assert result.after <= result.before


def test_the_smallest_model_is_as_the_page_says() -> None:
    pytest.importorskip("sklearn", reason="the extra demo is not installed")
    found, kept = run(digits.load("MLP", "package"), BOTH), read_results()["digits-mlp medium package"]
    for name in ("cycles", "bound", "launches", "weights_bytes", "before", "after"):
        assert getattr(found, name) == getattr(kept, name), name
    assert found.error is not None
    assert found.error < 5e-3
    assert sum(cost.macs for cost in found.costs) == 360 * (64 * 64 + 64 * 10)
    assert len(found.costs) == found.launches


@pytest.mark.slow
def test_squeezenet_is_as_the_page_says() -> None:
    pytest.importorskip("onnx", reason="the extra onnx is not installed")
    found, kept = run(light.load("squeezenet", "package"), CYCLES), read_results()["squeezenet medium package"]
    assert (found.cycles, found.bound, found.after) == (kept.cycles, kept.bound, kept.after)


@pytest.mark.slow
def test_a_layer_of_bert_agrees_with_pytorch() -> None:
    pytest.importorskip("torch", reason="the extra torch is not installed")
    found = run(bert.load("random", layers=1), "model:base?memory=256M&cycles=on")
    assert found.error is not None
    assert found.error < 5e-3
    assert found.share > 0.83


@pytest.mark.slow
@pytest.mark.skipif(not installed("g2p-en"), reason="g2p-en is not installed")
def test_g2p_writes_the_same_phonemes() -> None:
    found = run(g2p.load("package"), BOTH, "highest")
    assert found.error is not None
    assert found.error < 1e-5


def test_a_decoder_of_random_weights_agrees() -> None:
    """The network of g2p-en, a little smaller, with a state that its package has not."""
    pytest.importorskip("onnx", reason="the extra onnx is not installed")
    random = np.random.default_rng(1)
    values = {"fc_w": random.standard_normal((9, 16)), "fc_b": random.standard_normal(9)}
    for part, rows in (("enc", 29), ("dec", 9)):
        shapes = {"emb": (rows, 8), "w_ih": (48, 8), "w_hh": (48, 16), "b_ih": (48,), "b_hh": (48,)}
        values |= {f"{part}_{name}": random.standard_normal(shape) / 2 for name, shape in shapes.items()}
    values = {name: value.astype(np.float32) for name, value in values.items()}
    x = np.array([[3], [5], [2]])
    wanted = {"logits": g2p.reference(values, x[:, 0])}
    found = run(Subject(g2p.network_of(values, len(x)), {"letters": x}, wanted, "numpy"), BOTH, "highest")
    assert found.error is not None
    assert found.error < 1e-5


def test_packages_that_are_missing_are_named() -> None:
    with pytest.raises(BadRequest, match=r"pip install --no-deps no-such-package==1\.0"):
        package_file("no-such-package", "1.0", "weights.npz")
    if not installed("basic-pitch"):
        with pytest.raises(BadRequest, match="basic-pitch is not installed"):
            basic_pitch.load("package")


def test_names_that_are_not_known() -> None:
    with pytest.raises(BadRequest, match="the zoo has no 'resnet51'; it has resnet50, "):
        model_of("resnet51")
    result = CliRunner().invoke(zoo_app, ["run", "digits-mlp", "--precision", "low"])
    assert isinstance(result.exception, BadRequest)
    assert "precision 'low' of digits-mlp; it has medium, high, highest" in str(result.exception)


def test_list() -> None:
    result = CliRunner().invoke(zoo_app, ["list"])
    assert result.exit_code == 0
    assert all(name in result.stdout for name in ("resnet50", "bert", "smollm2"))


def test_agreement() -> None:
    network = Network("n", {}, {}, [], {})
    subject = Subject(network, {}, {"y": np.array([[1.0, 4.0], [2.0, 0.0]])}, "here", np.array([1, 1]))
    worst, classes = agreement({"y": np.array([[1.0, 3.0], [2.0, 0.0]], np.float32)}, subject)
    assert worst == 0.25
    assert classes == "1 of 2 right, 2 as the reference"


def test_a_run_without_values_keeps_what_one_with_values_found(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    one = Result("m", "high", "package", "e", 10, 5, "", 1, 0.1, 1, 2, 1, 0.5, "", "numpy")
    keep(one, file)
    keep(Result("m", "high", "package", "e", 8, 5, "", 1, 0.1, 1, 2, 1), file)
    (kept,) = read_results(file).values()
    assert (kept.cycles, kept.error, kept.reference) == (8, 0.5, "numpy")
