"""Factorizations of small matrices on the device: against float64, with gradients; and what is refused."""

from typing import Any

import pytest

from sley.abi.install import extra

torch = pytest.importorskip("torch", reason=f"PyTorch is not installed: {extra('torch')}")
pytest.importorskip("sley.runtime.frameworks.torch")

linalg = torch.linalg


def matrices(*sides: int) -> Any:
    """Random ones, whose rows must be exchanged."""
    return torch.randn(*sides, generator=torch.Generator().manual_seed(sides[-1]))


def spread(*sides: int) -> Any:
    """Symmetric ones with eigenvalues above 0."""
    a = matrices(*sides)
    return a @ a.mT + torch.eye(sides[-1])


def near(function: Any, *given: Any, gradients: bool = True) -> None:
    """Results, and gradients by what is given, within 2^-18 of the largest element times its condition of about 30."""

    def run(values: Any) -> list[Any]:
        values = [value.requires_grad_(gradients) for value in values]
        found = function(*values)
        parts = [part for part in (found if isinstance(found, tuple) else (found,)) if part.is_floating_point()]
        if gradients:
            sum((part * part.detach().cos()).sum() for part in parts if part.requires_grad).backward()
        return [part.detach().cpu().double() for part in (*parts, *(value.grad for value in values if gradients))]

    own = run([value.clone(memory_format=torch.preserve_format).to("sley") for value in given])
    for found, wanted in zip(own, run([value.double() for value in given]), strict=True):
        assert (found - wanted).abs().max() <= 2.0**-13 * wanted.abs().max() + 1e-6


CASES: dict[str, Any] = {
    "inv": (linalg.inv, (matrices(3, 6, 6),)),
    "solve": (linalg.solve, (matrices(5, 5), matrices(5, 2))),
    "solve of one that is turned": (lambda a, b: linalg.solve(a.mT, b), (matrices(5, 5), matrices(5, 2))),
    "solve a vector, from the right": (
        lambda a, b, x: (linalg.solve(a, b), linalg.solve(a, x, left=False)),
        (matrices(4, 4), matrices(4), matrices(3, 4)),
    ),
    "determinants": (lambda a: (linalg.det(a), linalg.slogdet(a)[1], torch.logdet(a @ a.mT)), (matrices(2, 5, 5),)),
    "determinant of one that is turned": (lambda a: linalg.det(a.mT), (matrices(5, 5),)),
    "Cholesky": (
        lambda a, b: (linalg.cholesky(a + a.mT), linalg.cholesky(a + a.mT, upper=True), b @ a),
        (spread(2, 6, 6), matrices(3, 6)),
    ),
    "solve by Cholesky": (
        lambda a, b: (torch.cholesky_solve(b, linalg.cholesky(a + a.mT)), torch.cholesky_solve(b, a.triu() * 2, True)),
        (spread(5, 5), matrices(2, 5, 3)),
    ),
    "triangles": (
        lambda a, b: (
            linalg.solve_triangular(a, b, upper=True),
            linalg.solve_triangular(a, b.mT, upper=False, left=False, unitriangular=True),
        ),
        (spread(4, 4), matrices(4, 3)),
    ),
    "LU of more columns": (lambda a: linalg.lu(a)[1:], (matrices(3, 5),)),
    "LU of more rows": (lambda a: linalg.lu(a)[1:], (matrices(5, 3),)),
}


@pytest.mark.parametrize("name", CASES)
def test_near_float64(name: str) -> None:
    function, given = CASES[name]
    near(function, *given)


def test_parts() -> None:
    """P L U is the matrix, of a batch whose rows are exchanged otherwise; without elements, too."""
    a = matrices(2, 3, 6, 4).to("sley")
    for one in (a, a.mT):
        permuted, lower, upper = linalg.lu(one)
        torch.testing.assert_close((permuted @ lower @ upper).cpu(), one.cpu(), rtol=1e-5, atol=1e-5)
    factors, pivots, info = torch.linalg.lu_factor_ex(a)
    assert (pivots.dtype, info.dtype) == (torch.int32, torch.int32)
    assert torch.equal(pivots.cpu(), torch.linalg.lu_factor(a.cpu())[1])
    torch.testing.assert_close(torch.lu_unpack(factors, pivots)[2], linalg.lu(a)[2])
    assert linalg.inv(a[..., :0, :0]).shape == (2, 3, 0, 0)


def test_what_is_singular_is_an_error() -> None:
    one = torch.ones(3, 3, device="sley")
    for function in (linalg.inv, linalg.cholesky, lambda a: linalg.solve(a, a)):
        with pytest.raises(linalg.LinAlgError):
            function(one)
    assert linalg.det(one).item() == 0
    assert linalg.cholesky_ex(torch.diag(torch.tensor([1.0, -1, 2])).to("sley"))[1].item() == 2
    assert linalg.lu_factor_ex(one)[2].item() == 2


def test_what_is_no_matrix_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"a factorization of torch\.bfloat16 of shape \(2, 2\)"):
        torch.ops.aten.linalg_lu_factor_ex(torch.ones(2, 2, device="sley", dtype=torch.bfloat16))
