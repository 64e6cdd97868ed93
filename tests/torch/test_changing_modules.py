"""Modules that change between calls: attributes, what is trained, dtypes, buffers, hooks and ways to give inputs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils import prune

import shardy_py as sdy
from shardy_py.torch.modules import recent_programs
from tests.torch.parallel_processes import Perceptron

pytestmark = pytest.mark.torch


def _run(module: nn.Module, x: torch.Tensor) -> list[torch.Tensor | None]:
    """Return the output of a module, and the gradients of its parameters."""
    output = module(x)
    for item in module.parameters():
        item.grad = None
    output.square().mean().backward()
    gradients = [item.grad for item in module.parameters()]
    local = [item.to_local() if hasattr(item, "to_local") else item for item in gradients]
    return [output.detach(), *local]


def _assert_equal(model: nn.Module, parallel: nn.Module, x: torch.Tensor) -> None:
    for left, right in zip(_run(model, x), _run(parallel, x), strict=True):
        assert (left is None) == (right is None)
        if left is not None:
            torch.testing.assert_close(right, left)


def test_attributes_are_those_of_the_call(mesh: Any) -> None:
    """The chance of a dropout and a number of the module may change, as schedules do."""

    class Scaled(Perceptron):
        def __init__(self) -> None:
            super().__init__()
            self.scale, self.drop = 1.0, nn.Dropout(0.5)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(self.drop(x)) * self.scale

    model, x = Scaled(), torch.randn(8, 16)
    parallel = sdy.parallelize(model, mesh, x)
    for scale in (1.0, 3.0, 1.0):
        model.scale = parallel.scale = scale
        model.drop.p = parallel.drop.p = 0.0
        _assert_equal(model, parallel, x)
    assert len(parallel.sdy_program.steps) == 3
    parallel.scale = torch.ones(())
    with pytest.raises(sdy.OptionError, match="attribute scale of a ParallelScaled is a Tensor now"):
        parallel(x)


class Width(Enum):
    """A member of an enumeration."""

    NARROW = 1
    WIDE = 2


class Filled(nn.Module):
    """What the attribute of a module says, in the dtype that it gives."""

    def __init__(self, value: Any, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.value, self.function = value, function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.new_zeros(2) + torch.full((2,), self.function(self.value))


@pytest.mark.parametrize(
    ("first", "second", "function"),
    [
        (1, 1.0, lambda value: value),
        (0.5, np.float64(0.7), lambda value: value),
        (np.float64(0.5), np.float64(0.7), lambda value: value),
        (np.int64(2), 3, lambda value: value),
        ([1.0, np.float32(2.0)], [3.0], lambda value: sum(value.copy())),
        ((1, [2, (3, 4)]), (1, [2, (3, 5)]), lambda value: value[1][1][1]),
        (Width.NARROW, Width.WIDE, lambda value: value.value),
        (torch.float32, torch.float64, lambda value: torch.finfo(value).eps),
    ],
)
def test_attributes_of_many_types_are_followed(mesh: Any, first: Any, second: Any, function: Any) -> None:
    """Equal numbers of two types are told apart, and a list remains one."""
    x = torch.ones(4, dtype=torch.int64)
    model = Filled(first, function)
    parallel = sdy.parallelize(model, mesh, x)
    for value in (first, second, first):
        model.value = parallel.value = value
        output = parallel(x)
        assert output.dtype == model(x).dtype
        assert output.equal(model(x))
    assert len(parallel.sdy_program.steps) == 2


def test_an_attribute_that_is_not_a_number_has_one_program(mesh: Any) -> None:
    """One nan is not equal to another one, and gives the same program."""
    parallel = sdy.parallelize(Filled(float("nan"), lambda value: value), mesh, torch.ones(4))
    for _ in range(3):
        parallel.value = float("nan")
        assert parallel(torch.ones(4)).isnan().all()
    assert len(parallel.sdy_program.steps) == 1


def test_compiled_modules_follow_attributes(mesh: Any) -> None:
    """A compiler lets a number vary that changes, and a program is for one of its values."""
    model, x = nn.Sequential(nn.Linear(16, 16), nn.LayerNorm(16)), torch.randn(8, 16)
    parallel = sdy.parallelize(model, mesh, x)
    run = torch.compile(parallel, fullgraph=True, backend="aot_eager")
    for eps in (1e-5, 0.5, 1.5, 2.5):
        model[1].eps = parallel[1].eps = eps
        torch.testing.assert_close(run(x), model(x))
    assert len(parallel.sdy_program.steps) == 4


def test_layers_of_a_parallel_module_are_not_exchanged(mesh: Any) -> None:
    """The program would not have them."""
    x = torch.randn(8, 16)
    parallel = sdy.parallelize(nn.Sequential(nn.Linear(16, 16), nn.ReLU()), mesh, x)
    parallel[1] = nn.Tanh()
    with pytest.raises(sdy.OptionError, match="1 is a Tanh, and was a ReLU when"):
        parallel(x)
    parallel[1] = nn.ReLU()
    parallel(x)
    parallel.register_buffer("mean", torch.zeros(16))
    with pytest.raises(sdy.OptionError, match="its parameters and buffers are not those that it had"):
        parallel(x)
    parallel.append(nn.Tanh())
    with pytest.raises(sdy.OptionError, match="its layers are not those that it had"):
        parallel(x)


def test_what_is_trained_may_change(mesh: Any) -> None:
    """A frozen layer that is released later has gradients, and so has an input that is the output of another module."""
    model, x = Perceptron(), torch.randn(8, 16)
    model.up.requires_grad_(False)
    parallel = sdy.parallelize(model, mesh, x)
    assert parallel.up.weight.grad is None
    model.up.requires_grad_(True), parallel.up.requires_grad_(True)
    _assert_equal(model, parallel, x)
    with torch.no_grad():
        parallel(x)
    assert len(parallel.sdy_program.steps) == 2
    inputs = [x.clone().requires_grad_() for _ in range(2)]
    for module, each in zip((model, sdy.parallelize(model, mesh, x)), inputs, strict=True):
        module(each * 2).square().mean().backward()
    torch.testing.assert_close(inputs[1].grad, inputs[0].grad)


def test_parameters_of_another_dtype_are_computed_with_as_the_module_does(mesh: Any) -> None:
    """A cast to f32, which does nothing to f32, does something to bf16."""

    class Cast(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.rand(16))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x.float() * 1.003).to(self.scale.dtype) * self.scale.float()

    model, x = Cast(), torch.randn(8, 16)
    parallel = sdy.parallelize(model, mesh, x)
    model.bfloat16(), parallel.bfloat16()
    assert parallel(x).dtype == torch.float32
    assert parallel(x).equal(model(x))


def test_inputs_of_another_dtype_are_computed_with_as_the_module_does(mesh: Any) -> None:
    """As those of a module with parameters of another dtype: a cast to f32 is left out for f32 only."""

    class Normalized(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.rand(16))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = (x * self.scale).float()
            return y * (y.square().mean(-1, keepdim=True) + 1e-3).rsqrt()

    for dynamic in (False, True):
        model, x = Normalized(), torch.randn(8, 16)
        parallel = sdy.parallelize(model, mesh, x, dynamic_shapes=dynamic)
        model.bfloat16(), parallel.bfloat16()
        x = x.bfloat16()
        assert parallel(x).dtype == torch.float32
        _assert_equal(model, parallel, x)


def test_outputs_that_no_loss_reads_give_no_gradients(mesh: Any) -> None:
    """A gradient that is missing is not one of zeros, for which AdamW would decay a weight."""

    class Heads(Perceptron):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            inner = self.up(x)
            return self.down(inner), inner

    model, x = Heads(), torch.randn(8, 16)
    parallel = sdy.parallelize(model, mesh, x)
    for module in (model, parallel):
        module(x)[1].square().sum().backward()
        assert module.down.weight.grad is None
    torch.testing.assert_close(parallel.up.weight.grad.to_local(), model.up.weight.grad)


class Assigning(nn.Module):
    """A buffer that is assigned and not written to, one for keys that have gradients, and an embedding with a bound."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(6, 4, max_norm=0.5)
        self.mean: torch.Tensor
        self.keys: torch.Tensor
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("keys", torch.zeros(3, 4))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.table(tokens)
        self.keys.detach_()
        self.keys[1] = x[0]
        self.mean = self.mean * 0.5 + x.detach().mean(0)
        return self.keys.sum(0) - self.mean


def test_new_values_of_buffers_are_kept_however_they_are_written(mesh: Any) -> None:
    """By assignment, with a value that has a gradient, and those of a parameter that its layer bounds."""
    model, tokens = Assigning(), torch.tensor([1, 2, 4])
    parallel = sdy.parallelize(model, mesh, tokens)
    for _ in range(3):
        _assert_equal(model, parallel, tokens)
    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(parallel.state_dict()[name].to_local(), tensor.detach())


def test_attributes_that_a_module_assigns_are_reported(mesh: Any) -> None:
    """A tensor that the next call would read is refused; what the caller may read is a warning at the caller's line."""

    class Shaped(Perceptron):
        def __init__(self) -> None:
            super().__init__()
            self.shape = torch.Size((8, 16))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.shape = x.shape
            return super().forward(x)

    class Noting(Perceptron):
        def __init__(self, last: Any) -> None:
            super().__init__()
            self.last = last

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.last = super().forward(x)
            return self.last

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sdy.parallelize(Shaped(), mesh, torch.randn(8, 16))
    with pytest.raises(sdy.UnsupportedError, match=r"assigns its tensor last, .*\n.*register_buffer\('last'"):
        sdy.parallelize(Noting(torch.zeros(8, 16)), mesh, torch.randn(8, 16))
    with pytest.warns(UserWarning, match="assigns its attribute last") as caught:
        sdy.parallelize(Noting(None), mesh, torch.randn(8, 16))
    assert [item.filename for item in caught] == [__file__]

    class Growing(Assigning):
        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            self.keys = torch.cat([self.keys, self.table(tokens)])
            return self.keys

    with pytest.raises(sdy.UnsupportedError, match=r"buffer keys, of the shape \(3, 4\), one of \(6, 4\)"):
        sdy.parallelize(Growing(), mesh, torch.tensor([1, 2, 4]))

    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.count: torch.Tensor
            self.register_buffer("count", torch.zeros((), dtype=torch.int64))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.count = self.count + 0.5
            return x * self.count

    with pytest.raises(sdy.UnsupportedError, match=r"buffer count, of torch\.int64, one of torch\.float32"):
        sdy.parallelize(Counting(), mesh, torch.randn(4))


def test_hooks_run_once(mesh: Any) -> None:
    """Those of the module before it is made parallel are in its program, those of the parallel one around it."""
    model, x = Perceptron(), torch.randn(8, 16)
    model.register_forward_hook(lambda module, inputs, output: output * 2)
    model.up.register_forward_pre_hook(lambda module, inputs: (inputs[0] + 1,))
    parallel = sdy.parallelize(model, mesh, x)
    _assert_equal(model, parallel, x)
    parallel.register_forward_hook(lambda module, inputs, output: output + 1)
    torch.testing.assert_close(parallel(x), model(x) + 1)
    parallel.down.register_forward_hook(lambda module, inputs, output: output * 0)
    with pytest.warns(UserWarning, match=r"hooks of down .* do not run") as caught:
        parallel(x)
    assert [item.filename for item in caught] == [__file__]


def test_computed_weights_are_computed_in_the_program(mesh: Any) -> None:
    """Those of `weight_norm` by a hook, and of pruning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        model = nn.Sequential(nn.utils.weight_norm(nn.Linear(16, 16)), nn.Linear(16, 16))
    prune.l1_unstructured(model[1], "weight", amount=0.5)
    parallel = sdy.parallelize(model, mesh, torch.randn(8, 16))
    with torch.no_grad():
        model[0].weight_g.mul_(2), parallel[0].weight_g.mul_(2)
    _assert_equal(model, parallel, torch.randn(8, 16))


class Optional(Perceptron):
    """Inputs that may be left out."""

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None, flag: bool = True) -> torch.Tensor:
        y = super().forward(x)
        y = y if mask is None else y * mask
        return y if flag else -y


def test_inputs_are_given_by_position_or_name(mesh: Any) -> None:
    """In any order, and with defaults or without them."""
    model, x, mask = Optional(), torch.randn(8, 16), torch.rand(8, 16)
    parallel = sdy.parallelize(model, mesh, (x,), example_kwargs={"flag": True, "mask": mask})
    for output in (parallel(x, mask), parallel(x, mask=mask), parallel(mask=mask, x=x), parallel(x, mask, True)):
        torch.testing.assert_close(output, model(x, mask))
    with pytest.raises(sdy.OptionError, match="the input mask is missing"):
        parallel(x)
    parallel = sdy.parallelize(model, mesh, x, loss=lambda y, target: (y - target).sum(), example_targets=(mask,))
    torch.testing.assert_close(parallel(mask, x=x, flag=True), (model(x) - mask).sum())
    with pytest.raises(sdy.OptionError, match="the input flag is given, and the example has none"):
        parallel(x, mask, flag=False)
    parallel = sdy.parallelize(model, mesh, (x, None))
    with pytest.raises(sdy.OptionError, match="the input mask is a tensor, but was None"):
        parallel(x, mask)
    parallel = sdy.parallelize(model, mesh, (x, mask))
    with pytest.raises(sdy.OptionError, match="the input mask is None, but was a tensor"):
        parallel(x, None)


def test_many_programs_are_named_with_their_cause_and_bounded(mesh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cause is what has changed last; programs that were used last are kept, and parameters stay where they are."""
    monkeypatch.setattr(recent_programs, "KEPT", 3)
    monkeypatch.setattr(recent_programs, "MANY", 4)
    model = nn.Sequential(nn.Linear(16, 16, bias=False), nn.Dropout(0.0)).eval()
    parallel = sdy.parallelize(model, mesh, torch.randn(8, 16), {"0.weight": ("model", None)})
    first = next(iter(parallel.sdy_program.steps))
    for chance in (0.1, 0.2):
        parallel[1].p = chance
        parallel(torch.randn(8, 16))
    parallel[1].p = 0.0
    parallel(torch.randn(8, 16))
    parallel[1].p = 0.3
    with pytest.warns(UserWarning, match=r"4 programs .*the attribute p of 1 is 0\.3, and was 0\.2 before"):
        parallel(torch.randn(8, 16))
    kept = parallel.sdy_program.steps
    assert len(kept) == 3
    assert first in kept
    placements = [port.placements for step in kept.values() for port in step.arguments if port.name == "0.weight"]
    assert placements == [parallel[0].weight.placements] * 3


def test_exported_programs_of_many_shapes_are_bounded(mesh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes of 1 have programs of their own, which are dropped in their turn."""
    monkeypatch.setattr(recent_programs, "KEPT", 2)
    monkeypatch.setattr(recent_programs, "MANY", 2)
    dims = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    exported = torch.export.export(nn.ReLU(), (torch.ones(8, 4),), dynamic_shapes=(dims,))
    program = sdy.propagate(exported, mesh).to_torch(mesh)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for size in (2, 4, 6):
            assert program(torch.ones(1, size))[0].shape == (1, size)
    assert "many-programs" in str([item.message for item in caught])
    assert {item.filename for item in caught} == {__file__}
    assert len(program._programs) == 2


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x * 2 if x.sum() > 0 else x, r"test_changing_modules.py:\d+: error: .*\n.*it reads a number"),
        (lambda x: x[x > 0], r"test_changing_modules.py:\d+: error: .*\n.*the shape of its result depends on data"),
    ],
)
def test_errors_of_modules_name_the_line(mesh: Any, function: Callable[..., Any], message: str) -> None:
    """And what may stand there instead."""

    class Calling(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return function(x)

    with pytest.raises(sdy.UnsupportedError, match=message):
        sdy.parallelize(Calling(), mesh, torch.randn(8))


def test_modules_of_other_tools_are_refused(mesh: Any) -> None:
    """With the module to give in their place."""
    x = torch.randn(8, 16)
    parallel = sdy.parallelize(Perceptron(), mesh, x)
    for module, hint in ((torch.compile(Perceptron()), "_orig_mod"), (parallel, "is not parallel yet")):
        with pytest.raises(sdy.OptionError, match=rf"not-a-plain-module\]\n.*{hint}"):
            sdy.parallelize(module, mesh, x)


class Losses(nn.Module):
    """Losses that PyTorch computes by reading data."""

    def forward(self, x: torch.Tensor, labels: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, ...]:
        functional, times = nn.functional, torch.full((4,), 7)
        heard = functional.ctc_loss(x.log_softmax(-1), labels, times, lengths, reduction="none", zero_infinity=True)
        rows, spread = x[0], functional.softplus(x[1]) * 1e-5
        return heard, functional.gaussian_nll_loss(rows, x[2], spread, full=True)


def test_losses_that_read_data_are_computed_without(mesh: Any) -> None:
    """The gradient of the connectionist loss passes the logarithm of a softmax, as it does in PyTorch."""
    labels, lengths = torch.randint(1, 6, (4, 3)), torch.tensor([3, 0, 1, 2])
    inputs = [torch.randn(7, 4, 6).requires_grad_()]
    inputs.append(inputs[0].detach().clone().requires_grad_())
    parallel = sdy.parallelize(Losses(), mesh, (inputs[0], labels, lengths))
    pairs = Losses()(inputs[0], labels, lengths), parallel(inputs[1], labels, lengths)
    for heard, spread in pairs:
        (heard.sum() + spread * 1e-3).backward()
    torch.testing.assert_close(pairs[1], pairs[0])
    torch.testing.assert_close(inputs[1].grad, inputs[0].grad)


def test_exported_programs_write_their_inputs(mesh: Any) -> None:
    """As the exported module does."""

    class Adding(nn.Module):
        def forward(self, x: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
            cache.add_(x)
            return cache * 2

    exported = torch.export.export(Adding(), (torch.ones(4), torch.ones(4)))
    program = sdy.propagate(exported, mesh).to_torch(mesh)
    cache = torch.zeros(4)
    for step in (1, 2):
        assert program(torch.ones(4), cache)[0].equal(torch.full((4,), 2.0 * step))
        assert cache.equal(torch.full((4,), float(step)))
