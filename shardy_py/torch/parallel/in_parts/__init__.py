"""Ops over a sharded dimension as ops on its parts, between which only numbers for each row are combined."""

from shardy_py.torch.parallel.in_parts.computing_in_parts import ComputeInPartsPass

__all__ = ["ComputeInPartsPass"]
