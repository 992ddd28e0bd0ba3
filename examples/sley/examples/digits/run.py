"""The main job of the demo: handwritten digits on the device, compared with the golden model in every bit."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from sley.abi import install
from sley.driver import EngineError, SleyError, parse_url
from sley.examples.digits.inference import DeviceNetwork
from sley.examples.digits.layers import Array, Convolution, Dense
from sley.examples.digits.quantise import QuantisedNetwork, quantise
from sley.examples.digits.training import Network
from sley.runtime import Device

DEFAULT_ENGINE = "fast:base"
FALLBACK_ENGINE = "pysim:nano?memory=4M"
FALLBACK_IMAGES = 2
TEST_IMAGES = 360
BATCHES = 4
EPOCHS = {"MLP": 20, "CNN": 8}
CALIBRATION_IMAGES = 500


class DemoError(SleyError):
    """The demo cannot run, or its results are wrong."""


@dataclass(frozen=True)
class Digits:
    """8 x 8 images with values 0 to 1, and the digits they show."""

    train: Array
    train_labels: Array
    test: Array
    test_labels: Array


@dataclass
class Result:
    """What one network achieved on the device."""

    name: str
    images: int
    fp32_correct: int
    int8_correct: int
    cycles: int
    macs: int
    seconds: float
    layers: int


def load_digits() -> Digits:
    """The UCI digits that come with scikit-learn, in a fixed random order."""
    try:
        from sklearn import datasets
    except ImportError:
        raise DemoError(f"the demo needs scikit-learn for its digits: {install.extra('demo')}") from None
    images, labels = datasets.load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    images, labels = (images[order] / 16).astype(np.float32).reshape(-1, 8, 8, 1), labels[order]
    cut = len(images) - TEST_IMAGES
    return Digits(images[:cut], labels[:cut], images[cut:], labels[cut:])


def networks() -> list[Network]:
    mlp = Network("MLP", [Dense(64, 64), Dense(64, 10, relu=False)])
    convolutions = [Convolution(8, 1, 16), Convolution(8, 16, 32, stride=2)]
    return [mlp, Network("CNN", [*convolutions, Dense(512, 10, relu=False)])]


def run_demo(url: str | None, images: int | None, console: Console) -> list[Result]:
    """Everything: train, quantise, run, compare, print. Raises ``SleyError`` when something is wrong."""
    digits = load_digits()
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # comes with scikit-learn

    device, url, fallback = _open(url, console)
    count = min(images or (FALLBACK_IMAGES if fallback else TEST_IMAGES), TEST_IMAGES)
    with device, TemporaryDirectory() as folder:
        config = device.config
        console.print(f"Device: {url}, {config.cores} core(s), {config.array} x {config.array} array, {count} images")
        description = Path(folder) / "chip.json"  # it need not be a preset
        description.write_text(config.to_json())
        golden_url = f"model:{description}?memory={device.driver.transport.memory_bytes}"
        # The host's matrices are small: threads would only wait for each other.
        with Device.open(golden_url) as golden, threadpool_limits(1), _progress(console) as progress:
            trained = [(n, quantise(n, digits.train[:CALIBRATION_IMAGES])) for n in _train(digits, progress)]
            results = [_run(device, golden, n, q, digits, count, progress) for n, q in trained]
    _print(results, device, parse_url(url)[0] != "model", console)
    return results


def _open(url: str | None, console: Console) -> tuple[Device, str, bool]:
    if url is not None:
        return Device.open(url), url, parse_url(url)[0] == "pysim"
    try:
        return Device.open(DEFAULT_ENGINE), DEFAULT_ENGINE, False
    except EngineError as error:
        console.print(f"{error}\nUsing {FALLBACK_ENGINE} instead: it is slow, so only {FALLBACK_IMAGES} images.")
        return Device.open(FALLBACK_ENGINE), FALLBACK_ENGINE, True


def _progress(console: Console) -> Progress:
    columns = (TextColumn("{task.description:<24}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console)


def _train(digits: Digits, progress: Progress) -> Iterator[Network]:
    for network in networks():
        task = progress.add_task(f"Training {network.name} (fp32)", total=EPOCHS[network.name])
        network.train(digits.train, digits.train_labels, EPOCHS[network.name], partial(progress.advance, task))
        yield network


def _run(
    device: Device,
    golden: Device,
    network: Network,
    quantised: QuantisedNetwork,
    digits: Digits,
    count: int,
    progress: Progress,
) -> Result:
    images, labels = digits.test[:count], digits.test_labels[:count]
    on_device, on_golden = DeviceNetwork(device, quantised), DeviceNetwork(golden, quantised)
    task = progress.add_task(f"Running {network.name} (int8)", total=count)
    correct, seconds = 0, 0.0
    size = -(-count // BATCHES)
    for start in range(0, count, size):
        batch = images[start : start + size]
        begin = time.perf_counter()
        outputs = on_device.run(batch)
        seconds += time.perf_counter() - begin
        for index, (ours, expected) in enumerate(zip(outputs, on_golden.run(batch), strict=True)):
            if not np.array_equal(ours, expected):
                raise DemoError(
                    f"{network.name}, layer {index}: {np.sum(ours != expected)} values differ from the model"
                )
        correct += int((outputs[-1].argmax(axis=1) == labels[start : start + size]).sum())
        progress.advance(task, len(batch))
    fp32 = int((network.classify(images) == labels).sum())
    work = on_device.work
    layers = len(network.layers)
    return Result(network.name, count, fp32, correct, work.cycles, work.macs, seconds, layers)


def _print(results: list[Result], device: Device, has_cycles: bool, console: Console) -> None:
    table = Table(title="UCI digits, test set")
    for heading in ("network", "fp32 (host)", "int8 (device)", "cycles", "of peak MACs", "time"):
        table.add_column(heading, justify="left" if heading == "network" else "right")
    for r in results:
        table.add_row(
            r.name,
            f"{r.fp32_correct / r.images:.2%}",
            f"{r.int8_correct / r.images:.2%}",
            f"{r.cycles:,}" if has_cycles else "-",
            f"{r.macs / (r.cycles * device.config.peak_macs):.1%}" if has_cycles else "-",
            f"{r.seconds:.1f} s",
        )
    console.print(table)
    layers = sum(r.layers for r in results)
    console.print(f"All results of all {layers} layers equal the golden model in every bit.")
