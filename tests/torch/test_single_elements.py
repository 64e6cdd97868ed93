"""Dimensions of which an operator leaves one element, cuts as much as it adds, or repeats one."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from tests.torch.models import export
from tests.torch.simulated import simulated

pytestmark = pytest.mark.torch


class Cuts(torch.nn.Module):
    """Slices, pads, windows and repeats, a depthwise convolution, and pixels moved by steps of one."""

    def forward(self, x: torch.Tensor, kernel: torch.Tensor, slopes: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            x[:, -1:] + 1,
            x[4:5] + 1,
            functional.pad(x, (-1, 1, 2, -2)),
            functional.pad(x, (-7, 0)),
            functional.max_pool1d(x, 8),
            x[:, :1].repeat(1, 4, 1) + x,
            *x.split([1, 2, 1], 1),
            *x.chunk(3, -1),
            x.topk(1, 1)[0],
            torch.diff(x, dim=-1, prepend=x[..., :1]),
            torch.renorm(x, 2, 1, 0.5),
            x.mT + 1,
            functional.prelu(x, slopes),
            functional.conv1d(x, kernel, groups=4),
            functional.pixel_shuffle(x, 1) + 1,
            functional.pixel_unshuffle(x, 1) + 1,
        )


SHARDINGS = (
    {"x": (None, "b", None)},
    {"x": (None, None, "a")},
    {"x": ("b", "a", None)},
    {"kernel": ("b", None, None), "slopes": ("a",)},
)


def test_single_elements_are_those_of_one_process() -> None:
    """Whatever dimension is sharded, over two or three devices, the results are those of one process."""
    tensors = (torch.randn(6, 4, 8), torch.randn(4, 1, 3), torch.rand(4))
    program = export(Cuts(), *tensors)
    want = Cuts()(*tensors)
    for shardings in SHARDINGS:
        got = simulated(program, tensors, {"a": 2, "b": 3}, shardings)
        for number, (left, right) in enumerate(zip(got, want, strict=True)):
            torch.testing.assert_close(left, right, msg=f"output {number}, {shardings}")
