"""Names of one signal in two texts of a chip.

Amaranth numbers signals and modules of one name by their place in the module around them, which depends on what else
passes through it. Those of one name are in the same order in both texts.
"""

import re
from collections import defaultdict
from collections.abc import Iterable


def same_names(names: Iterable[str], wanted: Iterable[str]) -> dict[str, str]:
    """For each name the one that the same signal has among ``wanted``, or its own where there are not as many."""
    theirs, result = _groups(wanted), {}
    for base, group in _groups(names).items():
        others = theirs.get(base, [])
        result |= dict(zip(group, others if len(others) == len(group) else group, strict=True))
    return result


def _groups(names: Iterable[str]) -> dict[str, list[str]]:
    found = defaultdict(list)
    for name in names:
        found[re.sub(r"\$\d+", "", name)].append(name)
    return {base: sorted(group, key=_numbers) for base, group in found.items()}


def _numbers(name: str) -> list[int]:
    """The number of each part of a name; the first of its name in a module has none."""
    found = (re.search(r"\$(\d+)$", part) for part in name.split("."))
    return [int(number[1]) if number else -1 for number in found]
