"""Random numbers on shards: those that one process draws, wherever tensors are cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional

import shardy_py as sdy
from shardy_py.torch.parallel import make_local_torch_program
from shardy_py.torch.parallel.draws import check_random_states
from tests.conformance.sample import sample
from tests.torch.simulated import simulated

pytestmark = pytest.mark.torch
aten = torch.ops.aten
CALLS: dict[str, Callable[[torch.Tensor], Any]] = {
    "rand": lambda x: x + torch.rand(x.shape),
    "randn": lambda x: x + torch.randn(x.shape),
    "randint": lambda x: x + torch.randint(3, 90, x.shape),
    "normal": lambda x: x + torch.normal(1.0, 2.0, x.shape),
    "randperm": lambda x: x + torch.randperm(x.shape[1]),
    "rand_like": lambda x: x + torch.rand_like(x),
    "randn_like": lambda x: x + torch.randn_like(x),
    "randint_like": lambda x: x + torch.randint_like(x, 90),
    "randint_like from": lambda x: x + torch.randint_like(x, 3, 90),
    "bernoulli": lambda x: torch.bernoulli(x),
    "bernoulli of halves": lambda x: torch.bernoulli(x.half()),
    "bernoulli of one chance": lambda x: x + torch.bernoulli(x, 0.3),
    "dropout": lambda x: functional.dropout(x, 0.3),
    "dropout off": lambda x: functional.dropout(x, 0.3, False) + 1,
    "native_dropout": lambda x: aten.native_dropout(x, 0.3, True),
    "dropout of all": lambda x: aten.native_dropout(x, 1.0, True),
    "channels": lambda x: functional.dropout1d(x, 0.3),
    "multinomial": lambda x: torch.multinomial(x, 2),
    "multinomial with replacement": lambda x: torch.multinomial(x, 9, replacement=True),
    "slopes": lambda x: functional.rrelu(x - 0.5, training=True),
    "slopes off": lambda x: functional.rrelu(x - 0.5),
    "normal of tensors": lambda x: torch.normal(x, x + 1),
    "poisson": lambda x: torch.poisson(x * 9),
    "gumbel": lambda x: functional.gumbel_softmax(x, hard=True),
    "uniform": lambda x: x + torch.empty_like(x).uniform_(-1, 1),
    "exponential": lambda x: x + torch.empty_like(x).exponential_(2),
    "cauchy": lambda x: x + torch.empty_like(x).cauchy_(),
    "geometric": lambda x: x + torch.empty_like(x).geometric_(0.3),
    "log normal": lambda x: x + torch.empty_like(x).log_normal_(),
    "attention": lambda x: functional.scaled_dot_product_attention(x, x, x, dropout_p=0.3),
    "one after the other": lambda x: functional.dropout(functional.dropout(x, 0.3) + torch.rand(5), 0.3),
}


class _Model(torch.nn.Module):
    def __init__(self, call: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.call = call

    def forward(self, x: torch.Tensor) -> Any:
        return self.call(x)


@pytest.mark.parametrize("name", sample(CALLS, 3))
def test_devices_draw_the_numbers_of_one_process(name: str) -> None:
    """From the same state of the generator come the same numbers, on even and on uneven shards, and the same state."""
    x = torch.rand(6, 5)
    program = torch.export.export(_Model(CALLS[name]), (x,)).run_decompositions({})
    for sharding in (("a", "b"), (("a", "b"), None), (None, "a")):
        torch.manual_seed(3)
        want = program.module()(x)
        state = torch.get_rng_state()
        torch.manual_seed(3)
        got = simulated(program, (x,), {"a": 2, "b": 2}, {"x": sharding})
        for left, right in zip(got, want if isinstance(want, tuple) else (want,), strict=True):
            torch.testing.assert_close(left, right, rtol=1e-5, atol=1e-6, msg=f"{sharding}")
        assert torch.equal(torch.get_rng_state(), state)


IN_PLACE: dict[str, Callable[[torch.Tensor], Any]] = {
    "bernoulli": lambda x: torch.empty_like(x).bernoulli_(0.3),
    "normal": lambda x: torch.empty_like(x).normal_(1, 2),
    "random": lambda x: torch.empty_like(x).random_(9),
}
_OF_MATRICES = {*(name for name in CALLS if "multinomial" in name), "attention", "randperm", "one after the other"}
PERMUTED = {**{name: CALLS[name] for name in CALLS if name not in _OF_MATRICES}, **IN_PLACE}


@pytest.mark.parametrize("trace", ["export", "graph"])
@pytest.mark.parametrize("name", sample(PERMUTED, 4))
def test_permuted_tensors_draw_in_the_order_of_memory(name: str, trace: str) -> None:
    """So one process does it, whose tensors keep the order that their dimensions had; devices make new ones."""
    x, call = torch.rand(6, 5, 5), PERMUTED[name]
    model = _Model(
        lambda x: (call(x.transpose(0, 1) * 1), call(x.permute(1, 2, 0)), call(x[:, :, :1].permute(2, 1, 0)))
    )
    if trace == "export":
        program = torch.export.export(model, (x,)).run_decompositions({})
    else:
        program = make_fx(model, tracing_mode="fake")(x)
    for sharding in (None, ("a", "b"), (None, "a")):
        torch.manual_seed(3)
        want = (program.module() if trace == "export" else program)(x)
        torch.manual_seed(3)
        result = sdy.propagate(program, {"a": 2, "b": 2}, in_shardings={} if sharding is None else {0: sharding})
        local = make_local_torch_program(result.torch_forms.explicit, result.registry)
        for left, right in zip(local.simulate(x), torch.utils._pytree.tree_leaves(want), strict=True):
            torch.testing.assert_close(left, right, rtol=1e-5, atol=1e-6, msg=f"{sharding}")


def test_generators_in_different_states_are_an_error() -> None:
    """What one device draws another has to draw, too: the error names the device and what to call."""
    states = [torch.Generator().manual_seed(seed).get_state() for seed in (1, 1, 2)]
    check_random_states(states[:2])
    with pytest.raises(sdy.OptionError, match=r"devices 0 and 2 (.|\n)*torch\.manual_seed"):
        check_random_states(states)
