"""PyTorch's own samples of operators, OpInfo, on the device: forward and backward, with fallback refused."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from time import monotonic
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo
from torch.utils._pytree import tree_flatten

from sley.runtime.frameworks.torch_device.agreement import Call, Truth, check, gradients, seeds_for
from sley.runtime.frameworks.torch_device.orders import in_order_of
from sley.runtime.frameworks.torch_device.storage import NAME
from sley.runtime.frameworks.torch_device.tensors import on_device
from sley.runtime.frameworks.torch_device.types import STORED

TYPES = (torch.float32, torch.bfloat16)
RANDOM = frozenset(
    (
        *("bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "normal", "uniform"),
        *("rand_like", "randint", "randint_like", "randn", "randn_like", "nn.functional.rrelu"),
        *("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"),
        *("nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d"),
    )
)
"""Operators of random numbers, or of contents that are not defined."""


class ForeignType(Exception):  # noqa: N818 (no error: a sample that is left out)
    """A sample on a type that the device does not have."""


@dataclass(frozen=True)
class Outcome:
    """An operator in a type: how many samples passed, of how many on types of the device; how many are on others; what
    was said of the first that did not pass; how many passed by the host's result, as float64 is another; whether all
    samples were run."""

    name: str
    dtype: str
    passed: int
    samples: int
    other: int = 0
    reason: str = ""
    backward: bool = False
    by_host: int = 0
    finished: bool = True

    @property
    def good(self) -> bool:
        """Whether all that were run passed, and there are some."""
        return 0 < self.samples == self.passed


@dataclass(frozen=True)
class OperatorScore:
    """An operator in all its types."""

    name: str
    outcomes: tuple[Outcome, ...]

    @property
    def whole(self) -> bool:
        """Whether all samples on types of the device pass, and there are some in each type."""
        return self.good and all(outcome.finished for outcome in self.outcomes)

    @property
    def good(self) -> bool:
        """Whether all of them that were run pass."""
        return all(outcome.good for outcome in self.outcomes)

    @property
    def other(self) -> int:
        """Samples that were left out."""
        return sum(outcome.other for outcome in self.outcomes)

    @property
    def remark(self) -> str:
        """What else there is to say."""
        forward = "" if any(outcome.backward for outcome in self.outcomes) else "forward alone"
        drawn = "drawn" if self.name.partition(".")[0] in RANDOM or self.name in RANDOM else ""
        count = sum(outcome.by_host for outcome in self.outcomes)
        return ", ".join(filter(None, (drawn, forward, f"{count} by the host's" if count else "")))

    @property
    def reason(self) -> str:
        """What was said first."""
        given = [outcome.reason for outcome in self.outcomes if outcome.reason]
        return given[0] if given else "no sample on types of the device"

    def text(self, dtype: str) -> str:
        """Passed of all samples in a type that were run."""
        found = [outcome for outcome in self.outcomes if outcome.dtype == dtype]
        return "".join(f"{one.passed} of {one.samples}{'' if one.finished else ' run'}" for one in found)


def operator_scores(outcomes: Iterable[Outcome]) -> list[OperatorScore]:
    """By operator, in alphabetical order."""
    own: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        own.setdefault(outcome.name, []).append(outcome)
    return [OperatorScore(name, tuple(own[name])) for name in sorted(own)]


def types(op: OpInfo) -> list[torch.dtype]:
    """Those of an operator that are scored."""
    return [dtype for dtype in TYPES if op.supports_dtype(dtype, "cpu")]


def operators() -> Iterator[OpInfo]:
    """Those with samples in float32 or bfloat16."""
    yield from (op for op in op_db if types(op))


def full_name(op: OpInfo) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def run(op: OpInfo, dtype: torch.dtype, most: int | None = None, seconds: float | None = None) -> Outcome:
    """Runs the samples of an operator, at most so many, none after so long."""
    backward = bool(op.supports_autograd) and dtype in op.supported_backward_dtypes("cpu")
    passed, count, other, by_host, reason, finished = 0, 0, 0, 0, "", True
    start = monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        for sample in op.sample_inputs("cpu", dtype, requires_grad=backward):
            if (most is not None and count + other >= most) or (seconds is not None and monotonic() - start > seconds):
                finished = False
                break
            try:
                problem, host = compare(op, sample, dtype, backward)
            except ForeignType:
                other += 1
                continue
            except Exception as error:  # of any kind, as PyTorch and the device raise it
                host = False
                problem = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
            count += 1
            passed += not problem
            by_host += host and not problem
            reason = reason or problem
    kind = str(dtype).removeprefix("torch.")
    return Outcome(full_name(op), kind, passed, count, other, reason, backward, by_host, finished)


def moved(value: Any) -> Any:
    """Arguments on the device."""
    if isinstance(value, torch.Tensor):
        there = value.detach().to(NAME)
        return there.requires_grad_(value.requires_grad)
    if isinstance(value, torch.device) or (value == "cpu" and isinstance(value, str)):
        return NAME
    return value


def compare(op: OpInfo, sample: Any, dtype: torch.dtype, backward: bool) -> tuple[str, bool]:
    """What is wrong with a sample, nothing if it passes; and whether it passed by the host's result."""
    call = Call(op.op, (sample.input, list(sample.args), dict(sample.kwargs)), sample.output_process_fn_grad)
    expected = call()
    if foreign(call.arguments) or foreign(expected):
        raise ForeignType
    ours = call.mapped(moved)
    if not any(on_device(leaf) or (isinstance(leaf, str) and leaf == NAME) for leaf in tree_flatten(ours.arguments)[0]):
        ours.arguments[2]["device"] = NAME  # it makes a tensor of numbers alone
    found = ours()
    if drawn(op, sample):
        return shapes(expected, found), False
    call = in_order_of(found, op.name, call, expected)
    expected = call()
    wanted, got = tree_flatten(expected)[0], tree_flatten(found)[0]
    results, seeds = len(wanted), None
    if backward:
        seeds = seeds_for(expected)
        wanted += gradients(expected, call.arguments, seeds)
        got += gradients(found, ours.arguments, seeds)
    truth = Truth(call, seeds, dtype)
    return check(got, wanted, truth, results), truth.by_host


def foreign(values: Any) -> bool:
    """Whether types are among them that the device does not have."""
    leaves = tree_flatten(values)[0]
    kinds = [leaf.dtype if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
    return any(isinstance(kind, torch.dtype) and kind not in STORED for kind in kinds)


def drawn(op: OpInfo, sample: Any) -> bool:
    """Whether results of a sample are random, or not defined: shapes and types are compared alone."""
    if op.name in RANDOM:
        return True
    chance = sample.kwargs.get("dropout_p", sample.kwargs.get("p", 0) if "dropout" in op.name else 0)
    return "dropout" in op.name or (bool(chance) and "attention" in op.name) or "multi_head" in op.name


def shapes(expected: Any, found: Any) -> str:
    """How shapes and types differ."""
    for a, b in zip(tree_flatten(expected)[0], tree_flatten(found)[0], strict=True):
        if isinstance(a, torch.Tensor) and (a.shape != b.shape or a.dtype != b.dtype or not on_device(b)):
            return f"{b.dtype} of shape {tuple(b.shape)} on {b.device}, wanted {a.dtype} of {tuple(a.shape)}"
    return ""
