"""Public names: those of every portion are the kept list, each exists; some portions import them when first used."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PORTIONS = ("abi", "hw", "driver", "runtime", "sim", "fpga", "explore")
KEPT = ROOT / "docs" / "reference" / "public-names.txt"
LAZY = ("hw", "sim", "fpga", "explore")
CHEAP = ("sley.abi", "sley.sim.errors", "sley.fpga.bridge.transport")
"""What must be cheap to import."""


def test_public_names_are_those_of_the_kept_list() -> None:
    """A name that goes or comes is a change of the API: see docs/reference/versions.md, then edit the list."""
    names = [f"sley.{portion}.{name}" for portion in PORTIONS for name in import_module(f"sley.{portion}").__all__]
    kept = KEPT.read_text().split()
    assert kept == sorted(kept)
    assert (sorted(set(names) - set(kept)), sorted(set(kept) - set(names))) == ([], []), "names that came, that went"


@pytest.mark.parametrize("portion", PORTIONS)
def test_every_name_is_there_once_and_described(portion: str) -> None:
    module = import_module(f"sley.{portion}")
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        value = getattr(module, name)
        assert not callable(value) or value.__doc__, f"sley.{portion}.{name} has no docstring"


@pytest.mark.parametrize("portion", LAZY)
def test_names_that_are_imported_when_first_used(portion: str) -> None:
    module = import_module(f"sley.{portion}")
    text = ast.parse((ROOT / portion / "sley" / portion / "__init__.py").read_text())
    (typed,) = [node for node in text.body if isinstance(node, ast.If)]
    homes = {alias.name: node.module for node in typed.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert homes == module._HOMES
    assert module.__all__ == sorted(homes)
    for name in module.__all__:
        assert getattr(module, name) is getattr(import_module(str(homes[name])), name)
    with pytest.raises(AttributeError, match=f"module 'sley.{portion}' has no attribute 'nonsense'"):
        _ = module.nonsense


@pytest.mark.parametrize("cheap", CHEAP)
def test_cheap_imports(cheap: str) -> None:
    program = f"import sys, {cheap}; sys.exit('amaranth' in sys.modules or 'numpy' in sys.modules)"
    assert not subprocess.run([sys.executable, "-c", program]).returncode
