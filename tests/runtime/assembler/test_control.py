"""Loops and conditions."""

from collections.abc import Callable
from typing import Any

import pytest

Reporting = Callable[[], Any]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_nested_loops_that_end_together(reporting: Reporting, count: int) -> None:
    kernel = reporting()
    k = kernel.k
    n, total = k.arg("n"), k.reg("total", 0)
    with k.loop(n), k.loop(2), k.loop(n):
        k.add(total, total, 1)
    assert kernel.result(total, count) == 2 * count**2


@pytest.mark.parametrize("limit", [-1, 0, 5])
def test_while_and_if_inside_a_loop(reporting: Reporting, limit: int) -> None:
    kernel = reporting()
    k = kernel.k
    bound, total, i, odd = k.arg("bound"), k.reg("total", 0), k.reg("i"), k.reg("odd")
    with k.loop(3):
        k.mov(i, 0)
        with k.while_(i, "<", bound):
            k.and_(odd, i, 1)
            with k.if_(odd, "!=", 0):
                k.add(total, total, i)
            k.add(i, i, 1)
        with k.if_(total, "==", 0):
            k.mov(total, 0)
    assert kernel.result(total, limit) == 3 * sum(i for i in range(max(limit, 0)) if i % 2)
