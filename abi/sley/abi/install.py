"""How a missing package of an optional extra is installed: the one source of that sentence in error texts.

The distribution is not in a package index, so an extra is installed from a clone of the repository.
"""


def extra(name: str) -> str:
    """The command that installs the extra ``name``, and where it is run, as the end of an error text."""
    return f"pip install -e '.[{name}]' in the clone of Sley's repository"
