"""Import of exported programs and graph modules."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

import shardy_py as sdy
from shardy_py.torch.modules.graph_module import make_graph
from shardy_py.torch.parallel import explicit_program, make_local_torch_program
from tests.torch.models import Decoder, Mlp, export, exported_decoder

pytestmark = pytest.mark.torch
MESH = {"data": 2, "model": 2}
COLUMNS = '[{"model", ?}, {?}]'
GLOBS = {
    "tokens": '[{"data", ?}, {?}]',
    "*.[qkv]_proj.weight": COLUMNS,
    "*.gate_proj.weight": COLUMNS,
    "embed_tokens.weight": COLUMNS,
}


def test_the_plan_of_a_decoder_follows_from_globs_on_a_few_weights() -> None:
    """Rowwise layers follow from columnwise ones, and the other side of a gate from the first."""
    result = sdy.propagate(exported_decoder(), MESH, in_shardings=GLOBS)
    plan = {name: str(entry) for name, entry in result.parallelize_plan().items()}
    layer = "layers.0."
    assert plan[layer + "self_attn.o_proj"] == "RowwiseParallel()"
    assert plan[layer + "mlp.up_proj"] == "ColwiseParallel()"
    assert plan[layer + "mlp.down_proj"] == "RowwiseParallel()"
    assert plan["embed_tokens"] == "RowwiseParallel(input_layouts=Replicate())"
    assert list(map(str, result.placements(layer + "self_attn.o_proj.weight"))) == ["Replicate()", "Shard(1)"]


def test_communication_is_two_reductions_a_layer_and_one_for_the_embedding() -> None:
    """A Megatron layer reduces after attention and after the perceptron; a bias is added behind the reduction."""
    result = sdy.propagate(exported_decoder(), MESH, in_shardings=GLOBS)
    reductions = [item for item in result.redistributions if "Partial" in str(item) and "linear" in item.node]
    assert [item.module for item in reductions] == [
        f"layers.{number}.{name}" for number in range(2) for name in ("self_attn.o_proj", "mlp.down_proj")
    ]
    assert {item.kind for item in reductions} == {"all_reduce"}
    # Batch 4 on two devices, 8 rows, 16 columns, 4 bytes.
    assert {item.bytes for item in reductions} == {2 * 8 * 16 * 4}
    assert all("models.py:" in item.location for item in reductions)


def test_placements_of_dtensor_are_shardings() -> None:
    """`[Replicate(), Shard(0)]` says what the text of the sharding says."""
    from torch.distributed.tensor import Replicate, Shard

    exported = export(Mlp(8, 16), torch.ones(4, 8))
    in_shardings = {"gate_proj.weight": [Replicate(), Shard(0)]}
    result = sdy.propagate(exported, MESH, in_shardings=in_shardings)
    assert str(result.sharding("gate_proj.weight")) == '<@mesh, [{"model"}, {}]>'
    assert list(map(str, result.placements("up_proj.weight"))) == ["Replicate()", "Shard(0)"]


def test_every_op_of_a_decoder_has_a_rule() -> None:
    """Coverage reports nothing missing."""
    assert sdy.propagate(exported_decoder(), MESH, strict=True).coverage.is_complete


def test_a_pt2_file_is_read(tmp_path: Path) -> None:
    """A file gives what the program in memory gives."""
    path = tmp_path / "model.pt2"
    exported = exported_decoder()
    torch.export.save(exported, path)
    from_file = sdy.propagate(path, MESH, in_shardings=GLOBS)
    assert from_file.text == sdy.propagate(exported, MESH, in_shardings=GLOBS).text


def test_a_broken_file_is_an_error(tmp_path: Path) -> None:
    """The error names the file."""
    path = tmp_path / "model.pt2"
    path.write_bytes(b"no archive")
    with pytest.raises(sdy.ParseError, match=r"model\.pt2"):
        sdy.propagate(path, MESH)


def test_a_graph_module_with_fake_tensors_is_a_program() -> None:
    """Parameters that its nodes read are arguments."""
    from torch.fx.experimental.proxy_tensor import make_fx

    module = nn.Linear(4, 8)
    traced = make_fx(lambda x: torch.relu(module(x)), tracing_mode="fake", _allow_non_fake_inputs=True)(
        torch.ones(2, 4)
    )
    result = sdy.propagate(traced, {"data": 2}, in_shardings={0: ("data",)})
    assert str(result.results[0]) == '<@mesh, [{"data"}, {}]>'


class Flow(nn.Module):
    """A branch and a loop over a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.cond(x.sum() > 0, lambda a: self.linear(a), lambda a: a * 2, (x,))
        return torch._higher_order_ops.while_loop(
            lambda i, a: i < 3, lambda i, a: (i + 1, a + 1), (torch.tensor(0), y)
        )[1]


def test_shardings_flow_through_branches_and_loops() -> None:
    """The batch of the input is that of the output."""
    result = sdy.propagate(export(Flow(), torch.ones(4, 4)), {"data": 2}, in_shardings={"x": ("data",)})
    assert str(result.results[0].dim_shardings[0]) == '{"data"}'


class Scan(nn.Module):
    """A scan over the first dimension."""

    def forward(self, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        from torch._higher_order_ops.scan import scan

        return scan(lambda c, t: (torch.tanh(c @ w + t), c.clone()), torch.zeros_like(x[0]), x)[1]


class Map(nn.Module):
    """A map over the first dimension."""

    def forward(self, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        from torch._higher_order_ops.map import map as map_rows

        return map_rows(lambda t, w: torch.softmax(t @ w, -1), x, w)


@pytest.mark.parametrize("make", [Scan, Map])
def test_shardings_flow_through_scans(make: type[nn.Module]) -> None:
    """The batch of one round is that of the stacked output."""
    exported = export(make(), torch.ones(3, 6, 4), torch.ones(4, 4))
    result = sdy.propagate(exported, {"data": 2}, in_shardings={"x": (None, "data")})
    assert str(result.results[0].dim_shardings[1]) == '{"data"}'


def test_a_custom_op_with_the_tag_pointwise_has_a_rule() -> None:
    """The tag is enough; without it the op is reported by coverage."""
    outcome = {}
    for tagged in (True, False):
        name = f"shardy_test::scaled_{'tagged' if tagged else 'plain'}"
        tags = (torch.Tag.pointwise,) if tagged else ()

        @torch.library.custom_op(name, mutates_args=(), tags=tags)
        def scaled(x: torch.Tensor, factor: float) -> torch.Tensor:
            return x * factor

        scaled.register_fake(lambda x, factor: torch.empty_like(x))

        class Model(nn.Module):
            def forward(self, x: torch.Tensor, op=scaled) -> torch.Tensor:
                return op(x, 2.0)

        exported = torch.export.export(Model(), (torch.ones(4, 4),))
        result = sdy.propagate(exported, {"data": 2}, in_shardings={"x": ("data",)})
        outcome[tagged] = (str(result.results[0]), [item.name for item in result.coverage.missing])
    assert outcome[True] == ('<@mesh, [{"data"}, {}]>', [])
    assert outcome[False][1] == ["shardy_test.scaled_plain.default"]


def test_a_result_may_be_a_list_among_others() -> None:
    """Each tensor of the list is a result of its own."""

    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            counts, edges = torch.histogramdd(x, [2, 3])
            return counts, edges[1]

    x = torch.rand(4, 2)
    result = sdy.propagate(export(Model(), x), MESH)
    local = make_local_torch_program(explicit_program(result.program, result.registry), result.registry)
    counts, edges = torch.histogramdd(x, [2, 3])
    torch.testing.assert_close(local.simulate(x), [counts, edges[1]])


def test_results_behind_one_that_is_not_computed_keep_their_numbers() -> None:
    """The first layer of a model of images has gradients of its weights and no gradient of its input."""

    def gradients(grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor) -> list[torch.Tensor]:
        numbers = [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [False, True, True]
        return list(torch.ops.aten.convolution_backward(grad, x, weight, [5], *numbers)[1:])

    tensors = torch.rand(2, 5, 8, 8), torch.rand(2, 3, 8, 8), torch.rand(5, 3, 3, 3)
    result = sdy.propagate(make_fx(gradients, tracing_mode="fake")(*tensors), MESH)
    local = make_local_torch_program(explicit_program(result.program, result.registry), result.registry)
    torch.testing.assert_close(local.simulate(*tensors), gradients(*tensors))


def test_numbers_among_results_are_left_out() -> None:
    """Attention on GPUs returns lengths between its tensors; both ways to run a program count tensors only."""
    with torch.library._scoped_library("shardy_test", "FRAGMENT") as library:
        library.define("with_length(Tensor x) -> (Tensor, int, Tensor)")
        for key in ("CompositeExplicitAutograd", "Meta"):
            library.impl("with_length", lambda x: (x + 1, len(x), x * 2), key)

        def both(x: torch.Tensor) -> list[torch.Tensor]:
            return list(torch.ops.shardy_test.with_length(x)[::2])

        x = torch.rand(4, 6)
        result = sdy.propagate(make_fx(both, tracing_mode="fake")(x), MESH)
        local = make_local_torch_program(explicit_program(result.program, result.registry), result.registry)
        torch.testing.assert_close(local.simulate(x), both(x))
        groups: Any = SimpleNamespace(ranks=())
        graph = make_graph(local.program, groups, "cpu", ["x"]).graph
        torch.testing.assert_close(list(torch.fx.GraphModule({}, graph)(x)), both(x))


def test_a_plan_over_two_axes_asks_which() -> None:
    """Weights along both dimensions of the mesh have no one plan."""
    weights = {"*.gate_proj.weight": ("model", "data")}
    result = sdy.propagate(export(Decoder(), torch.zeros(4, 8, dtype=torch.int64)), MESH, in_shardings=weights)
    with pytest.raises(sdy.OptionError, match="axis="):
        result.parallelize_plan()
    assert str(result.parallelize_plan(axis="model")["layers.0.mlp.gate_proj"]) == "ColwiseParallel()"
