"""Models of other kinds on simulated devices."""

from __future__ import annotations

import os
from collections import Counter

import pytest
import torch

import shardy_py as sdy
from shardy_py.torch.parallel import make_local_torch_program
from tests.torch.other_models import OTHER_MODELS
from tests.torch.randomized import randomized

pytestmark = pytest.mark.torch
COLLECTIVES = {f"spmd.{kind}" for kind in ("all_gather", "all_reduce", "all_to_all", "reduce_scatter")}
BATCHES = (4, 5) if os.environ.get("SHARDY_ALL_PROGRAMS") else (5,)


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("name", OTHER_MODELS)
def test_simulated_devices_compute_what_one_does(name: str, batch: int) -> None:
    """Every op has a rule and a local form; as many collectives run as are predicted, moved or not."""
    model = OTHER_MODELS[name]
    module, example_inputs = randomized(model.make()), model.inputs(batch)
    program = torch.export.export(module, example_inputs).run_decompositions({})
    shardings = {**model.shardings, **dict.fromkeys(program.graph_signature.user_inputs, ("data",))}
    result = sdy.propagate(program, {"data": 2, "model": 2}, in_shardings=shardings, strict=True)
    forms, registry = result.torch_forms, result.registry
    with torch.no_grad():
        want = program.module()(*example_inputs)
    for optimize in (False, True):
        local = make_local_torch_program(forms.explicit, registry, strict=True, optimize=optimize)
        state, inputs = {**program.state_dict, **program.constants}, iter(example_inputs)
        arguments = [next(inputs) if item.kind == "input" else state[item.name] for item in local.origin.arguments]
        with torch.no_grad():
            got = local.simulate(*arguments)
        for left, right in zip(got, want if isinstance(want, tuple) else (want,), strict=True):
            assert float(right.std()) > 0
            assert float((left - right).abs().max() / right.abs().max()) <= 1e-5
        ran = Counter(op.name.removeprefix("spmd.") for op in local.program.walk() if op.name in COLLECTIVES)
        assert ran == Counter(item.kind for item in forms.redistributions(optimize=optimize))
