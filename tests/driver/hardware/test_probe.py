import pytest

from sley.abi.config import ABI_MAJOR, PRESETS, ChipConfig
from sley.abi.registers import RegisterMap
from sley.driver.errors import AbiMismatch, ConfigMismatch, ProbeError
from sley.driver.hardware.probe import probe


class FakeTransport:
    """Registers at their reset values, some of them changed; nothing else answers."""

    memory_bytes = 0

    def __init__(self, config: ChipConfig, **changes: dict[str, int]) -> None:
        self.values = {}
        for placed in RegisterMap(config):
            fields = {name: field.field.reset for name, field in placed.layout.fields.items()}
            self.values[placed.address] = placed.layout.pack(**(fields | changes.get(placed.register.name, {})))

    def read32(self, address: int) -> int:
        return self.values[address]

    def write32(self, address: int, value: int) -> None:
        raise AssertionError("a probe must not write")

    def read_memory(self, address: int, length: int) -> bytes:
        raise AssertionError("a probe must not read memory")

    def write_memory(self, address: int, data: bytes | bytearray | memoryview) -> None:
        raise AssertionError("a probe must not write memory")

    def barrier(self) -> None:
        pass

    def wait_irq(self, cycles: int) -> bool:
        return False

    def advance(self, cycles: int) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_recognised(name: str) -> None:
    assert probe(FakeTransport(PRESETS[name])) == PRESETS[name]


def test_another_configuration_is_custom() -> None:
    config = ChipConfig(name="mine", scratchpad_rows=1024, addr_bits=24)
    assert probe(FakeTransport(config)) == config.replace(name="custom")


def test_not_a_device() -> None:
    with pytest.raises(ProbeError, match="0xffffffff"):
        probe(FakeTransport(ChipConfig(), ID={"id": 0xFFFFFFFF}))


@pytest.mark.parametrize(("major", "minor"), [(ABI_MAJOR + 1, 9), (ABI_MAJOR - 1, 9), (ABI_MAJOR, 6)])
def test_another_abi(major: int, minor: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sley.driver.hardware.probe.ABI_MINOR", 7)
    with pytest.raises(AbiMismatch, match=rf"ABI {major}\.{minor} .* first numbers must be equal"):
        probe(FakeTransport(ChipConfig(), ABI_VERSION={"major": major, "minor": minor}))


def test_a_later_minor_version_may_hash_differently() -> None:
    changed = FakeTransport(ChipConfig(), ABI_VERSION={"major": ABI_MAJOR, "minor": 7}, CONFIG_HASH={"hash": 5})
    assert probe(changed) == ChipConfig()


def test_hash_mismatch() -> None:
    with pytest.raises(ConfigMismatch, match="0x00000005"):
        probe(FakeTransport(ChipConfig(), CONFIG_HASH={"hash": 5}))


def test_impossible_capabilities() -> None:
    with pytest.raises(ProbeError, match="no possible chip: array is 5"):
        probe(FakeTransport(ChipConfig(), CAP_ARRAY={"array": 5, "cores_x": 1, "cores_y": 1, "queues": 2}))
