"""Files of exported programs that name classes of libraries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from click import testing
from torch.utils import _pytree as pytree

from shardy_py.cli.app import shardy

pytestmark = pytest.mark.torch


class _Output:
    def __init__(self, hidden: Any, logits: Any) -> None:
        self.hidden, self.logits = hidden, logits


class _Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = torch.nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> _Output:
        return _Output(x.sin(), self.head(x))


def test_a_library_is_not_needed_to_read_its_classes(tmp_path: Path) -> None:
    """Where the class of an output is known to the exporting process only, the file is read and run all the same."""
    pytree.register_pytree_node(
        _Output,
        lambda output: ([output.hidden, output.logits], ["hidden", "logits"]),
        lambda items, names: _Output(**dict(zip(names, items, strict=True))),
        serialized_type_name="some_library.Output",
    )
    path = str(tmp_path / "model.pt2")
    try:
        torch.export.save(torch.export.export(_Model(), (torch.randn(6, 8),)), path)
    finally:
        pytree._deregister_pytree_node(_Output)
    options = ("--mesh", "x=2", "--in-sharding", "head.weight=x,None", "--compare")
    done = testing.CliRunner().invoke(shardy, ["run", path, *options])
    assert done.exit_code == 0, done.stderr
    assert "the results are the same" in done.stdout
    assert "tensor<6x4xf32>" in done.stdout
