"""Element types: widths and codes agree, numpy has every type, chips have sets of them."""

import json

import numpy as np
import pytest

from sley.abi.config import PRESETS, ChipConfig, ConfigError
from sley.abi.types import OPERAND_TYPES, SUM_TYPES, TYPE_BITS, TYPES, WORD_BITS, WORD_TYPES, ElementType
from sley.runtime.device.types import element_type, numpy_type


def test_every_type_is_described_and_named_once() -> None:
    assert set(TYPES) == set(ElementType)
    assert all(t < 1 << TYPE_BITS for t in ElementType)
    assert len({info.name for info in TYPES.values()}) == len({info.numpy for info in TYPES.values()}) == len(TYPES)
    assert set(SUM_TYPES) == set(OPERAND_TYPES)
    assert set(SUM_TYPES.values()) == set(WORD_TYPES)
    assert all(t.bits == WORD_BITS for t in WORD_TYPES)


@pytest.mark.parametrize("t", ElementType)
def test_a_code_tells_width_and_kind(t: ElementType) -> None:
    assert t.bytes == 1 << (t & 3)
    assert t.is_float == bool(t >> 3)
    assert (not t.is_float and t.info.low == 0) == (t >> 2 == 1)


@pytest.mark.parametrize("t", ElementType)
def test_numpy_agrees(t: ElementType) -> None:
    dtype = numpy_type(t)
    assert (dtype.itemsize, element_type(dtype), ElementType.of(dtype.name)) == (t.bytes, t, t)
    if t.is_float:
        high, infinity = np.float64(t.info.high), np.float64(np.inf)
        assert np.float64(np.array(high).astype(dtype)) == high
        with np.errstate(over="ignore"):
            assert np.float64(np.array(high * (1 + 2.0**-t.info.fraction_bits)).astype(dtype)) == infinity
    else:
        assert (t.info.low, t.info.high) == (np.iinfo(dtype).min, np.iinfo(dtype).max)


def test_types_that_no_device_has() -> None:
    assert [element_type(t) for t in (np.int64, np.bool_, np.float64, np.complex64)] == [None] * 4


def test_a_chip_has_a_set_of_them() -> None:
    both = (ElementType.INT8, ElementType.BF16)
    for given in (("bf16", "int8"), ["int8", ElementType.BF16], {"int8", "bf16"}, frozenset(both)):
        config = ChipConfig(operand_types=given)  # type: ignore[arg-type]
        assert (config.operand_types, config.lane_bits) == (both, 16)
        assert (config.lane_elements(), config.lane_elements(ElementType.BF16)) == (2, 1)
        assert (config.fold_depth(), config.fold_depth(ElementType.BF16)) == (8, 4)
    assert ChipConfig(operand_types="int8") == ChipConfig()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("bf16",), "must contain int8"),
        ((), "must contain int8"),
        (("int8", "fp32"), "'fp32'; the array multiplies int8, bf16"),
        (("int8", ElementType.FP32), "'fp32'"),
        (("int8", "float8"), "'float8'"),
        ((0, 13), "has 0;"),
        (None, "has None"),
    ],
)
def test_sets_that_no_chip_has(given: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ChipConfig(operand_types=given)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", PRESETS)
def test_capabilities_and_files_keep_the_set(name: str) -> None:
    config = PRESETS[name]
    assert ChipConfig.from_capabilities(name, config.capabilities) == config
    assert ChipConfig.from_json(config.to_json()) == config
    assert json.loads(config.to_json())["parameters"]["operand_types"][0] == "int8"


def test_files_and_devices_of_other_versions() -> None:
    with pytest.raises(ConfigError, match="ABI 3"):
        ChipConfig.from_json('{"parameters": {"bf16": true}}')
    with pytest.raises(ConfigError, match="code 15"):
        ChipConfig.from_capabilities("new", ChipConfig().capabilities | {"operand_types": 0x8001})
