import pytest

from sley.abi.transport import EngineError
from sley.driver.hardware.engines import engines, open_transport, parse_url


def test_urls() -> None:
    assert parse_url("rtl:base") == ("rtl", "base", {})
    assert parse_url("pysim") == ("pysim", "", {})
    assert parse_url("rtl:quad?memory=2M&latency=40") == ("rtl", "quad", {"memory": str(2 << 20), "latency": "40"})
    assert parse_url("model:nano?memory=4096")[2] == {"memory": "4096"}


@pytest.mark.parametrize("url", ["", ":base", "rtl:base?memory", "rtl:base?memory=much", "rtl:base?memory=0M"])
def test_bad_urls(url: str) -> None:
    with pytest.raises(EngineError):
        parse_url(url)


@pytest.mark.parametrize("url", [None, 3, b"fast:base"])
def test_what_is_no_url(url: object) -> None:
    with pytest.raises(EngineError, match=r"names no engine; write for example fast:base"):
        open_transport(url)  # type: ignore[arg-type]


def test_the_engines_of_this_repository_are_installed() -> None:
    assert {"pysim", "rtl", "model"} <= set(engines())


def test_unknown_engine_and_preset() -> None:
    with pytest.raises(EngineError, match=r"no engine 'warp'; installed are .*model"):
        open_transport("warp:base")
    with pytest.raises(EngineError, match="no preset 'huge'"):
        open_transport("model:huge")


def test_memory_size_reaches_the_engine() -> None:
    assert open_transport("model:nano?memory=256K").memory_bytes == 256 << 10
