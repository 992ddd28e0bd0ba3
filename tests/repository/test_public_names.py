"""The public names of portions that import them when they are first used: each exists, and none is imported before."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LAZY = {"fpga": "sley.fpga.bridge.transport", "sim": "sley.sim.errors"}
"""Portions, and what of each must be cheap to import."""


@pytest.mark.parametrize("portion", LAZY)
def test_public_names(portion: str) -> None:
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


@pytest.mark.parametrize("cheap", LAZY.values())
def test_cheap_imports(cheap: str) -> None:
    program = f"import sys, {cheap}; sys.exit('amaranth' in sys.modules or 'numpy' in sys.modules)"
    assert not subprocess.run([sys.executable, "-c", program]).returncode
