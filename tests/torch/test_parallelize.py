"""Parallel modules: used and trained as the module is, with the numbers of one process."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import shardy_py as sdy
from tests.torch.parallel_processes import CASES, Images, Perceptron, Words

pytestmark = pytest.mark.torch
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def trained() -> dict[str, list[dict[str, Any]]]:
    """What each of four processes saw of each case."""
    command = [sys.executable, "-m", "tests.torch.parallel_processes"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=True)
    collected: dict[str, list[dict[str, Any]]] = json.loads(done.stdout.splitlines()[-1])
    return collected


@pytest.mark.parametrize("name", CASES)
def test_training_gives_the_numbers_of_one_process(name: str, trained: dict[str, list[dict[str, Any]]]) -> None:
    """Losses, norms of gradients, the state after some steps of AdamW, and what is evaluated then."""
    for seen in trained[name]:
        assert seen["loss"] <= 1e-5
        assert seen["norm"] <= 1e-5
        assert seen["state"] <= 1e-4
        assert seen["evaluated"] <= 1e-4
        assert seen["is_kept"]


def test_parameters_are_placed_as_propagation_says(trained: dict[str, list[dict[str, Any]]]) -> None:
    """From three annotated weights the whole plan of a decoder; a tied weight is one parameter."""
    placed = trained["decoder"][0]["placements"]
    assert placed["layers.1.self_attn.o_proj.weight"] == ["R", "S(1)"]
    assert placed["layers.1.mlp.down_proj.weight"] == ["R", "S(1)"]
    assert placed["layers.1.mlp.up_proj.bias"] == ["R", "S(0)"]
    assert "lm_head.weight" not in placed
    assert trained["zero"][0]["placements"]["up.weight"] == ["S(0)"]


def test_checkpoints_are_read_on_another_mesh(trained: dict[str, list[dict[str, Any]]]) -> None:
    """What a module on two times two processes saves, one on four reads."""
    assert [seen["reloaded"] for seen in trained["grid"]] == [0] * 4


def test_one_program_runs_at_other_sizes(trained: dict[str, list[dict[str, Any]]]) -> None:
    """Gradients of smaller and larger batches are those of one process; each pass has one graph."""
    for seen in trained["grid"]:
        assert seen["other_sizes"] <= 1e-6
        # In evaluation mode, which is the last one.
        assert seen["graphs"] == 2


def test_plans_place_what_is_not_given(trained: dict[str, list[dict[str, Any]]]) -> None:
    """A memory budget that replicated weights exceed shards them; all processes have the plan of the first."""
    placed = [seen["placements"] for seen in trained["planned"]]
    assert placed[0]["up.bias"] == ["R", "S(0)"]
    assert placed[0]["down.weight"] != ["R", "R"]
    assert placed[1:] == placed[:1] * 3


def test_gradients_are_reduced_to_the_shards_of_parameters(mesh: Any) -> None:
    """Batches in parts: the gradient of each weight is summed over the processes of its shard, and nothing else is."""
    shardings = {"input": ("data",), "0.weight": ("model", None)}
    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024))
        x = torch.randn(512, 1024)
    parallel = sdy.parallelize(model, mesh, x, shardings)
    (step,) = parallel.sdy_program.steps.values()
    targets = [str(node.target) for node in step.graphs.forward.graph.nodes]
    assert targets.count("_c10d_functional.all_reduce.default") == 1
    targets = [str(node.target) for node in step.graphs.backward.graph.nodes]
    assert targets.count("_c10d_functional.all_reduce.default") == 4
    assert sum(step.counts.values()) == 5


def test_inputs_may_be_dtensors_and_outputs_may_stay_such(mesh: Any) -> None:
    """A DTensor is redistributed to where the program wants it; outputs are DTensors on demand."""
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    x = torch.randn(8, 16)
    parallel = sdy.parallelize(Perceptron(), mesh, x, {"x": ("data",)}, whole_outputs=False)
    output = parallel(distribute_tensor(x, mesh, [Shard(0), Replicate()]))
    assert output.placements == (Shard(0), Replicate())
    assert output.shape == (8, 16)
    assert output.requires_grad


def test_a_module_on_the_device_meta_gets_no_memory(mesh: Any) -> None:
    """Parameters without elements stay so, as DTensors that `to_empty` makes."""
    with torch.device("meta"):
        model = Perceptron()
    parallel = sdy.parallelize(model, mesh, torch.randn(8, 16), {"up.weight": ("model", None)})
    assert parallel.up.weight.device.type == "meta"
    assert parallel.to_empty(device="cpu").up.weight.to_local().shape == (32, 16)


def test_frozen_parameters_have_no_gradient(mesh: Any) -> None:
    """What does not train has no backward pass; a module without any runs forward only."""
    model = Perceptron()
    model.up.requires_grad_(False)
    parallel = sdy.parallelize(model, mesh, torch.randn(8, 16), {"x": ("data",)})
    parallel(torch.randn(8, 16)).sum().backward()
    assert parallel.up.weight.grad is None
    assert parallel.down.weight.grad is not None
    parallel = sdy.parallelize(model.requires_grad_(False), mesh, torch.randn(8, 16), {"x": ("data",)})
    assert not parallel(torch.randn(8, 16)).requires_grad


def test_inputs_have_gradients(mesh: Any) -> None:
    """The gradient of a whole input is whole."""
    x = torch.randn(8, 16, requires_grad=True)
    parallel = sdy.parallelize(Perceptron(), mesh, x, {"up.weight": ("model", None)})
    parallel(x).sum().backward()
    assert x.grad is not None
    assert x.grad.shape == (8, 16)


def test_the_model_stays_as_it_is(mesh: Any) -> None:
    """Its buffers are not those that the parallel module writes."""
    model = Images()
    parallel = sdy.parallelize(model, mesh, torch.randn(8, 3, 6, 6))
    parallel(torch.randn(8, 3, 6, 6))
    assert int(model.norm.num_batches_tracked) == 0
    assert int(parallel.norm.num_batches_tracked.to_local()) == 1
    assert not hasattr(model, "sdy_program")


def test_other_inputs_are_refused(mesh: Any) -> None:
    """Shapes, structures and numbers are those of the example."""
    parallel = sdy.parallelize(Perceptron(), mesh, torch.randn(8, 16))
    with pytest.raises(sdy.OptionError, match=r"x has the shape \(4, 16\), the program is for \(8, 16\)"):
        parallel(torch.randn(4, 16))
    with pytest.raises(sdy.OptionError, match=r"the input x is of torch.int64, but .* traced with torch.float32"):
        parallel(torch.ones(8, 16, dtype=torch.int64))
    with pytest.raises(sdy.OptionError, match="another structure"):
        parallel(torch.randn(8, 16), torch.randn(8))
    tokens = torch.zeros(2, 3, dtype=torch.long)
    parallel = sdy.parallelize(Words(), mesh, tokens, example_kwargs={"scale": 2.0})
    with pytest.raises(sdy.OptionError, match=r"scale is 3\.0, but was 2\.0"):
        parallel(tokens, scale=3.0)


def test_what_cannot_be_parallel_is_refused(mesh: Any) -> None:
    """What is no module, a loss with parameters of its own, and shapes that depend on data."""

    class Chosen(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x[x > 0]

    with pytest.raises(sdy.OptionError, match="not-a-module"):
        sdy.parallelize(torch.relu, mesh, torch.randn(2))
    with pytest.raises(sdy.OptionError, match="loss-parameters"):
        sdy.parallelize(Perceptron(), mesh, torch.randn(8, 16), loss=Perceptron())
    with pytest.raises(sdy.UnsupportedError, match="not-traced"):
        sdy.parallelize(Chosen(), mesh, torch.randn(8))
    with pytest.raises(sdy.OptionError, match="'megatron' is not a valid plan"):
        sdy.parallelize(Perceptron(), mesh, torch.randn(8, 16), plan="megatron")
    with pytest.raises(sdy.OptionError, match="budget_memory are for a plan"):
        sdy.parallelize(Perceptron(), mesh, torch.randn(8, 16), budget_memory=1e9)
    with pytest.raises(sdy.OptionError, match="budget-out-of-reach"):
        sdy.parallelize(Perceptron(), mesh, torch.randn(8, 16), plan="auto", budget_memory=1000)
    with pytest.raises(sdy.OptionError, match="bucket_bytes is '25MB', not a number"):
        sdy.parallelize(Perceptron(), mesh, torch.randn(8, 16), bucket_bytes="25MB")


def test_products_of_matrices_keep_batch_and_heads_apart(mesh: Any) -> None:
    """Attention that is written with ``@`` is sharded over heads, forward and backward, and not gathered."""

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.q, self.k, self.v, self.o = (nn.Linear(64, 64, bias=False) for _ in range(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            q, k, v = (layer(x).view(4, 3, 4, 16).transpose(1, 2) for layer in (self.q, self.k, self.v))
            weights = (q @ k.transpose(-2, -1) / 4).softmax(-1)
            return self.o((weights @ v).transpose(1, 2).reshape(4, 3, 64))

    shardings = {"x": ("data",), "[qkv].weight": ("model", None)}
    parallel = sdy.parallelize(Attention(), mesh, torch.randn(4, 3, 64), shardings)
    (step,) = parallel.sdy_program.steps.values()
    program = step.result.program
    products = [op.results[0] for op in program.walk() if op.name == "aten.matmul.default"]
    assert {str(program.shardings[value.id]) for value in products} == {'<@mesh, [{"data"}, {"model"}, {}, {}]>'}
    assert len(products) == 6
    assert not any(op.name == "aten.bmm.default" for op in program.walk())


def test_graphs_give_gradients_of_the_shapes_of_shards_without_elements(mesh: Any) -> None:
    """A compiler runs them on such tensors: the bias of a convolution has the size of its shard in attributes, too."""
    from torch._subclasses import FakeTensorMode

    model, shardings = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU()), {0: ("data",), "0.weight": ("model",)}
    parallel = sdy.parallelize(model, mesh, torch.randn(4, 3, 8, 8), shardings)
    (step,) = parallel.sdy_program.steps.values()
    shapes = [item.to_local().shape for item in parallel.parameters()]
    with FakeTensorMode():
        output, *saved = step.graphs.forward(*map(torch.empty, [(2, 3, 8, 8), *shapes]))
        gradients = step.graphs.backward(*saved, torch.empty_like(output))
    assert shapes[1] == (8,)
    assert [item.shape for item in gradients] == shapes


def test_constraints_hold_inside_of_models(mesh: Any) -> None:
    """A model that asks for a sharding of what it computes gets the weights that go with it; run as it is, nothing."""
    from torch.distributed.tensor import Replicate, Shard

    class Constrained(Perceptron):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            inner = sdy.torch.with_sharding_constraint(self.up(x), [Replicate(), Shard(1)])
            return self.down(inner.relu())

    model, x = Constrained(), torch.randn(8, 16)
    parallel = sdy.parallelize(model, mesh, x)
    assert parallel.up.weight.placements == (Replicate(), Shard(0))
    assert parallel.down.weight.placements == (Replicate(), Shard(1))
    assert model(x).equal(model.down(model.up(x).relu()))
    with pytest.raises(sdy.OptionError, match="without their mesh"):
        torch.export.export(model, (x,))


def test_compiled_modules_change_modes_and_shapes(mesh: Any) -> None:
    """A compiled module is traced for another mode, or for another shape, when it is called in it first."""
    model, x = Images(), torch.randn(8, 3, 6, 6)
    parallel = sdy.parallelize(model, mesh, x, dynamic_shapes=True)
    run = torch.compile(parallel, fullgraph=True, backend="aot_eager")
    assert run(x).shape == (8, 10)
    model.eval(), parallel.eval()
    model.norm.running_mean.copy_(parallel.norm.running_mean.to_local())
    model.norm.running_var.copy_(parallel.norm.running_var.to_local())
    with torch.no_grad():
        for batch in (8, 4):
            torch.testing.assert_close(run(x[:batch]), model(x[:batch]))
    assert len(parallel.sdy_program.steps) == 3


class Masks(nn.Module):
    """A mask that each device needs whole, and one that is an output."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        keep = sdy.torch.with_sharding_constraint(x > 0, (None, None))
        return torch.where(~keep, 0, 1).cumsum(0), x > 0.5


def test_code_gathers_truth_values(mesh: Any) -> None:
    """Inductor gathers them as int64 and reads them as bool: the dropout of a backward pass had another mask."""
    x = torch.linspace(-1, 1, 16).view(4, 4).repeat(2, 1)
    # The other processes do not answer: what is gathered of them is what this one has, as in this batch.
    run = torch.compile(sdy.parallelize(Masks(), mesh["data"], x, {"x": ("data",)}), fullgraph=True)
    torch.testing.assert_close(run(x), Masks()(x))


def test_parts_of_a_module_may_be_in_another_mode(mesh: Any) -> None:
    """A normalization that is evaluated while the others train keeps its statistics."""
    model, x = Images(), torch.randn(8, 3, 6, 6)
    model.drop.p = 0.0
    model.norm.eval()
    parallel = sdy.parallelize(model, mesh, x)
    torch.testing.assert_close(parallel(x), model(x))
    assert int(parallel.norm.num_batches_tracked.to_local()) == 0


def test_copies_run_the_program(mesh: Any) -> None:
    """As averages of parameters over steps need it."""
    parallel = sdy.parallelize(Perceptron(), mesh, torch.randn(8, 16))
    other = copy.deepcopy(parallel)
    with torch.no_grad():
        other.down.weight.zero_(), other.down.bias.zero_()
    x = torch.randn(8, 16)
    assert torch.equal(other(x), x)
    assert not torch.equal(parallel(x), x)


def test_gradients_have_no_derivatives(mesh: Any) -> None:
    """A penalty of gradients outside of the module is an error, and not left out."""
    parallel = sdy.parallelize(Perceptron(), mesh, torch.randn(8, 16))
    (gradient,) = torch.autograd.grad(parallel(torch.randn(8, 16)).sum(), parallel.up.weight, create_graph=True)
    with pytest.raises(RuntimeError, match="compute a penalty of gradients in its loss"):
        gradient.to_local().sum().backward()


def test_autocast_computes_in_its_dtype(mesh: Any) -> None:
    """Forward and backward, by a program of its own; what is not cast by a module is not cast by its program."""
    model, x = Perceptron(), torch.randn(8, 16)
    parallel = sdy.parallelize(model, mesh, x)
    with torch.autocast("cpu", torch.bfloat16):
        pair = model(x), parallel(x)
    for output in pair:
        output.square().sum().backward()
    # A bias is added to what was rounded already.
    torch.testing.assert_close(pair[1], pair[0], rtol=0.02, atol=0.02)
    torch.testing.assert_close(parallel.up.weight.grad.to_local(), model.up.weight.grad, rtol=0.05, atol=0.05)
    torch.testing.assert_close(parallel(x), model(x))
    codes = [step.graphs.forward.code for step in parallel.sdy_program.steps.values()]
    assert ["bfloat16" in code for code in codes] == [False, True]


def test_other_orders_of_axes_are_strided_shards(mesh: Any) -> None:
    """Placements of FSDP2 on top of tensor parallelism go in, and a sharding along two axes in this order comes out."""
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.placement_types import _StridedShard

    strided = (_StridedShard(0, split_factor=2), Shard(0))
    parallel = sdy.parallelize(Perceptron(), mesh, torch.randn(8, 16), {"up.weight": strided})
    assert parallel.up.weight.placements == strided
    parallel = sdy.parallelize(Perceptron(), mesh, torch.randn(8, 16), {"up.weight": (("model", "data"),)})
    assert parallel.up.weight.placements == strided
    with pytest.raises(sdy.OptionError, match="is behind no 3 parts"):
        sdy.parallelize(
            Perceptron(), mesh, torch.randn(8, 16), {"up.weight": (_StridedShard(0, split_factor=3), Replicate())}
        )


def test_fsdp_comes_on_top_of_tensor_parallelism(mesh: Any) -> None:
    """A module that is parallel over one dimension of a mesh is sharded over the other one by PyTorch."""
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import Shard

    parallel = sdy.parallelize(Perceptron(), mesh["model"], torch.randn(8, 16), {"up.weight": ("model", None)})
    fully_shard(parallel, mesh=mesh["data"])
    assert [type(item).__name__ for item in parallel.up.weight.placements] == ["_StridedShard", "Shard"]
    assert parallel.down.weight.placements == (Shard(0), Shard(1))
    parallel(torch.randn(8, 16)).square().sum().backward()
    assert parallel.up.weight.grad.placements == parallel.up.weight.placements


def test_names_of_tensors_need_not_be_names_of_python(mesh: Any) -> None:
    """Layers that are numbered, and names that differ in dots only."""

    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers, self.layers_0 = nn.Sequential(nn.Linear(4, 4)), nn.Linear(4, 4)
            self.add_module("in", nn.Sequential(nn.Linear(4, 4)))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layers_0(self.layers(self.get_submodule("in")(x)))

    parallel = sdy.parallelize(Named(), mesh, torch.ones(2, 4), {"layers_0.weight": ("model", None)})
    assert parallel(torch.ones(2, 4)).shape == (2, 4)
    model = nn.Sequential(nn.Linear(4, 4))
    exported = torch.export.export(model, (torch.ones(2, 4),)).run_decompositions({})
    program = sdy.propagate(exported, mesh, in_shardings={"0.weight": ("model", None)}).to_torch(mesh)
    with torch.no_grad():
        assert program(torch.ones(2, 4))[0].shape == (2, 4)


class Twins(nn.Module):
    """Parameters whose gradients are one tensor, views of it, that of the loss, or expanded."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.row = (nn.Parameter(torch.randn(shape)) for shape in (8, 8, (1, 8)))
        self.offset, self.spread = nn.Parameter(torch.randn(())), nn.Parameter(torch.randn(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        twice = (x * x.sum(1, keepdim=True)) * (self.first + self.second + self.row)
        return twice.square().mean() + self.spread.sum() * 3 + self.offset


def test_gradients_have_memory_of_their_own(mesh: Any) -> None:
    """Clipping scales each once, as it does with those of the module."""
    model, x = Twins(), torch.randn(4, 8)
    parallel = sdy.parallelize(model, mesh, x)
    for item in (model, parallel):
        item(x).backward()
        nn.utils.clip_grad_norm_(item.parameters(), 0.5)
    for left, right in zip(model.parameters(), parallel.parameters(), strict=True):
        torch.testing.assert_close(right.grad.to_local(), left.grad)


class _Joined(torch.autograd.Function):
    """A concatenation whose gradients are the parts of one division."""

    @staticmethod
    def forward(context: Any, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        context.sizes = [len(first), len(second)]
        return torch.cat([first, second])

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(gradient.split(context.sizes))


class Divided(nn.Module):
    """Parameters whose gradients are parts of two divisions of one tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c, self.d = (nn.Parameter(torch.randn(size)) for size in (4, 8, 6, 6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * (_Joined.apply(self.a, self.b) + _Joined.apply(self.c, self.d))).square().mean()


def test_gradients_that_are_parts_of_two_divisions_are_apart(mesh: Any) -> None:
    """What is done to one leaves the others as they are."""
    parallel = sdy.parallelize(Divided(), mesh, torch.randn(4, 12))
    parallel(torch.randn(4, 12)).backward()
    gradients = [item.grad.to_local() for item in parallel.parameters()]
    before = [item.clone() for item in gradients]
    for number, item in enumerate(gradients):
        item.fill_(number)
        torch.testing.assert_close(gradients[number + 1 :], before[number + 1 :])
