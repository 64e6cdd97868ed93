"""Tensors for calls of operators, whose sizes tell the dimensions apart."""

from __future__ import annotations

from typing import Any

import torch

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def floats(*shape: int) -> torch.Tensor:
    """Return numbers that are neither equal nor around zero only."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape) + 7 * len(shape)))


def numbers(limit: int, *shape: int) -> torch.Tensor:
    """Return whole numbers below a limit."""
    return torch.randint(0, limit, shape, generator=torch.Generator().manual_seed(limit + sum(shape)))


def given(*args: Any, **kwargs: Any) -> Arguments:
    """Return the arguments of a call."""
    return args, kwargs


X, Y, V = floats(6, 4, 8), floats(6, 4, 8) + 0.5, floats(8)
FLAGS, RARE, WHOLE = X > 0, torch.isclose(X, X.max()), numbers(9, 6, 4, 8)
IMAGE, KERNEL, SIGNAL, VOLUME = floats(6, 4, 8, 10), floats(8, 4, 3, 3), floats(6, 4, 8), floats(2, 4, 6, 4, 8)
ROWS, CLASSES, DENSE = floats(6, 8), numbers(8, 6), numbers(8, 6, 4, 10)
HEADS = tuple(floats(2, 4, 6, 8) + number for number in range(3))
PARTS = (floats(8), floats(8) + 1)
CHANNELS = (floats(4), floats(4) + 1, floats(4) / 9, floats(4).abs() + 1)
SOFT = X.softmax(-1)
NORMALIZED = torch.ops.aten.native_layer_norm(X, [8], *PARTS, 1e-5)
POOLED = torch.ops.aten.max_pool2d_with_indices(IMAGE, [3, 3], [2, 2], [1, 1])
ATTENDED = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(*HEADS)
LOGS = floats(6, 8, 4, 10).log_softmax(1)
TABLE, BAG = floats(8, 6), (numbers(8, 12), torch.tensor([0, 4, 6, 9]))
INDEX = numbers(4, 6, 4, 8)
COMPLEX, SQUARE = torch.complex(X, Y), floats(6, 4, 4) @ floats(6, 4, 4).mT + 4 * torch.eye(4)
FACTOR, SIDES = torch.linalg.cholesky(SQUARE), floats(6, 4, 8)
OVERLAPPING = floats(6, 4, 3) @ (floats(6, 3, 8) * torch.tensor([[1, 0], [1, 1], [0, 1]]).repeat_interleave(4, 1))
"""Matrices of rank 3, of which each half of the rows, or of the columns, has rank 2."""
