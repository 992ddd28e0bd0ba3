"""A finished kernel program."""

from dataclasses import dataclass

from sley.abi.asm import disassemble, words_to_bytes


@dataclass(frozen=True)
class Program:
    """Instruction words with what a launch must know.

    ``args`` are the names of the kernel's arguments in order; ``config_hash`` is the chip it was built for, 0 for any.
    ``strided`` are those arguments whose arrays may have any strides, which the program knows. ``bounds`` are
    arguments, with the largest absolute value of their elements: arrays of int32 that the program only reads. ``reads``
    are others that it only reads, as far as that is known.
    """

    name: str
    words: tuple[int, ...]
    args: tuple[str, ...] = ()
    config_hash: int = 0
    strided: frozenset[str] = frozenset()
    bounds: tuple[tuple[str, int], ...] = ()
    reads: frozenset[str] = frozenset()

    @property
    def code(self) -> bytes:
        """The program as it stands in memory."""
        return words_to_bytes(self.words)

    def __str__(self) -> str:
        args = ", ".join(f"r{8 + i} {name}" for i, name in enumerate(self.args))
        return f"; {self.name}({args})\n{disassemble(self.words)}"
