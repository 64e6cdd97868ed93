"""Plans of modules whose ``forward`` reads the size of a shard where no op of the export shows it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import shardy_py as sdy
from shardy_py.errors import VerificationError

pytestmark = pytest.mark.torch


class Mlp(torch.nn.Module):
    """Two layers, with a function between them."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = torch.nn.Linear(16, 64), torch.nn.Linear(64, 16)


class ByExpression(Mlp):
    """A call within a call."""

    def forward(self, x: Any) -> Any:
        """Compute both layers."""
        return self.down(by_expression(self.up(x)))


class ByBranch(Mlp):
    """A call by another method."""

    def between(self, h: Any) -> Any:
        """Compute what is between the layers."""
        return by_branch(h)

    def forward(self, x: Any) -> Any:
        """Compute both layers."""
        h = self.up(x)
        return self.down(self.between(h))


class ByLoop(Mlp):
    """A statement of its own."""

    def forward(self, x: Any) -> Any:
        """Compute both layers."""
        h = self.up(x)
        h = by_loop(h)
        return self.down(h)


class ByNewTensor(Mlp):
    """A shard after an op."""

    def forward(self, x: Any) -> Any:
        """Compute both layers."""
        h = self.up(x).relu()
        return self.down(by_new_tensor(h))


class ByElements(Mlp):
    """The number of all elements."""

    def forward(self, x: Any) -> Any:
        """Compute both layers."""
        h = torch.nn.functional.gelu(self.up(x))
        return self.down(by_elements(h))


def by_expression(h: Any) -> Any:
    """Scale wide tensors."""
    return h * 0.5 if h.shape[-1] > 32 else h


def by_branch(h: Any) -> Any:
    """Scale wide tensors."""
    width = h.size(1)
    if width > 32:
        h = h * 0.5
    return h


def by_loop(h: Any) -> Any:
    """Scale once for each 16 columns."""
    _, columns = h.shape
    for _ in range(columns // 16):
        h = h * 0.9
    return h


def by_new_tensor(h: Any) -> Any:
    """Divide by the number of columns."""
    return h / torch.full((1,), float(h.shape[-1]))


def by_elements(h: Any) -> Any:
    """Scale large tensors."""
    return h + 1 if h.numel() >= 256 else h


class Branching(Mlp):
    """The branch in ``forward`` itself."""

    def forward(self, x: Any) -> Any:
        """Compute both layers."""
        h = self.up(x)
        if h.shape[-1] > 32:
            h = h.relu()
        return self.down(h)


class Harmless(Mlp):
    """Reads of sizes of whole tensors, of whole dimensions, and in a reshape."""

    def forward(self, x: Any) -> Any:
        """Compute both layers."""
        rows, columns = x.shape
        h = self.up(x)
        if x.shape[1] == 16 and h.shape[0] == rows:
            h = h.view(h.shape[0], -1)
        return self.down(h).reshape(rows, columns)


def plan_of(module: Any) -> Any:
    """Return the plan of a module whose layers are sharded as a plan has them."""
    shardings = {"up.weight": ("x", None), "up.bias": ("x",), "down.weight": (None, "x")}
    exported = torch.export.export(module, (torch.ones(4, 16),))
    return sdy.propagate(exported, {"x": 4}, in_shardings=shardings).parallelize_plan()


@pytest.mark.parametrize("kind", [ByExpression, ByBranch, ByLoop, ByNewTensor, ByElements])
def test_a_layer_gathers_before_its_size_is_read(kind: type[Mlp]) -> None:
    """A function that gets a shard and reads its size makes the layer gather; the plan says so with the line."""
    plan = plan_of(kind())
    assert str(plan["up"]) == "ColwiseParallel(output_layouts=Replicate())"
    assert any("size of a shard" in note.message and "test_size_reads.py" in note.location for note in plan.notes)


def test_a_branch_of_forward() -> None:
    """A plan by hand that leaves the shards is refused, with the line of the branch."""
    plan = plan_of(Branching())
    assert str(plan["up"]) == "ColwiseParallel(output_layouts=Replicate())"
    with pytest.raises(VerificationError, match="decides by the size of a shard"):
        plan.with_entries({"up": type(plan["up"])("colwise"), "down": type(plan["up"])("rowwise")}).verify()


def test_sizes_of_whole_dimensions_may_be_read() -> None:
    """Nothing is gathered for them."""
    plan = plan_of(Harmless())
    assert [str(entry) for entry in plan.values()] == ["ColwiseParallel()", "RowwiseParallel()"]
    assert not plan.notes
