"""Random values for all parameters of a module: initial ones hide errors."""

from __future__ import annotations

from math import prod
from typing import Any

import torch


def randomized(module: Any) -> Any:
    """Give all parameters and statistics of a module random values, that keep numbers in range."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, item in sorted(module.named_parameters()):
            scale = prod(item.shape[1:]) ** -0.5 if item.dim() > 1 else 0.2
            offset = 1.0 if item.dim() == 1 and not name.endswith("bias") else 0.0
            item.copy_(torch.randn(item.shape, generator=generator) * scale + offset)
        for name, item in sorted(module.named_buffers()):
            if name.endswith("running_var"):
                item.copy_(torch.rand(item.shape, generator=generator) + 0.5)
            elif name.endswith("running_mean"):
                item.copy_(torch.randn(item.shape, generator=generator) * 0.2)
    return module.eval()
