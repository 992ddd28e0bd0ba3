"""Packages of other people's designs, which only the extra ``foreign`` brings."""

import warnings
from typing import Any

import pytest

REASON = "needs designs from PyPI: pip install -e '.[foreign]'"


class Package:
    """A module that is imported when something of it is asked for; where it is not installed the test is skipped."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return getattr(pytest.importorskip(self._name, reason=REASON), name)
