"""Planned models on processes, for the tests: one start for all of them; prints JSON.

This process exports and propagates all models, then forks run them one after the other through ``parallelize_module``.
"""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from attrs import frozen
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import parallelize_module

import shardy_py as sdy
from shardy_py.torch.parallel import to_parallel_styles
from tests.torch.forked import run_forked
from tests.torch.planned_models import MODELS


@frozen
class Exported:
    """A model that is exported.

    Args:
        model: The model.
        program: What was exported of it.
        inputs: Its inputs.
        want: What one process computes.
    """

    model: torch.nn.Module
    program: Any
    inputs: tuple[Any, ...]
    want: torch.Tensor


def _exported(name: str) -> Exported:
    torch.manual_seed(0)
    model, inputs = MODELS[name].make().eval(), MODELS[name].inputs()
    return Exported(model, MODELS[name].exported(model), inputs, model(*inputs))


def _plan(name: str, exported: Exported, count: int) -> tuple[Any, list[str]]:
    """Return the plan of a model, None where there is none, and the codes of its warnings and notes, or errors."""
    before = {key: value.clone() for key, value in exported.model.state_dict().items()}
    result = sdy.propagate(exported.program, {"m": count}, in_shardings=MODELS[name].shardings)
    warnings: list[sdy.Diagnostic] = []
    try:
        plan = result.parallelize_plan(axis="m", warnings=warnings)
    except sdy.ShardyError as error:
        return None, [item.code for item in error.diagnostics]
    assert all(torch.equal(value, before[key]) for key, value in exported.model.state_dict().items())
    return plan, sorted({item.code for item in (*warnings, *plan.notes)})


def _seen(name: str, exported: Exported, plan: Any, codes: list[str], mesh: Any) -> dict[str, Any]:
    want = exported.want
    if plan is None:
        return {"right": True, "codes": codes, "plan": None}
    styles = to_parallel_styles(plan)
    try:
        with torch.no_grad():
            parallel = parallelize_module(copy.deepcopy(exported.model), mesh, styles)
            got = parallel(*exported.inputs)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:300], "plan": {k: str(v) for k, v in plan.items()}}
    right = got.shape == want.shape and torch.allclose(got, want, atol=2e-2 if name == "autocast" else 1e-5)
    weights = {id(module.weight) for path in plan for module in [parallel.get_submodule(path)]}
    return {"right": right, "codes": codes, "plan": {k: str(v) for k, v in plan.items()}, "weights": len(weights)}


def _on_processes(count: int, exported: Mapping[str, Exported]) -> dict[str, list[dict[str, Any]]]:
    """Return what each of some processes saw of each model."""
    plans = {name: _plan(name, item, count) for name, item in exported.items()}

    def run(*_: Any) -> dict[str, Any]:
        mesh = init_device_mesh("cpu", (count,), mesh_dim_names=("m",))
        return {name: _seen(name, item, *plans[name], mesh) for name, item in exported.items()}

    collected = run_forked(run, count)
    return {name: [seen[name] for seen in collected] for name in exported}


def main(counts: Sequence[int], names: Sequence[str]) -> None:
    """Run models and print what each process saw of them, for each number of processes."""
    # Forks have no threads of their parent.
    torch.set_num_threads(1)
    exported = {name: _exported(name) for name in names}
    print(json.dumps({count: _on_processes(count, exported) for count in counts}))


if __name__ == "__main__":
    main([int(count) for count in sys.argv[1].split(",")], sys.argv[2:] or list(MODELS))
