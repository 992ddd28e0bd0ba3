"""What sanitizers there are, and what they find: numbers that Python and the compiled model share."""

from enum import IntEnum

from sley.abi.transport import EngineError


class Sanitizer(IntEnum):
    """Names of ``?sanitize=``."""

    INIT = 0
    RACE = 1
    MEMORY = 2
    SYNC = 3


class Finding(IntEnum):
    """Kinds of faults in a program."""

    UNWRITTEN_ROW = 0
    UNDEFINED_ROW = 1
    DERIVED_ROW = 2
    UNWRITTEN_REGISTER = 3
    UNWRITTEN_WEIGHTS = 4
    ROW_RACE = 5
    MEMORY_RACE = 6
    OUTSIDE = 7
    STUCK = 8
    LEFTOVER = 9


OF = {
    Finding.UNWRITTEN_ROW: Sanitizer.INIT,
    Finding.UNDEFINED_ROW: Sanitizer.INIT,
    Finding.DERIVED_ROW: Sanitizer.INIT,
    Finding.UNWRITTEN_REGISTER: Sanitizer.INIT,
    Finding.UNWRITTEN_WEIGHTS: Sanitizer.INIT,
    Finding.ROW_RACE: Sanitizer.RACE,
    Finding.MEMORY_RACE: Sanitizer.RACE,
    Finding.OUTSIDE: Sanitizer.MEMORY,
    Finding.STUCK: Sanitizer.SYNC,
    Finding.LEFTOVER: Sanitizer.SYNC,
}
"""Who finds what."""


def parse_sanitizers(text: str) -> frozenset[Sanitizer]:
    """The value of the option, such as ``init,race``. Raises ``EngineError``."""
    names = [name.strip() for name in text.split(",")]
    valid = [sanitizer.name.lower() for sanitizer in Sanitizer]
    for name in names:
        if name not in valid:
            raise EngineError(f"sanitize={text}: there is no sanitizer {name!r}; there are {', '.join(valid)}")
    return frozenset(Sanitizer[name.upper()] for name in names)
