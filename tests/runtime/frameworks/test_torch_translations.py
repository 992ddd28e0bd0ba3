"""Operators that Sley translates itself, and functions that Dynamo skips: equal to PyTorch, refused, or named."""

import warnings
from typing import Any

import pytest

from sley.abi.install import extra

torch = pytest.importorskip("torch", reason=f"PyTorch is not installed: {extra('torch')}")
pytest.importorskip("onnxscript", reason=f"onnxscript is not installed: {extra('torch')}")
pytest.importorskip("sley.runtime.frameworks.torch")

from sley.runtime.frameworks.from_torch.breaks import GraphBreak  # noqa: E402
from sley.runtime.networks.registry import UnsupportedOperator  # noqa: E402

functional = torch.nn.functional


def compiled(function: Any, *arguments: Any) -> Any:
    """What it gives on the device, as one graph; a warning is an error."""
    torch._dynamo.reset()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", GraphBreak)
        return torch.compile(function, backend="sley", dynamic=False)(*arguments)


def agrees(function: Any, *arguments: Any) -> None:
    found = compiled(function, *arguments)
    torch.testing.assert_close(found, function(*arguments), rtol=1e-5, atol=1e-6)


def test_queries_that_see_no_key() -> None:
    """Padding on the left, as decoders have it: such rows are 0, of masks that are bool and of those that are added; a
    mask of the smallest float sees all keys alike."""
    torch.manual_seed(1)
    q, k, v = (torch.randn(2, 2, 5, 4) for _ in range(3))
    seen = torch.ones(5, 5, dtype=torch.bool).tril()[None, None].repeat(2, 1, 1, 1)
    seen[1, :, :, :2] = False
    agrees(
        lambda q, k, v, seen, added, least, few: (
            functional.scaled_dot_product_attention(q, k, v, attn_mask=seen),
            functional.scaled_dot_product_attention(q, k, v, attn_mask=added, scale=0.3),
            functional.scaled_dot_product_attention(q, k, v, attn_mask=least),
            functional.scaled_dot_product_attention(q, few, few, is_causal=True, enable_gqa=True),
            functional.scaled_dot_product_attention(q.mT.contiguous().mT, few, few, enable_gqa=True),
            functional.scaled_dot_product_attention(q[:, 0], k[:, 0], v[:, 0], attn_mask=seen[:, 0]),
            functional.scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=seen),
            functional.scaled_dot_product_attention(q[:, :, None], k[:, :, None], v[:, :, None, :, :3]),
        ),
        *(q, k, v, seen),
        torch.where(seen, 0.5, -torch.inf),
        torch.where(seen, 0.0, torch.finfo(torch.float32).min),
        torch.randn(2, 1, 5, 4),
    )


@pytest.mark.parametrize("include_self", [True, False])
def test_means_of_scattered_elements(include_self: bool) -> None:
    torch.manual_seed(2)
    index = torch.tensor([[0, 3, 3], [0, 0, 3], [4, 3, 3]])
    agrees(
        lambda x, y: (
            x.scatter_reduce(0, index, y, "mean", include_self=include_self),
            x.scatter_reduce(0, index, y, "amax", include_self=include_self),
        ),
        torch.randn(5, 3),
        torch.randn(3, 3),
    )


def test_recurrent_layers_are_graphs() -> None:
    """Of inputs that are not dense, too: batches first."""
    torch.manual_seed(3)
    layers = torch.nn.LSTM(4, 5, 2, batch_first=True, bidirectional=True), torch.nn.GRU(4, 3, batch_first=True)
    x = torch.randn(2, 3, 4)
    for layer in layers:
        y, last = compiled(layer.eval(), x)
        with torch.no_grad():
            torch.testing.assert_close((y, last), layer(x), rtol=1e-5, atol=1e-6)


def test_a_projection_of_states_is_refused() -> None:
    with pytest.raises(UnsupportedOperator, match="LSTM with proj_size=2; ONNX has none with projections"):
        compiled(torch.nn.LSTM(4, 5, proj_size=2), torch.randn(3, 2, 4))


def test_norms_of_images_with_channels_last() -> None:
    """Behind a convolution channels are last in memory; a result without axes stays one."""
    torch.manual_seed(4)
    conv, group = torch.nn.Conv2d(3, 4, 3), torch.nn.GroupNorm(2, 4)
    instance = torch.nn.InstanceNorm2d(4, affine=True)
    agrees(lambda x: (group(conv(x)), instance(conv(x)), conv(x).sum()), torch.randn(2, 3, 6, 5))


def test_functions_without_a_graph_are_named() -> None:
    """One that Dynamo skips runs where its tensors are: on the host, if they are there."""

    def function(x: Any) -> Any:
        for row in range(2):
            x = x + torch.nonzero(x[row]).sum()
        return x

    torch._dynamo.reset()
    with (
        torch.no_grad(),
        pytest.warns(GraphBreak, match=r"function has no graph.*test_torch_translations.py:\d+: Dynamic"),
    ):
        torch.compile(function, backend="sley", dynamic=False)(torch.ones(2, 3))


def test_other_backends_are_not_watched(recwarn: pytest.WarningsRecorder) -> None:
    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(lambda x: torch.nonzero(x) + 1, backend="eager", dynamic=False)(torch.ones(2))
    assert not [one for one in recwarn if issubclass(one.category, GraphBreak)]


def test_a_convolution_of_steps_of_a_part() -> None:
    """Each channel alone, of some of the channels that a layer makes, as in Mamba."""
    torch.manual_seed(5)
    wide, conv = torch.nn.Linear(4, 12), torch.nn.Conv1d(6, 6, 4, padding=3, groups=6)
    agrees(lambda x: conv(wide(x).mT.chunk(2, 1)[0])[..., :5], torch.randn(2, 5, 4))


@pytest.mark.slow
def test_losses_with_smoothing_and_shares() -> None:
    torch.manual_seed(6)
    x, weight, numbers = torch.randn(4, 5), torch.rand(5), torch.tensor([1, -100, 0, 4])
    agrees(
        lambda x, weight: tuple(
            functional.cross_entropy(x, target, weight=rows, reduction=reduction, label_smoothing=0.2)
            for target in (numbers, x.softmax(1))
            for rows in (None, weight)
            for reduction in ("mean", "sum", "none")
        ),
        x,
        weight,
    )
    agrees(lambda x: functional.cross_entropy(x.mT[None], numbers[None, :4], label_smoothing=0.1), x[:, :4].mT @ x)
    agrees(lambda x: functional.cross_entropy(x, x.softmax(1)), x)


def test_operators_in_parts() -> None:
    """Those that ONNX does not have, and that the device of PyTorch makes of others."""
    torch.manual_seed(7)
    ends = torch.tensor([-1.0, 0.0, 1.0])
    agrees(
        lambda x, image: (
            *x.kthvalue(2, 1),
            *x.median(1),
            x.nanmedian(),
            torch.searchsorted(ends, x),
            torch.bucketize(x, ends, right=True),
            torch.cdist(x, x[:3], p=1.0),
            *x.cummax(1),
            x.logcumsumexp(0),
            *torch.sort(x, stable=True, descending=True),
            *torch.mode(x, 0),
            torch.histc(x, 4, -1, 1),
            torch.histc(x, 5),
            *functional.adaptive_max_pool2d(image, (3, 4), return_indices=True),
            functional.adaptive_avg_pool3d(image[None], (2, 2, 3)),
        ),
        torch.randn(5, 6).round(decimals=1),
        torch.randn(2, 3, 7, 10),
    )


def test_bags_of_embeddings() -> None:
    """Bags by their starts, by rows of numbers, and with weights; tables of the host, too."""
    torch.manual_seed(10)
    agrees(
        lambda weight, numbers, starts, own: (
            functional.embedding_bag(numbers, weight, starts, mode="max", include_last_offset=True),
            functional.embedding_bag(numbers.reshape(2, 3), weight),
            functional.embedding_bag(numbers, weight, starts[:-1], mode="sum", per_sample_weights=own),
        ),
        torch.randn(7, 3),
        torch.tensor([1, 4, 1, 2, 2, 6]),
        torch.tensor([0, 3, 3, 6]),
        torch.rand(6),
    )


@pytest.mark.slow
def test_factorizations() -> None:
    """Nobody looks whether they succeed: what is singular gives what is not finite."""
    torch.manual_seed(11)
    a, b = torch.randn(2, 5, 5), torch.randn(2, 5, 3)
    linalg = torch.linalg
    agrees(
        lambda a, b: (
            linalg.inv(a),
            linalg.solve(a, b),
            linalg.det(a),
            linalg.slogdet(a)[1],
            linalg.cholesky(a @ a.mT + torch.eye(5)),
            torch.cholesky_solve(b, linalg.cholesky_ex(a @ a.mT + torch.eye(5))[0]),
        ),
        *(a, b),
    )
    assert not compiled(linalg.inv, torch.ones(3, 3)).isfinite().any()


@pytest.mark.slow
def test_sizes_by_a_scale() -> None:
    """Not the ratio of sizes, but the scale decides where elements are."""
    torch.manual_seed(8)
    agrees(
        lambda x: (
            *(functional.interpolate(x, scale_factor=(0.6, 1.3), mode=mode) for mode in ("nearest", "bilinear")),
            *(
                functional.interpolate(x, scale_factor=(0.6, 1.7), mode=mode, antialias=True)
                for mode in ("bilinear", "bicubic")
            ),
            *(
                functional.interpolate(x[..., :4, :4], scale_factor=1.7, mode=mode, align_corners=True)
                for mode in ("bilinear", "bicubic")
            ),
            functional.avg_pool2d(x, 3, 2, 1, divisor_override=2),
            functional.avg_pool3d(x[None], (1, 2, 2), divisor_override=3),
        ),
        torch.randn(1, 2, 9, 10),
    )
    with pytest.raises(UnsupportedOperator, match="avg_pool2d with divisor_override=3 and ceil_mode"):
        compiled(lambda x: functional.avg_pool2d(x, 2, ceil_mode=True, divisor_override=3), torch.randn(1, 1, 5, 5))


def test_products_of_groups() -> None:
    """A group without a row; one that PyTorch has on the host for bfloat16 and widths of 16 bytes alone."""
    torch.manual_seed(9)
    x, weight = torch.randn(5, 8).bfloat16(), torch.randn(3, 8, 16).bfloat16()
    ends = torch.tensor([2, 2, 5], dtype=torch.int32)
    found = compiled(lambda x, weight, ends: torch._grouped_mm(x, weight, offs=ends), x, weight, ends)
    wanted = torch.cat([x[:2] @ weight[0], x[2:] @ weight[2]])
    torch.testing.assert_close(found, wanted, rtol=1e-2, atol=1e-2)
