"""How an extra is installed is said once: ``sley.abi.install`` has the sentence of every error text."""

import re
import tomllib
from pathlib import Path

from sley.abi import install

ROOT = Path(__file__).parents[2]
PORTIONS = ("abi", "hw", "driver", "runtime", "sim", "fpga", "bench", "explore", "examples")
SOURCES = [path for portion in PORTIONS for path in sorted((ROOT / portion).rglob("*.py"))]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def test_nothing_installs_from_an_index() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found = [str(path.relative_to(ROOT)) for path in [*SOURCES, *pages] if re.search(r"sley\[\w", path.read_text())]
    assert found == []


def test_error_texts_have_the_sentence_from_the_helper() -> None:
    own = ROOT / "abi" / "sley" / "abi" / "install.py"
    texts = {str(path.relative_to(ROOT)): path.read_text() for path in SOURCES if path != own}
    found = [name for name, text in texts.items() if re.search(r"pip install\b.*\[", text)]
    assert found == []


def test_every_extra_named_is_one() -> None:
    named = {name for path in SOURCES for name in re.findall(r"install\.extra\([\"'](\w+)", path.read_text())}
    assert len(named) > 5
    assert named <= set(EXTRAS)
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for path in pages:
        for names in re.findall(r"pip install -e '\.\[([\w,]+)\]'", path.read_text()):
            assert set(names.split(",")) <= set(EXTRAS), f"{path.relative_to(ROOT)} names no extra: {names}"
    assert install.extra("fast").startswith("pip install -e '.[fast]'")
