"""The quantiser of networks."""

from sley.runtime.networks.quantizer.quantize import quantize
from sley.runtime.networks.quantizer.report import Report, Row

__all__ = ["Report", "Row", "quantize"]
