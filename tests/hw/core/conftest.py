"""Lets the tests of this folder import their helpers, whose assertions explain themselves like those of tests."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("load_bench", "matrix_bench", "vector_bench")
