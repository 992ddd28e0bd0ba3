"""How a convolution of the library becomes dense problems for the array: groups, few channels."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from sley.abi.config import ChipConfig
from sley.abi.types import ElementType
from sley.runtime.kernels.conv.plan import plan
from sley.runtime.kernels.conv.problem import Axis, Conv


@dataclass(frozen=True)
class Form:
    """How weights are packed. ``groups`` of them are dense on the diagonal of a bundle; ``bundles`` of these begin at
    group ``first``. ``packed``: the taps of a row of the window are channels of one tap, ``window`` of them, and the
    window begins ``shift`` taps further on."""

    groups: int = 1
    first: int = 0
    bundles: int = 1
    packed: bool = False
    shift: int = 0
    window: int = 0


@dataclass(frozen=True)
class Part:
    """A dense problem, the form of its weights, and where it begins in input and output: image, column of pixels,
    channel."""

    problem: Conv
    form: Form
    x_at: tuple[int, int, int] = (0, 0, 0)
    out_at: tuple[int, int, int] = (0, 0, 0)


@lru_cache(maxsize=4096)
def parts_of(config: ChipConfig, problem: Conv, groups: int) -> tuple[Part, ...]:
    """The problems that a convolution with ``groups`` amounts to; ``problem`` is the one without."""
    p = problem
    if groups > 1:
        return tuple(_grouped(config, p, groups))
    plain = (Part(_flattened(config, p), Form()),)
    if not _packs(config, p):
        return plain
    packed = tuple(_packed(p))
    return min(packed, plain, key=lambda parts: sum(plan(config, part.problem).estimate for part in parts))


def _flattened(config: ChipConfig, problem: Conv) -> Conv:
    """A window of one pixel needs no rows: all pixels are one row, of all images, or as many as cores can share."""
    p, s = problem, problem.steps
    single = all(a.taps == a.stride == 1 and a.pad == 0 and a.out == a.size for a in (p.y, p.x))
    dense = (s.row, s.out_row) == (p.x.size * s.pixel, p.x.size * s.out_pixel) or p.y.size == 1
    if not (single and dense):
        return p
    pixels, batch = p.y.size * p.x.size, p.batch
    if s.weights == 0 and (s.image, s.out_image) == (pixels * s.pixel, pixels * s.out_pixel):
        pixels, batch = pixels * batch, 1
    rows = next(count for count in (config.cores, config.cores_y, 1) if pixels % count == 0)
    width = pixels // rows
    steps = replace(s, row=width * s.pixel, out_row=width * s.out_pixel)
    return replace(p, y=Axis(rows, rows, 1), x=Axis(width, width, 1), steps=steps, batch=batch)


def bundle_groups(config: ChipConfig, dtype: ElementType, channels: int, outputs: int, groups: int) -> int:
    """Groups in a bundle: as many as take the fewest passes for each. Sums of bf16 see zeros of other groups, which are
    no neutral elements for infinities: there a bundle is one group."""
    if dtype is ElementType.BF16:
        return 1
    deep, n = config.fold_depth(dtype), config.array

    def passes(count: int) -> float:
        return -(-count * channels // deep) * -(-count * outputs // n) / count

    sizes = range(1, min(groups, max(deep // channels, 1) * 2) + 1)
    return min(sizes, key=lambda count: (passes(count), -(groups % count == 0), -count))


def _grouped(config: ChipConfig, problem: Conv, groups: int) -> Iterator[Part]:
    p = problem
    channels, outputs = p.channels // groups, p.outputs // groups
    size = bundle_groups(config, p.dtype, channels, outputs, groups)
    done = 0
    for count, bundles in ((size, groups // size), (groups % size, 1)):
        if not count or not bundles:
            continue
        dense = replace(p, channels=count * channels, outputs=count * outputs)
        form = Form(count, done, bundles)
        first, output = done * channels, done * outputs
        if bundles == 1:
            yield Part(_flattened(config, dense), form, (0, 0, first), (0, 0, output))
        else:
            inside, outside = count * channels * p.dtype.bytes, count * outputs * p.epilogue.result.bytes
            weights, values = weight_bytes(config, dense), 4 * count * outputs
            steps = replace(p.steps, image=inside, out_image=outside, weights=weights, values=values)
            one = _flattened(config, replace(dense, batch=bundles, steps=steps))
            for image in range(p.batch):
                yield Part(one, form, (image, 0, first), (image, 0, output))
        done += count * bundles


def weight_bytes(config: ChipConfig, problem: Conv) -> int:
    """Bytes of the packed weights of a dense problem."""
    tiles = -(-problem.outputs // config.array)
    return tiles * problem.folds(config) * problem.taps * config.array * config.row_bytes


def _packs(config: ChipConfig, problem: Conv) -> bool:
    """Whether the pixels under a row of the window are contiguous, and take fewer passes as one tap. Zeros that a
    window at the border would need are in its weights, so not of bf16, and nothing but zeros."""
    p, deep = problem, config.fold_depth(problem.dtype)
    return (
        p.dtype is ElementType.INT8
        and p.x.taps > 1
        and p.x.dilation == 1
        and p.x.taps <= p.x.size
        and p.steps.pixel == p.channels
        and -(-p.x.taps * p.channels // deep) < p.x.taps * -(-p.channels // deep)
        and (p.outside == 0 or not any(_shifts(p)))
    )


def _shifts(problem: Conv) -> list[int]:
    """How far the window of each output of a row is moved to be inside of the image."""
    a = problem.x
    return [min(max(o * a.stride - a.pad, 0), a.size - a.taps) - (o * a.stride - a.pad) for o in range(a.out)]


def _packed(problem: Conv) -> Iterator[Part]:
    """The outputs whose window is inside, then those of the border, a column for each shift of the window."""
    p, a = problem, problem.x
    shifts = _shifts(p)
    begin = 0
    while begin < a.out:
        end = begin + 1
        while end < a.out and shifts[end] == shifts[begin] == 0:
            end += 1
        start = begin * a.stride - a.pad + shifts[begin]
        form = Form(packed=True, shift=shifts[begin], window=a.taps)
        if abs(form.shift) < a.taps:
            row = Axis((end - begin - 1) * a.stride + 1, end - begin, 1, a.stride)
        else:  # nothing of the input is under this window: any pixels, and weights of zeros
            row = Axis(1, 1, 1)
            form, start = replace(form, shift=a.taps), 0
        dense = replace(p, x=row, channels=a.taps * p.channels)
        yield Part(dense, form, (0, start, 0), (0, begin, 0))
        begin = end
