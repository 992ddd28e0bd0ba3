"""A pytest plugin: engine ``fast`` is a pair of it and the chip of twins, which answer the same in the same cycle."""

from sley.sim.engines import fast, model
from sley.sim.engines.options import VALID
from sley.sim.testing.paired_transport import PairedTransport

_fast = fast.open_transport


def _opened(spec: str, options: dict[str, str]) -> PairedTransport:
    """``_fast`` with the chip of twins beside it, which has the same memory."""
    shared = {name: value for name, value in options.items() if name in VALID and name != "trace"}
    return PairedTransport(_fast(spec, options), model.open_transport(spec or "base", shared | {"cycles": "on"}))


fast.open_transport = _opened
