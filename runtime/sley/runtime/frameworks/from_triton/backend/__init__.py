"""Sley as a target of Triton, found by the entry point group ``triton.backends``: compiler and driver."""
