"""Functions of one's own: what is refused, and what finds them."""

from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from types import SimpleNamespace

import pytest

from sley.abi.config import PRESETS, ConfigError
from sley.abi.functions import own
from sley.abi.functions.own import FIRST_CODE, LAST_CODE, OwnFunction, OwnFunctionError, own_functions
from sley.abi.functions.table import Function
from sley.abi.vector.chains import Chain, chain_of

NANO = PRESETS["nano"].replace(vector_chains=1)
MINE = OwnFunction(17, "MINE", "a test", golden="math:sqrt", gateware="fractions:Fraction")
Install = Callable[..., None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Makes these the functions that are installed, by the names of their entry points."""

    def installs(**functions: object) -> None:
        points = [SimpleNamespace(name=name, load=lambda value=value: value) for name, value in functions.items()]
        monkeypatch.setattr(own, "entry_points", lambda group: points if group == own.GROUP else [])
        own_functions.cache_clear()

    yield installs
    monkeypatch.undo()
    own_functions.cache_clear()


@pytest.mark.parametrize("code", [FIRST_CODE - 1, LAST_CODE + 1, 0, -1])
def test_codes_outside(code: int) -> None:
    with pytest.raises(OwnFunctionError, match=rf"code is {code}; a function of one's own has one in 16\.\.30"):
        OwnFunction(code, "F")


def test_both_ends_of_the_codes_are_functions() -> None:
    assert [int(OwnFunction(code)) for code in (FIRST_CODE, LAST_CODE)] == [16, 30]
    assert repr(MINE) == "<OwnFunction.MINE: 17>"


def test_what_is_installed(install: Install) -> None:
    install(mine=MINE, other=OwnFunction(18, "OTHER"))
    assert own_functions() == {"mine": 17, "other": 18}
    config = NANO.replace(vector_functions=("mine", "exp2"))
    assert config.vector_functions == (Function.EXP2, MINE)
    assert config.capabilities["vector_functions"] == 1 << Function.EXP2 | 1 << 17
    assert type(config).from_capabilities("nano", config.capabilities) == config
    assert type(config).from_json(config.to_json()) == config
    assert chain_of(Chain(function=MINE).words()) == Chain(function=MINE)


def test_the_name_of_a_function_of_sley(install: Install) -> None:
    install(exp2=OwnFunction(18, "EXP2"))
    with pytest.raises(OwnFunctionError, match="EXP2 is a function of Sley; give yours another name"):
        own_functions()


def test_an_entry_point_that_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = EntryPoint("broken", "no_such_module:MINE", own.GROUP)
    monkeypatch.setattr(own, "entry_points", lambda group: [broken])
    own_functions.cache_clear()
    with pytest.raises(OwnFunctionError, match="the entry point broken = no_such_module:MINE cannot be loaded"):
        own_functions()


def test_two_with_one_code(install: Install) -> None:
    install(mine=MINE, other=OwnFunction(17, "OTHER"))
    with pytest.raises(OwnFunctionError, match="OTHER and MINE have code 17: change one of them"):
        own_functions()


def test_an_entry_point_that_names_something_else(install: Install) -> None:
    install(mine=5)
    with pytest.raises(OwnFunctionError, match="the entry point mine is 5; it must name an OwnFunction"):
        own_functions()


def test_one_that_is_not_installed(install: Install) -> None:
    capabilities = NANO.capabilities | {"vector_functions": 1 << 17}
    words = Chain(function=MINE).words()
    install()
    with pytest.raises(ConfigError, match="no function with code 17 is installed"):
        type(NANO).from_capabilities("nano", capabilities)
    with pytest.raises(ConfigError, match="vector_functions has 'mine'; there are exp2"):
        NANO.replace(vector_functions=("mine",))
    assert chain_of(words) is None


def test_attributes() -> None:
    import fractions
    import math

    assert MINE.load_golden() is math.sqrt
    assert MINE.load_gateware() is fractions.Fraction
    assert b"class Fraction" in MINE.source
    for golden in ("math:nothing", "no_such_module:f", "math"):
        with pytest.raises(OwnFunctionError, match=f"{golden} cannot be loaded: .*; write module:attribute"):
            OwnFunction(20, "F", golden=golden).load_golden()
