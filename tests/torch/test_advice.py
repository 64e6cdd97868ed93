"""Advice for programs of PyTorch."""

from __future__ import annotations

import pytest
import torch

import shardy_py as sdy

pytestmark = pytest.mark.torch


class Projection(torch.nn.Module):
    def forward(self, x, up, down):
        return torch.tanh(x @ up) @ down


def test_a_constraint_is_a_redistribution_of_a_dtensor():
    """PyTorch's users get their own words, and no line of JAX."""
    shapes = (4096, 256), (256, 1024), (1024, 256)
    program = torch.export.export(Projection(), tuple(torch.empty(*shape, device="meta") for shape in shapes))
    shardings = {"x": ("data", None), "up": ("data", "model"), "down": ("model", "data")}
    advice = sdy.advise(program, {"data": 4, "model": 2}, in_shardings=shardings, machine="h100-8")
    assert advice.constraints
    assert all(item.constraint.code.startswith("x = x.redistribute(placements=[") for item in advice.constraints)
    assert "jax" not in str(advice)
