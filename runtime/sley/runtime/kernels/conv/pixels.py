"""Loads of pixels: the patch of a macro tile, with fill values for what is outside of the image, into a slot."""

from typing import Protocol

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import Share
from sley.runtime.assembler.kernel import KernelBuilder
from sley.runtime.assembler.operands import ZERO, Register, Semaphore, Value
from sley.runtime.kernels.conv.problem import Conv
from sley.runtime.kernels.conv.tiling import Patch, Tiling
from sley.runtime.kernels.conv.walk import Level, Walk, least


class Slots(Protocol):
    """Where patches lie: fold f of slot s begins in row ``s * a_step + f * patch``."""

    @property
    def patch(self) -> int: ...

    @property
    def a_step(self) -> int: ...


class Pixels:
    """Writes the loads of pixels, for convolutions and pooling. Who derives from it sets the attributes."""

    k: KernelBuilder
    config: ChipConfig
    problem: Conv
    tiling: Tiling
    place: Slots
    patch_y: Patch
    patch_x: Patch
    arg: dict[str, Register]
    free: Semaphore
    walk: Walk
    tap_x: Level
    tap_y: Level
    fold: Level
    out_x: Level
    out_y: Level
    rounds: Register
    slot: Register
    """That is filled in this round, and below the one of the round before."""
    _known: dict[str, Value]

    def _count_rounds(self, *axes: tuple[Register, int]) -> None:
        """Times the tiles of this block along each axis of the grid."""
        k = self.k
        with k.scratch("count share") as (count, share):
            for (index, size), over in zip(axes, self.tiling.grid, strict=True):
                if over == 1:
                    k.mul(self.rounds, self.rounds, size)
                    continue
                k.mov(count, size // over)
                if size % over:
                    k.mov(share, size % over)
                    with k.if_(index, "<", share):
                        k.add(count, count, 1)
                k.mul(self.rounds, self.rounds, count)

    def _next_slot(self) -> None:
        """LOAD waits until the next slot is free."""
        k = self.k
        self._forget_parameters()
        k.add(self.slot, self.slot, 1)
        with k.scratch("slots") as (end,):
            k.mov(end, self.tiling.slots)
            with k.if_(self.slot, "==", end):
                k.mov(self.slot, 0)
        k.load(ZERO, ZERO, 0, wait=self.free)

    def _load_pixels(self) -> None:
        k, p, place, y, x = self.k, self.problem, self.place, self.patch_y, self.patch_x
        with k.scratch("address row above high left wide") as (address, row, y0, y1, x0, x1):
            above, high, below = self._part(y, self.out_y, self.tap_y, (y0, y1), address, self.arg["x"], p.steps.row)
            left, wide, right = self._part(x, self.out_x, self.tap_x, (x0, x1), address, address, p.steps.pixel)
            if any(inside == 0 for _, inside, _ in x.parts):
                above, high, below = self._unless_empty(above, high, wide, (y0, y1)), y1, True
            self._scaled(address, self.fold.at, self.config.row_bytes, address)
            self._set_load(run_bytes=self._run_bytes(row), chunks=self.tiling.folds, chunk_stride=place.patch)
            self._set_load(local_stride=1, local_stride2=x.extent)
            self._set_load(mem_stride=p.steps.pixel * x.step, mem_stride2=p.steps.row * y.step)
            k.mul(row, self.slot, place.a_step)
            with k.scratch("first count") as (first, count):
                self._scaled(first, above, x.extent, row)
                self._sum(first, left)
                self._set_load(pad_runs=self._rest(count, x.extent, left, wide) if right else 0, count2=high)
                k.load(address, first, wide, share=self._share(Share.ROW))
                if left or above or below:
                    self._set_load(run_bytes=0, pad_runs=0)
                if left:
                    self._difference(first, left)
                    self._set_load(count2=high)
                    k.load(ZERO, first, left)
                if above:
                    self._set_load(count2=above)
                    k.load(ZERO, row, x.extent)
                if below:
                    rest = self._rest(count, y.extent, above, high)
                    self._set_load(count2=rest)
                    self._behind(first, row, above, high)
                    k.load(ZERO, first, x.extent)

    def _part(
        self,
        patch: Patch,
        out: Level,
        tap: Level,
        registers: tuple[Register, Register],
        rd: Register,
        plus: Register,
        step: int,
    ) -> tuple[Value, Value, bool]:
        """Places of the patch before the input and inside, and whether zeros are behind it; rd = plus + the offset of
        the first pixel inside, ``step`` bytes for each."""
        k, axis, parts = self.k, patch.axis, patch.parts
        if not (isinstance(out.at, Register) or isinstance(tap.at, Register)):
            assert isinstance(out.at, int)
            assert isinstance(tap.at, int)
            found = patch.part(out.at, tap.at)
            self._scaled(rd, max(patch.origin(out.at, tap.at), 0), step, plus)
            return found[0], found[1], patch.zeros_behind and found[2] > 0
        before, origin = registers
        self._origin(origin, patch, out, tap)
        if patch.step > 1:
            self._scaled(rd, origin, step, plus)
            return 0, least(k, origin, out, patch.tile), False
        befores, insides = {part[0] for part in parts}, {part[1] for part in parts}
        if befores != {0}:
            k.max(before, origin, ZERO)
            self._scaled(rd, before, step, plus)
            k.sub(before, ZERO, origin)
            k.max(before, before, ZERO)
            if max(befores) == patch.extent:
                k.min(before, before, patch.extent)
        else:
            self._scaled(rd, origin, step, plus)
        left: Value = before if len(befores) > 1 else befores.pop()
        if len(insides) == 1:
            return left, insides.pop(), patch.zeros_behind
        inside = origin
        k.sub(inside, ZERO, origin)
        k.add(inside, inside, axis.size)
        k.min(inside, inside, patch.extent)
        self._difference(inside, left)
        k.max(inside, inside, ZERO)
        return left, inside, patch.zeros_behind

    def _origin(self, rd: Register, patch: Patch, out: Level, tap: Level) -> None:
        """rd = input pixel of place 0."""
        k, axis = self.k, patch.axis
        k.mov(rd, -axis.pad)
        self._scaled(rd, out.at, axis.stride, rd)
        self._scaled(rd, tap.at, axis.dilation, rd)

    def _unless_empty(self, above: Value, high: Value, wide: Value, registers: tuple[Register, Register]) -> Register:
        """``above`` and ``high`` in registers; where no pixel of a row is inside, the whole patch is above."""
        k = self.k
        for register, value in zip(registers, (above, high), strict=True):
            if value is not register:
                k.mov(register, value)
        if not isinstance(wide, Register):
            wide = ZERO if wide == 0 else wide
        if isinstance(wide, Register):
            with k.if_(wide, "==", ZERO):
                k.mov(registers[0], self.patch_y.extent)
                k.mov(registers[1], 0)
        return registers[0]

    def _run_bytes(self, rd: Register) -> Value:
        """Bytes of a pixel's channels in the chunk."""
        k, p = self.k, self.problem
        total, whole = p.channels * p.dtype.bytes, self.tiling.folds * self.config.row_bytes
        if not isinstance(self.fold.at, Register):
            return min(total, whole)
        if total % whole == 0:
            return whole
        k.mul(rd, self.fold.at, -self.config.row_bytes)
        k.add(rd, rd, total)
        k.min(rd, rd, whole)
        return rd

    def _share(self, share: Share) -> Share:
        return share if self.tiling.gang else Share.NONE

    # Small sums

    def _sum(self, rd: Register, value: Value) -> None:
        if value is not ZERO and value != 0:
            self.k.add(rd, rd, value)

    def _difference(self, rd: Register, value: Value) -> None:
        if value is not ZERO and value != 0:
            self.k.sub(rd, rd, value)

    def _rest(self, rd: Register, size: int, first: Value, second: Value) -> Value:
        """``size`` - ``first`` - ``second``."""
        if not isinstance(first, Register) and not isinstance(second, Register):
            return size - first - second
        self.k.mov(rd, size)
        self._difference(rd, first)
        self._difference(rd, second)
        return rd

    def _behind(self, rd: Register, row: Register, above: Value, high: Value) -> None:
        """rd = the first row behind ``above`` and ``high`` rows of the patch."""
        k, extent = self.k, self.patch_x.extent
        if not isinstance(above, Register) and not isinstance(high, Register):
            k.add(rd, row, (above + high) * extent)
            return
        k.mov(rd, 0)
        self._sum(rd, above)
        self._sum(rd, high)
        k.mul(rd, rd, extent)
        k.add(rd, rd, row)

    # Parameters and products

    def _forget_parameters(self) -> None:
        """Here the program is reached from several places."""
        self._known = {}

    def _set_load(self, **params: Value) -> None:
        """Sets the parameters of LOAD that are not known to have these values."""
        for name, value in params.items():
            if isinstance(value, Register) or self._known.get(name) != value:
                self.k.set(Unit.LOAD, **{name: value})
                if isinstance(value, Register):
                    self._known.pop(name, None)
                else:
                    self._known[name] = value

    def _scaled(self, rd: Register, value: Value, factor: int, plus: Register) -> None:
        """rd = plus + value * factor."""
        k = self.k
        if not isinstance(value, Register):
            if value * factor or rd is not plus:
                k.add(rd, plus, value * factor)
            return
        if rd is plus:
            with k.scratch("product") as (product,):
                k.mul(product, value, factor)
                k.add(rd, plus, product)
        else:
            k.mul(rd, value, factor)
            k.add(rd, rd, plus)
