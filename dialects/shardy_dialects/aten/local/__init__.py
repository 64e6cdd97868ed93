"""Local forms of PyTorch's operators: the part of each that one device runs."""

from shardy_dialects.aten.local.forms import FORMS
from shardy_dialects.aten.local.ops import TorchLocalOps

__all__ = ["FORMS", "TorchLocalOps"]
