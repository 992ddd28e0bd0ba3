"""How a convolution is cut into pieces."""

from dataclasses import dataclass

from sley.abi.config import ChipConfig
from sley.runtime.kernels.conv.problem import Axis, Conv


@dataclass(frozen=True)
class Tiling:
    """Sizes of one convolution.

    ``rows`` x ``columns`` output pixels by ``wide`` column tiles of output channels make a macro tile. A chunk is
    ``folds`` folds of channels of the input pixels that the macro tile sees, with the weights of ``taps_y`` x
    ``taps_x`` taps of the window: all of them, those of a row, or one. Chunks go through ``slots`` places in turn.
    ``grid`` blocks, along output channels, rows and images, share the macro tiles. The blocks of a ``gang``, one on
    each core, work side by side and share their loads: pixels along output channels, weights along rows.
    """

    rows: int
    columns: int
    wide: int
    folds: int
    taps_y: int
    taps_x: int
    slots: int
    grid: tuple[int, int, int] = (1, 1, 1)
    gang: bool = False

    @property
    def pixels(self) -> int:
        """Output pixels of a macro tile."""
        return self.rows * self.columns


@dataclass(frozen=True)
class Patch:
    """The input pixels of a macro tile along one axis, as they lie in a slot.

    A patch has ``extent`` places, ``step`` input pixels apart. Place 0 of the tile that begins at output o, for the
    taps from t on, is input ``origin(o, t)``.
    """

    axis: Axis
    tile: int
    taps: int

    @property
    def step(self) -> int:
        """A single tap without padding needs one pixel for each output, and takes no others along."""
        return self.axis.stride if self.taps == 1 and not self._padded else 1

    @property
    def extent(self) -> int:
        return self._places(self.tile)

    @property
    def stride(self) -> int:
        """Places from one output to the next."""
        return self.axis.stride // self.step

    @property
    def split(self) -> bool:
        """Whether the taps come in several chunks."""
        return self.taps < self.axis.taps

    @property
    def starts(self) -> range:
        """First outputs of the tiles."""
        return range(0, self.axis.out, self.tile)

    @property
    def groups(self) -> range:
        """First taps of the chunks."""
        return range(0, self.axis.taps, self.taps)

    def origin(self, start: int, tap: int) -> int:
        """Input pixel of place 0; it may be outside."""
        return start * self.axis.stride - self.axis.pad + tap * self.axis.dilation

    def part(self, start: int, tap: int) -> tuple[int, int, int]:
        """Places before the input, inside and behind; with a step those inside alone."""
        if self.step > 1:
            return 0, min(self.tile, self.axis.out - start), 0
        origin = self.origin(start, tap)
        before = min(max(-origin, 0), self.extent)
        end = min(max(self.axis.size - origin, before), self.extent)
        return before, end - before, self.extent - end

    @property
    def parts(self) -> set[tuple[int, int, int]]:
        """Of all tiles and groups of taps."""
        return {self.part(start, tap) for start in self.starts for tap in self.groups}

    @property
    def zeros_behind(self) -> bool:
        """Whether an output needs places behind the input; those of outputs that do not exist need no zeros."""
        return any(
            self.origin(start, tap) + self._places(min(self.tile, self.axis.out - start)) > self.axis.size
            for start in self.starts
            for tap in self.groups
        ) and any(after for _, _, after in self.parts)

    def _places(self, outputs: int) -> int:
        if self.step > 1:
            return outputs
        return (outputs - 1) * self.axis.stride + (self.taps - 1) * self.axis.dilation + 1

    @property
    def _padded(self) -> bool:
        a = self.axis
        return a.pad > 0 or (a.out - 1) * a.stride + a.window - a.pad > a.size


def patches(problem: Conv, tiling: Tiling) -> tuple[Patch, Patch]:
    """Along y and x."""
    y = Patch(problem.y, tiling.rows, tiling.taps_y)
    return y, Patch(problem.x, tiling.columns, tiling.taps_x)


def chunks_of(config: ChipConfig, problem: Conv, tiling: Tiling) -> int:
    """Chunks of a macro tile."""
    y, x = patches(problem, tiling)
    return problem.folds(config) // tiling.folds * len(y.groups) * len(x.groups)


def tiling_text(tiling: Tiling) -> str:
    """A tiling in one line."""
    t = tiling
    parts = f"{t.rows} x {t.columns} pixels, {t.wide} column tiles, {t.folds} folds, {t.taps_y} x {t.taps_x} taps"
    return f"{parts}, {t.slots} slots, blocks {' x '.join(map(str, t.grid))}{', gang' * t.gang}"
