"""What graphs leave out: looks at the success of a factorization, which the host would have to read in the middle."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

CHECKS = ("aten::_linalg_check_errors",)


@contextlib.contextmanager
def without_checks() -> Iterator[None]:
    """PyTorch threads them through its graphs as effects, which no exporter knows; here they are operators whose result
    nobody uses. That table is no public part of it."""
    holders = [torch._library.simple_registry.singleton.find(name).effect for name in CHECKS]
    before = [holder.effect for holder in holders]
    for holder in holders:
        holder._effect = None
    try:
        yield
    finally:
        for holder, effect in zip(holders, before, strict=True):
            holder._effect = effect
