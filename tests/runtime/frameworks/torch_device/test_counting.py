"""Counts, bags of embeddings and grouped products on the device, equal to PyTorch on the host; and what is refused."""

from typing import Any

import pytest

from sley.abi.install import extra

torch = pytest.importorskip("torch", reason=f"PyTorch is not installed: {extra('torch')}")
pytest.importorskip("sley.runtime.frameworks.torch")

functional = torch.nn.functional


def test_counts() -> None:
    numbers, weights = torch.tensor([3, 0, 3, 5]), torch.tensor([0.5, 1, 2, 4])
    for given in ({}, {"minlength": 9}, {"weights": weights}):
        moved = {k: v.to("sley") if isinstance(v, torch.Tensor) else v for k, v in given.items()}
        found = torch.bincount(numbers.to("sley"), **moved)
        torch.testing.assert_close(found.cpu(), torch.bincount(numbers, **given))
    with pytest.raises(RuntimeError, match="bincount of -1 with minlength 0: neither may be below 0"):
        torch.bincount(torch.tensor([-1, 2], device="sley"))


def test_histograms() -> None:
    """Elements at both ends, beyond them and NaN; bounds of the elements; integers, which the host has not."""
    x = torch.tensor([-2.0, -1.9, 0, 1, 2, 2.1, torch.nan])
    torch.testing.assert_close(torch.histc(x.to("sley"), 4, -2, 2).cpu(), torch.histc(x, 4, -2, 2))
    torch.testing.assert_close(torch.histc(x[:6].to("sley"), 3).cpu(), torch.histc(x[:6], 3))
    found = torch.histc(torch.tensor([0, 2, 2, 1], dtype=torch.int32, device="sley"), 3, 0, 2)
    assert found.dtype is torch.int32
    assert found.tolist() == [1, 1, 2]


def test_modes() -> None:
    """Along each axis, of one that is turned; NaN, which are all different; the last place of the smallest value."""
    numbers = torch.randint(0, 4, (5, 9), generator=torch.Generator().manual_seed(3))
    for dim, keep in ((0, False), (1, True), (-1, False)):
        for given in (numbers, numbers.float().T):
            found, wanted = torch.mode(given.to("sley"), dim, keep), torch.mode(given, dim, keep)
            assert torch.equal(found.values.cpu(), wanted.values)
            at = found.indices.cpu() if keep else found.indices.cpu().unsqueeze(dim)
            assert torch.equal(given.gather(dim, at), wanted.values if keep else wanted.values.unsqueeze(dim))
    x = torch.tensor([torch.nan, 2.0, torch.nan, 1.0, 2.0, 1.0], device="sley")
    assert [part.item() for part in torch.mode(x)] == [1, 5]
    assert [part.item() for part in torch.mode(x[0])][1] == 0
    with pytest.raises(IndexError, match="non-zero size"):
        torch.mode(torch.ones(2, 0, device="sley"))


def bags(device: str, **more: Any) -> list[Any]:
    """The result and its gradient; the second bag is empty, the third has padding alone."""
    weight = torch.randn(7, 3, generator=torch.Generator().manual_seed(1)).to(device).requires_grad_()
    numbers, ends = (torch.tensor(values, device=device) for values in ([1, 4, 1, 2, 2, 6], [0, 3, 3, 5]))
    given = {key: value.to(device) if isinstance(value, torch.Tensor) else value for key, value in more.items()}
    found = functional.embedding_bag(numbers, weight, ends, padding_idx=2, **given)
    (found * torch.arange(1.0, 13, device=device).reshape(4, 3)).sum().backward()
    return [found.detach().cpu(), weight.grad.cpu()]


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags(mode: str) -> None:
    torch.testing.assert_close(bags("sley", mode=mode), bags("cpu", mode=mode), rtol=1e-5, atol=1e-6)


def test_bags_with_weights() -> None:
    given = {"mode": "sum", "per_sample_weights": torch.arange(6.0)}
    torch.testing.assert_close(bags("sley", **given), bags("cpu", **given), rtol=1e-5, atol=1e-6)
    with pytest.raises(NotImplementedError, match="embedding_bag with scale_grad_by_freq or sparse gradients"):
        bags("sley", mode="sum", sparse=True)


def test_products_of_groups() -> None:
    """A group without a row; the gradient of its matrix is 0."""
    torch.manual_seed(2)
    x, weight = torch.randn(5, 8), torch.randn(3, 8, 4)
    ends = torch.tensor([2, 2, 5], dtype=torch.int32, device="sley")
    wanted = torch.cat([x[:2] @ weight[0], x[2:] @ weight[2]])
    own = x.to("sley")
    torch.testing.assert_close(torch._grouped_mm(own, weight.to("sley"), ends).cpu(), wanted, rtol=1e-5, atol=1e-5)
    found = torch._grouped_mm(own.T, wanted.to("sley"), ends).cpu()
    torch.testing.assert_close(
        found, torch.stack([x[:2].T @ wanted[:2], torch.zeros(8, 4), x[2:].T @ wanted[2:]]), rtol=1e-5, atol=1e-5
    )
