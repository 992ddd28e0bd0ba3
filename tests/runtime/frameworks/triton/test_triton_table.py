"""The generated page of operations."""

from pathlib import Path

from sley.runtime.frameworks.from_triton.conversion import LOWERINGS
from sley.runtime.frameworks.from_triton.refusal import REASONS
from sley.runtime.frameworks.from_triton.table import page

PAGE = Path(__file__).parents[4] / "docs/reference/triton.md"


def test_the_page() -> None:
    """Write it again with ``python -m sley.runtime.frameworks.from_triton.table docs/reference/triton.md``."""
    assert PAGE.read_text() == page()
    assert not set(LOWERINGS) & set(REASONS)
