"""Planned models on processes, for the tests: one start for all of them; prints JSON.

This process exports and propagates all models, then forks run them one after the other through ``parallelize_module``.
"""

from __future__ import annotations

import copy
import json
import multiprocessing
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import parallelize_module

import shardy_py as sdy
from shardy_py.torch.parallel import to_parallel_styles
from tests.torch.planned_models import MODELS


def _prepared(name: str, count: int) -> tuple[Any, ...]:
    """Return a model, its plan with warnings and notes, its inputs and what one process computes."""
    torch.manual_seed(0)
    planned = MODELS[name]
    model, inputs = planned.make().eval(), planned.inputs()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    result = sdy.propagate(planned.exported(model), {"m": count}, in_shardings=planned.shardings)
    warnings: list[sdy.Diagnostic] = []
    try:
        plan = result.parallelize_plan(axis="m", warnings=warnings)
    except sdy.ShardyError as error:
        return model, None, [item.code for item in error.diagnostics], inputs, None
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    codes = sorted({item.code for item in (*warnings, *plan.notes)})
    return model, plan, codes, inputs, model(*inputs)


def _seen(name: str, prepared: tuple[Any, ...], mesh: Any) -> dict[str, Any]:
    model, plan, codes, inputs, want = prepared
    if plan is None:
        return {"right": True, "codes": codes, "plan": None}
    styles = to_parallel_styles(plan)
    try:
        with torch.no_grad():
            parallel = parallelize_module(copy.deepcopy(model), mesh, styles)
            got = parallel(*inputs)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:300], "plan": {k: str(v) for k, v in plan.items()}}
    right = got.shape == want.shape and torch.allclose(got, want, atol=2e-2 if name == "autocast" else 1e-5)
    weights = {id(module.weight) for path in plan for module in [parallel.get_submodule(path)]}
    return {"right": right, "codes": codes, "plan": {k: str(v) for k, v in plan.items()}, "weights": len(weights)}


def main(count: int, names: Sequence[str]) -> None:
    """Run models and print what each process saw of them."""
    # Forks have no threads of their parent.
    torch.set_num_threads(1)
    prepared = {name: _prepared(name, count) for name in names}
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:

        def run(rank: int) -> None:
            dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=count)
            mesh = init_device_mesh("cpu", (count,), mesh_dim_names=("m",))
            seen = {name: _seen(name, item, mesh) for name, item in prepared.items()}
            Path(folder, str(rank)).write_text(json.dumps(seen))
            dist.destroy_process_group()

        started = [context.Process(target=run, args=(rank,)) for rank in range(count)]
        for process in started:
            process.start()
        for process in started:
            process.join()
        seen = [json.loads(Path(folder, str(rank)).read_text()) for rank in range(count)]
    print(json.dumps({name: [by_name[name] for by_name in seen] for name in names}))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:] or list(MODELS))
