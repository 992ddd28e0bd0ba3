"""The tables of ``sley bench suite``: one line for each layer of a family, and one for each family."""

from collections.abc import Iterator, Sequence

from rich.box import SIMPLE
from rich.table import Table

from sley.bench.gemm.scalesim import Array, Peer
from sley.bench.gemm.suite import Result, distinct, geometric_mean

PEER_NOTE = "*: by SCALE-Sim's formula, not run"


def layer_table(family: str, results: Sequence[Result]) -> Table:
    """The layers of one family."""
    arrays = list(results[0].peers)
    headings = ["rows\nrun", "cycles", "/ lower\nbound", "of peak\nMACs", "of beats\nneeded", "matrix\ncycles"]
    for array in arrays:
        headings += [f"SCALE-Sim\n{array}", "/ ours", "/ our\nmatrix"]
    table = _table(family, ["layer", "M x N x K"], headings)
    for result in results:
        r = result.measured
        cells = [f"{r.problem.m:,}", f"{r.cycles:,}", f"{r.cycles / r.bound.cycles:.3f}"]
        cells += [f"{r.share_of_peak:.1%}", f"{r.share_of_beats:.1%}", f"{r.matrix_cycles:,}"]
        for array in arrays:
            cells += [_peer(result.peers[array]), f"{result.ratio(array):.3f}", f"{result.matrix_ratio(array):.3f}"]
        table.add_row(result.layer.name, " x ".join(map(str, result.layer.size)), *cells)
    if any(not peer.run for result in results for peer in result.peers.values()):
        table.caption = PEER_NOTE
    return table


def summary_table(results: Sequence[Result]) -> Table:
    """The families: each as a whole, its layers as often as it has them, and its ratios over distinct sizes."""
    arrays = list(results[0].peers)
    headings = ["sizes", "cycles of\nall layers", "of peak\nMACs"]
    for array in arrays:
        headings += [f"SCALE-Sim {array} / ours,\ngeometric mean", "least", "/ our matrix,\ngeometric mean", "least"]
    table = _table("families", ["family"], headings)
    for family in dict.fromkeys(result.layer.family for result in results):
        table.add_row(family, *_summary([r for r in results if r.layer.family == family], arrays))
    table.add_section()
    sizes = distinct(results)
    table.add_row("all", f"{len(sizes)}", "", "", *_ratios(sizes, arrays))
    return table


def _table(title: str, names: Sequence[str], numbers: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", caption_justify="left", box=SIMPLE, padding=(0, 1, 0, 0))
    for name in names:
        table.add_column(name, no_wrap=True)
    for number in numbers:
        table.add_column(number, justify="right", no_wrap=True)
    return table


def _summary(results: Sequence[Result], arrays: Sequence[Array]) -> Iterator[str]:
    sizes = distinct(results)
    yield f"{len(sizes)}"
    if all(result.whole for result in results):
        cycles = sum(result.layer.count * result.measured.cycles for result in results)
        macs = sum(result.layer.count * result.measured.macs for result in results)
        yield from (f"{cycles:,}", f"{macs / (cycles * results[0].measured.peak_macs):.1%}")
    else:
        yield from ("", "")
    yield from _ratios(sizes, arrays)


def _ratios(results: Sequence[Result], arrays: Sequence[Array]) -> Iterator[str]:
    for array in arrays:
        ratios = [result.ratio(array) for result in results]
        yield f"{geometric_mean(ratios):.3f}"
        yield f"{min(ratios):.3f}"
        ratios = [result.matrix_ratio(array) for result in results]
        yield f"{geometric_mean(ratios):.3f}"
        yield f"{min(ratios):.3f}"


def _peer(peer: Peer) -> str:
    return f"{peer.cycles:,}{' ' if peer.run else '*'}"
