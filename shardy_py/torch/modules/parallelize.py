"""`parallelize`: a module of PyTorch becomes one whose tensors are sharded over a mesh, and that trains."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.support.arguments import checked
from shardy_py.torch.modules.automatic_plans import plan_request
from shardy_py.torch.modules.joint import without_elements
from shardy_py.torch.modules.parallel_module import parallel_class, with_tensors
from shardy_py.torch.modules.parallel_program import ParallelProgram
from shardy_py.torch.parallel.distribute import distributed


@checked
def parallelize(
    model: Any,
    mesh: Any,
    example_inputs: Any,
    in_shardings: Mapping[int | str, Any] | Sequence[Any] | None = None,
    loss: Callable[..., Any] | None = None,
    *,
    example_targets: Sequence[Any] = (),
    example_kwargs: Mapping[str, Any] | None = None,
    whole_outputs: bool = True,
    dynamic_shapes: bool = False,
    bucket_bytes: float = 0.0,
    strict: bool = False,
    plan: Literal["auto"] | None = None,
    budget_memory: float | None = None,
    machine: Any = None,
    **options: Any,
) -> Any:
    """Return a module that is used as ``model`` is, and runs on shards as sharding propagation places them.

    Forward and backward pass are traced and propagated together. Parameters and buffers are DTensors under their
    names. Every process calls this, with equal arguments; the tensors of the first process count.

    Args:
        model: The module; it stays as it is. Its tensors may be on the device ``meta``.
        mesh: A ``DeviceMesh``, or the sizes by name, for a new one of all processes.
        example_inputs: The inputs of ``model``, a tensor or a tuple: those of later calls have the same shapes,
            unless shapes are dynamic.
        in_shardings: The shardings of inputs, parameters and buffers, as `propagate` takes them: by the names of the
            parameters of ``forward``, by those of the state, or by the number of an input.
        loss: A function of what ``model`` returns, and of ``example_targets``; the module then returns its value.
        example_targets: The further inputs of ``loss``; calls give them behind the inputs of ``model``.
        example_kwargs: Inputs of ``model`` by name.
        whole_outputs: Whether the module returns whole tensors; otherwise DTensors.
        dynamic_shapes: Whether inputs of later calls may have other shapes. One program runs at the sizes that divide
            alike and at which the same is sent; others get one of their own when they come first.
        bucket_bytes: The bytes that one call of a collective moves at most of several tensors, such as 25e6: parameters
            are gathered, and gradients reduced, in buckets. 0 is a call for each tensor. A module with checkpoints of
            activations has no buckets.
        strict: Whether an op without a local form is an error; otherwise it runs on gathered operands, with a warning.
        plan: ``auto`` places what ``in_shardings`` leave open so that a step takes the least time, as `plan` does; the
            plan is ``sdy_program.plan`` of the module.
        budget_memory: The bytes that a device may use at most with a plan.
        machine: The machine that a plan is for, as `plan` takes it; by default eight GPUs or CPUs.
        options: Further options of `propagate`, such as ``out_shardings`` or ``schedule``.

    Raises:
        ShardyError: an argument does not fit, or the module cannot be traced.
    """
    import torch
    from torch._subclasses import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv
    from torch.utils._pytree import tree_leaves

    if not isinstance(model, torch.nn.Module):
        hint = "give a torch.nn.Module; for a traced graph use propagate"
        raise OptionError(Diagnostic("not-a-module", f"model is a {type(model).__name__}", hint=hint))
    _require_plain(model)
    if isinstance(loss, torch.nn.Module) and any(True for _ in loss.parameters()):
        hint = "make it a part of the model, which then returns the loss"
        raise OptionError(Diagnostic("loss-parameters", "the loss has parameters of its own", hint=hint))
    device_mesh = as_device_mesh(mesh)
    args = example_inputs if isinstance(example_inputs, (tuple, list)) else (example_inputs,)
    environment = ShapeEnv(duck_shape=False) if dynamic_shapes else None
    mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=environment)
    kind = device_mesh.device_type
    args, kwargs = (*args, *example_targets), dict(example_kwargs or {})
    program = ParallelProgram(
        with_tensors(model, lambda name, tensor: without_elements(tensor.detach(), mode, kind)),
        mode,
        device_mesh,
        without_elements(args, mode, kind),
        without_elements(kwargs, mode, kind),
        len(args) - len(example_targets),
        in_shardings if isinstance(in_shardings, Mapping) else dict(enumerate(in_shardings or ())),
        loss,
        strict,
        whole_outputs,
        dynamic_shapes,
        bucket_bytes,
        plan_request(plan, machine, budget_memory, kind),
        options,
    )
    step = program.step(list(model.modules()), tree_leaves((args, kwargs)))
    ports = {
        name: port for port, (_, item) in zip(step.arguments, step.trace.arguments, strict=False) for name in item.names
    }

    def shard(name: str, tensor: Any) -> Any:
        placements = ports[name].placements if name in ports else None
        # A part of a tensor would keep all of it, and the whole one would be that of the model.
        return distributed(tensor.detach(), device_mesh, placements).clone()

    parallel = with_tensors(model, shard)
    for hooks in _hooks(parallel):
        # They are in the graph.
        hooks.clear()
    cls: Any = type(model)
    parallel.__class__ = parallel_class(cls)
    parallel.__dict__["sdy_program"] = program
    return parallel


def _require_plain(model: Any) -> None:
    """Refuse modules that another tool has made, and that cannot be traced.

    Raises:
        OptionError: the module is compiled, scripted, or parallel already.
    """
    import torch

    inner, kind = None, ""
    if isinstance(model, torch._dynamo.eval_frame.OptimizedModule):
        inner, kind = "model._orig_mod, and compile what sdy.parallelize returns", "compiled"
    elif isinstance(model, torch.jit.ScriptModule):
        inner, kind = "the module of which the script was made", "a script"
    elif isinstance(model, torch.nn.parallel.DistributedDataParallel):
        inner, kind = "model.module, with the batch sharded: {0: ('data',)}", "DistributedDataParallel"
    elif any(hasattr(tensor, "placements") for tensor in (*model.parameters(), *model.buffers())):
        inner, kind = "the module that is not parallel yet, and all shardings at once", "parallel already"
    if inner is not None:
        raise OptionError(Diagnostic("not-a-plain-module", f"the module is {kind}", hint=f"give {inner}"))


def _hooks(module: Any) -> list[dict[int, Any]]:
    """Return the hooks of the forward and backward pass of a module."""
    kinds = ("forward", "forward_pre", "backward", "backward_pre")
    return [getattr(module, f"_{kind}_hooks") for kind in kinds]


def as_device_mesh(mesh: Any) -> Any:
    """Return a device mesh, made of all processes where only the sizes are given by name."""
    if not isinstance(mesh, Mapping):
        return mesh
    import torch
    from torch.distributed.device_mesh import init_device_mesh

    kind = "cuda" if torch.cuda.is_available() else "cpu"
    return init_device_mesh(kind, tuple(mesh.values()), mesh_dim_names=tuple(mesh))
