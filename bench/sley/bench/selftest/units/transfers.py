"""Cases of Load and Store: runs, slabs, fill, lists, permutations, shared loads."""

from collections.abc import Iterator
from functools import partial

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import Share, Space
from sley.bench.selftest.units.case import ACCUMULATOR, SCRATCHPAD, Bed, Case, row_bytes
from sley.runtime.assembler.operands import Register


def transfer_cases(config: ChipConfig) -> Iterator[Case]:
    """Load writes rows from the middle on; Store writes back over the source of rows that are loaded again."""
    for space in (SCRATCHPAD, ACCUMULATOR):
        size, name = row_bytes(config, space), space.name.lower()

        def runs(bed: Bed, space: Space = space, size: int = size) -> None:
            k, first = bed.k, bed.half[space]
            k.set(Unit.LOAD, run_bytes=size + 1, chunks=2, mem_stride=size + 3, local_stride=2, fill=0x40302010)
            k.add(bed.source, bed.source, 1)
            bed.step(k.load, bed.source, bed.row("first", first), 3, space=space)

        def slabs(bed: Bed, space: Space = space, size: int = size) -> None:
            k, first = bed.k, bed.half[space]
            k.set(Unit.LOAD, run_bytes=size - 1, chunks=1, mem_stride=5, local_stride=2, pad_runs=1, fill=-1)
            k.set(Unit.LOAD, count2=2, mem_stride2=-3, local_stride2=1)
            k.add(bed.source, bed.source, 64)
            bed.step(k.load, bed.source, bed.row("first", first), 2, space=space)

        def strides(bed: Bed, space: Space = space, size: int = size) -> None:
            k, last = bed.k, bed.rows[space] - 1
            k.set(Unit.LOAD, run_bytes=2 * size, chunks=2, chunk_stride=-2, mem_stride=2 * size, local_stride=-1)
            bed.step(k.load, bed.source, bed.row("last", last), 2, space=space)

        yield Case("load", f"runs with fill, {name}", runs)
        yield Case("load", f"slabs with padding, {name}", slabs)
        yield Case("load", f"strides downwards, {name}", strides)
        yield Case("store", f"runs, {name}", partial(_stored, space=space, slabs=0))
        yield Case("store", f"slabs, {name}", partial(_stored, space=space, slabs=2))
        if config.gather:
            yield Case("load", f"list, {name}", partial(_listed, space=space, loads=True))
            yield Case("store", f"list, {name}", partial(_listed, space=space, loads=False))
    yield from _permuted(config)
    if config.cores > 1:
        for share in Share:
            if share is not Share.NONE:
                yield Case("load", f"shared by {share.name.lower()}", partial(_shared, share=share), gang=True)


def _own_copy(bed: Bed) -> Register:
    """Address of a place that no other core writes: the core's own result, which is written at the end again."""
    return bed.k.reg("own", bed.target)


def _stored(bed: Bed, space: Space, slabs: int) -> None:
    """Stores of runs that begin and end inside of beats, loaded again as one run."""
    k, size = bed.k, row_bytes(bed.config, space)
    own = _own_copy(bed)
    k.set(Unit.STORE, run_bytes=size - 1, mem_stride=size + 2, local_stride=2)
    if slabs:
        k.set(Unit.STORE, count2=slabs, mem_stride2=5 * size + 1, local_stride2=1)
    k.add(own, own, 3)
    bed.step(k.store, own, 0, 2, space=space)
    k.sub(own, own, 3)
    _read_back(bed, own, space)


def _read_back(bed: Bed, own: Register, space: Space) -> None:
    k, size = bed.k, row_bytes(bed.config, space)
    k.set(Unit.LOAD, run_bytes=size, chunks=1, mem_stride=size, local_stride=1, chunk_stride=1, count2=1, pad_runs=0)
    bed.step(k.load, own, bed.row("back", bed.half[space]), 8, space=space)


def _listed(bed: Bed, space: Space, loads: bool) -> None:
    """N runs by the list in the last row of the accumulators."""
    k, size, runs = bed.k, row_bytes(bed.config, space), bed.config.array
    last = bed.rows[ACCUMULATOR] - 1
    if loads:
        k.set(Unit.LOAD, run_bytes=size - 1, chunks=1, local_stride=1, fill=-1, list_row=last)
        rows = min(runs, bed.half[space] - 1)
        bed.step(k.load, bed.source, bed.row("first", bed.half[space]), rows, space=space, by_list=True)
        return
    own = _own_copy(bed)
    k.set(Unit.STORE, run_bytes=size, local_stride=1, list_row=last)
    bed.step(k.store, own, 0, min(runs, bed.half[space]), space=space, by_list=True)
    _read_back(bed, own, space)


def _permuted(config: ChipConfig) -> Iterator[Case]:
    """Transposed blocks and interleaved pairs, into the scratchpad."""
    interleaves = (False, True) if config.lane_elements() > 1 else (False,)
    for interleave in interleaves:
        for transpose in (False, True):
            if not interleave and not transpose:
                continue
            name = " and ".join(w for w, on in (("interleave", interleave), ("transpose", transpose)) if on)

            def body(bed: Bed, interleave: bool = interleave, transpose: bool = transpose) -> None:
                k, n, size = bed.k, bed.config.array, bed.config.row_bytes
                runs = (n if transpose else 1) * (2 if interleave else 1)
                apart = n if transpose else 1  # else rows of both halves are the same ones
                k.set(Unit.LOAD, run_bytes=size, chunks=1, mem_stride=size + 1, local_stride=1, chunk_stride=apart)
                bed.step(
                    k.load,
                    bed.source,
                    bed.row("first", bed.half[SCRATCHPAD]),
                    runs,
                    space=SCRATCHPAD,
                    interleave=interleave,
                    transpose=transpose,
                )

            yield Case("load", name, body)


def _shared(bed: Bed, share: Share) -> None:
    k, size = bed.k, bed.config.row_bytes
    k.set(Unit.LOAD, run_bytes=size, chunks=1, mem_stride=size, local_stride=1)
    k.add(bed.source, bed.source, size)
    bed.step(k.load, bed.source, bed.row("first", bed.half[SCRATCHPAD]), 4, space=SCRATCHPAD, share=share)
