"""The commands ``sley bench`` that guard what the chip has reached: each prints a table and fails when a promise is
missed."""

from typing import Annotated

import typer


def _judge(missed: str) -> None:
    if missed:
        typer.echo(missed, err=True)
        raise typer.Exit(1)


def shares() -> None:
    """GEMM from memory to memory as a share of peak MACs, for several shapes."""
    from sley.bench.chip.shares import measure

    _judge(measure())


def quad(
    largest: Annotated[int, typer.Argument(min=1, help="Largest M = N = K.")] = 1024,
) -> None:
    """Four cores against one: cycles of the same products on base and on quad."""
    from sley.bench.chip.quad import measure

    _judge(measure(largest))


def launch() -> None:
    """A warm launch: doorbell to the first instruction and to the first MAC."""
    from sley.bench.chip.launch import measure

    _judge(measure())


def on_chip() -> None:
    """Products whose operands are in the local memories, against the array's own bound."""
    from sley.bench.chip.on_chip import measure

    _judge(measure())


def address_spaces() -> None:
    """Translated against untranslated streams, a miss, and a change of context."""
    from sley.bench.chip.address_spaces import measure

    _judge(measure())


def host_bridge() -> None:
    """Bytes of memory against bits on the serial line of a simulated board."""
    from sley.bench.chip.host_bridge import measure

    _judge(measure())


def sdram() -> None:
    """Words on the data bus of a simulated SDRAM against cycles."""
    from sley.bench.chip.sdram import measure

    _judge(measure())


def two_chips() -> None:
    """Two chips in two threads against one: how much of two cores they use."""
    from sley.bench.chip.two_chips import measure

    _judge(measure())


COMMANDS = (shares, quad, launch, on_chip, address_spaces, host_bridge, sdram, two_chips)
