"""Programs that are exported with dynamic sizes: they are propagated, and run, at the sizes of their example."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.export import Dim

import shardy_py as sdy
from tests.torch.models import Decoder
from tests.torch.simulated import simulated

pytestmark = pytest.mark.torch
MESH = {"data": 2, "model": 2}
SHARDINGS = {"tokens": ("data",), "*.q_proj.weight": ("model", None)}


def test_shardings_pass_through_dynamic_sizes() -> None:
    """Also through reshapes whose sizes the program computes, with the numbers of one device."""
    model, tokens = Decoder().eval(), torch.randint(0, 32, (8, 12))
    shapes = {"tokens": {0: Dim.AUTO, 1: Dim.AUTO}}
    exported = torch.export.export(model, (tokens,), dynamic_shapes=shapes).run_decompositions({})
    assert any("sym_size" in str(node.target) for node in exported.graph.nodes)
    result = sdy.propagate(exported, MESH, in_shardings=SHARDINGS)
    assert str(result.results[0]) == '<@mesh, [{"data"}, {}, {}]>'
    (got, _) = simulated(exported, (tokens,), MESH, SHARDINGS)
    torch.testing.assert_close(got, model(tokens)[0], atol=1e-5, rtol=1e-5)


def test_a_size_that_depends_on_data_is_refused() -> None:
    """The error names the node."""

    class Chosen(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.nonzero()

    exported = torch.export.export(Chosen(), (torch.ones(4, 3),))
    with pytest.raises(sdy.UnsupportedError, match="has the dynamic shape"):
        sdy.propagate(exported, MESH)


def test_a_program_refuses_other_sizes() -> None:
    """A run has the sizes of the example; a larger tensor is not cut in silence."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=4)
    try:
        mesh = dist.device_mesh.init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))
        dynamic = ({0: Dim("batch", min=2, max=64)},)
        exported = torch.export.export(nn.Linear(4, 4), (torch.ones(8, 4),), dynamic_shapes=dynamic)
        program = sdy.propagate(exported, mesh, in_shardings={0: ("data",)}).to_torch(mesh)
        with torch.no_grad():
            assert program(torch.ones(8, 4))[0].shape == (8, 4)
            with pytest.raises(sdy.OptionError, match=r"the shape \(16, 4\), the program is for \(8, 4\)"):
                program(torch.ones(16, 4))
    finally:
        dist.destroy_process_group()
