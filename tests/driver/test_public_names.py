"""What the package shows."""

import inspect

import sley.driver
from sley.driver import errors


def test_every_name_is_there_and_named_once() -> None:
    names = sley.driver.__all__
    assert len(set(names)) == len(names)
    assert all(hasattr(sley.driver, name) for name in names)


def test_every_error_is_shown() -> None:
    found = {name for name, kind in vars(errors).items() if inspect.isclass(kind) and issubclass(kind, Exception)}
    assert found <= set(sley.driver.__all__)
