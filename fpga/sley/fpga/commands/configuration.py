"""The chip that a command is told to make."""

import typer

from sley.abi.config import ChipConfig, ConfigError, configuration


def chosen_configuration(spec: str) -> ChipConfig:
    """A preset, or what a JSON file holds."""
    try:
        return configuration(spec)
    except ConfigError as error:
        raise typer.BadParameter(str(error), param_hint="CONFIG") from None
