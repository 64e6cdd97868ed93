"""Functions that compute with the shard of each device: operators that traced programs have where shards begin and end.

A traced program has an ``enter_local`` for each argument, the operators of the function on tensors in the shapes of
shards, and a ``leave_local`` for each result; the frontend makes a manual computation of these.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cache
from math import prod
from typing import Any

from attrs import evolve

from shardy_py.api.meshes import DEFAULT_NAME, as_mesh
from shardy_py.api.specs import as_sharding, is_placements
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.parse import parse_tensor_sharding
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding
from shardy_py.torch.constraints import constraint_mesh

ENTER = "shardy_py.enter_local.default"
LEAVE = "shardy_py.leave_local.default"
"""The names of the operators in traced programs."""


def local_map(
    function: Callable[..., Any], out_placements: Any, in_placements: Sequence[Any], device_mesh: Any = None
) -> Callable[..., Any]:
    """Return a function of tensors that computes with the shard of each device, without communication inside.

    The arguments are those of `torch.distributed.tensor.experimental.local_map`. The function has an effect in programs
    that `shardy_py.parallelize` and, with a mesh, ``torch.export`` trace; a module that runs as it is calls it on its
    tensors. The gradient of an argument that is replicated along an axis is the sum of those of the devices where they
    differ.

    Args:
        function: The function. It takes all tensors that it computes with as arguments.
        out_placements: The placements of the result; for several results a list or tuple of the placements of each. The
            sum over devices is ``Partial()``, the mean ``Partial("avg")``.
        in_placements: The placements of each argument; None for what is replicated, or no tensor. The name of an axis
            for each dimension of the tensor may stand for placements, as ``("data", None)``.
        device_mesh: The mesh of placements; `shardy_py.parallelize` knows its own.

    Raises:
        OptionError: placements do not fit a tensor; a call raises it.
    """

    def mapped(*args: Any) -> Any:
        import torch
        from torch.distributed.tensor import DTensor
        from torch.utils import _pytree as pytree

        device = device_mesh if device_mesh is not None else constraint_mesh()
        if any(isinstance(item, DTensor) for item in args):
            from torch.distributed.tensor.experimental import local_map as of_dtensors

            options = {"device_mesh": device, "redistribute_inputs": True}
            return of_dtensors(function, out_placements, tuple(in_placements), **options)(*args)
        if device is None or not torch.compiler.is_exporting():
            return function(*args)
        mesh, results = as_mesh(device), _one_by_one(out_placements)
        varying = {name for spec in (*in_placements, *results) for name in _axes(spec, mesh)}
        _check_count("arguments", in_placements, args)
        shards = [_entered(x, spec, mesh, varying) for x, spec in zip(args, in_placements, strict=True)]
        leaves, structure = pytree.tree_flatten(function(*shards))
        _check_count("results", results, leaves)
        outputs = [_left(x, spec, mesh, varying) for x, spec in zip(leaves, results, strict=True)]
        return pytree.tree_unflatten(outputs, structure)

    return mapped


def _one_by_one(placements: Any) -> Sequence[Any]:
    """Return the placements of each result."""
    if is_placements(placements) or not isinstance(placements, (list, tuple)):
        return [placements]
    is_sequence = isinstance(placements, list) or any(map(is_placements, placements))
    return placements if is_sequence else [placements]


def _check_count(kind: str, placements: Sequence[Any], items: Sequence[Any]) -> None:
    if len(placements) != len(items):
        message = f"the function of a local_map has {len(items)} {kind}, and there are placements of {len(placements)}"
        raise OptionError(Diagnostic("local-map", message, hint="give the placements of each, or None"))


def _axes(spec: Any, mesh: Mesh) -> list[str]:
    """Return the names of the axes along which devices have different parts of a tensor."""
    if is_placements(spec):
        pairs = zip(mesh.axes, spec, strict=False)
        return [axis.name for axis, placement in pairs if type(placement).__name__ != "Replicate"]
    sharding = as_sharding(spec or (), rank=0, mesh_name=DEFAULT_NAME, mesh=mesh)
    return [axis.name for dim in sharding.dim_shardings for axis in dim.axes]


def _entered(x: Any, spec: Any, mesh: Mesh, varying: Collection[str]) -> Any:
    """Return the shard of an argument; along axes that it is replicated over, the gradients of the shards are summed.

    Raises:
        OptionError: its placements do not fit.
    """
    if not hasattr(x, "dtype"):
        return x
    partial = _partial(spec)
    if partial:
        hint = "give Replicate(): the sum is computed before"
        raise OptionError(Diagnostic("local-map", f"an argument cannot be placed as {partial[0]!r}", hint=hint))
    sharding = as_sharding(spec or (), rank=x.dim(), mesh_name=DEFAULT_NAME, mesh=mesh)
    shape = _local_shape(x.shape, sharding, mesh)
    return _operators()[0](x, str(sharding), shape, _mesh_text(mesh), _others(mesh, varying, _axes(spec, mesh)))


def _left(x: Any, spec: Any, mesh: Mesh, varying: Collection[str]) -> Any:
    """Return the whole result of its shards.

    Raises:
        OptionError: its placements do not fit.
    """
    equal = _others(mesh, varying, _axes(spec, mesh))
    kinds = {item.reduce_op for item in _partial(spec)}
    if not kinds:
        return _gathered(x, as_sharding(spec or (), rank=x.dim(), mesh_name=DEFAULT_NAME, mesh=mesh), mesh, equal)
    from torch.distributed.tensor import Replicate

    if not kinds <= {"sum", "avg"} or len(kinds) > 1:
        message = f"a result cannot be partial by {' and '.join(sorted(kinds))}"
        raise OptionError(Diagnostic("local-map", message, hint='give Partial() or Partial("avg") on all dimensions'))
    summed = [axis.name for axis, item in zip(mesh.axes, spec, strict=False) if _is_partial(item)]
    complete = [Replicate() if _is_partial(item) else item for item in spec]
    sharding = as_sharding(complete, rank=x.dim(), mesh_name=DEFAULT_NAME, mesh=mesh)
    parts = _gathered(x.unsqueeze(0), _stacked(sharding, summed), mesh, equal)
    return parts.sum(0) if kinds == {"sum"} else parts.mean(0)


def _gathered(shard: Any, sharding: TensorSharding, mesh: Mesh, equal: Sequence[str]) -> Any:
    """Return a tensor of its shards, which are equal along some axes."""
    shape = _global_shape(shard.shape, sharding, mesh)
    return _operators()[1](shard, str(sharding), shape, _mesh_text(mesh), equal)


def _partial(spec: Any) -> list[Any]:
    """Return the placements of a tensor that say that it is partial."""
    return [item for item in spec if _is_partial(item)] if is_placements(spec) else []


def _is_partial(placement: Any) -> bool:
    return type(placement).__name__ == "Partial"


def _others(mesh: Mesh, varying: Collection[str], names: Collection[str]) -> list[str]:
    """Return the axes along which other tensors of a function differ, and not this one."""
    return [axis.name for axis in mesh.axes if axis.name in varying and axis.name not in names]


def _stacked(sharding: TensorSharding, names: Sequence[str]) -> TensorSharding:
    """Return the sharding of a tensor that has a shard of each device along some axes, one behind the other."""
    first = DimensionSharding(tuple(AxisRef(name) for name in names))
    return evolve(sharding, dim_shardings=(first, *sharding.dim_shardings))


def _global_shape(shape: Sequence[int], sharding: TensorSharding, mesh: Mesh) -> list[int]:
    return [size * dim.sharded_size(mesh) for size, dim in zip(shape, sharding.dim_shardings, strict=True)]


def _local_shape(shape: Sequence[int], sharding: TensorSharding, mesh: Mesh) -> list[int]:
    """Return the shape of a shard.

    Raises:
        OptionError: a size does not divide, or the sharding is of another rank.
    """
    if len(sharding.dim_shardings) != len(shape):
        message = f"an argument of the shape {tuple(shape)} cannot be sharded as {sharding}"
        raise OptionError(Diagnostic("local-map", message, hint="give an axis or None for each dimension"))
    sizes = []
    for dim, (size, item) in enumerate(zip(shape, sharding.dim_shardings, strict=True)):
        parts = item.sharded_size(mesh)
        if size % parts:
            message = f"dimension {dim} of an argument has the size {size}, which {parts} devices do not divide"
            raise OptionError(Diagnostic("local-map", message, hint="pad it before the call, or replicate it"))
        sizes.append(size // parts)
    return sizes


def _mesh_text(mesh: Mesh) -> str:
    return ",".join(f"{axis.name}={axis.size}" for axis in mesh.axes)


def mesh_of_text(text: str) -> Mesh:
    """Return the mesh that an operator names."""
    pairs = (part.rpartition("=") for part in text.split(",")) if text else ()
    return as_mesh({name: int(size) for name, _, size in pairs})


@cache
def _operators() -> tuple[Any, Any]:
    """Return the operators, which are defined when they are called first."""
    import torch

    library = torch.library.Library("shardy_py", "FRAGMENT")
    library.define("enter_local(Tensor x, str sharding, SymInt[] shape, str mesh, str[] summed) -> Tensor")
    library.define("leave_local(Tensor x, str sharding, SymInt[] shape, str mesh, str[] equal) -> Tensor")
    for name in ("enter_local", "leave_local"):
        library.impl(name, lambda x, sharding, shape, mesh, names: x.new_empty(shape), "Meta")
    _LIBRARIES.append(library)
    torch.library.register_autograd("shardy_py::enter_local", _backward_of_enter, setup_context=_keep)
    torch.library.register_autograd("shardy_py::leave_local", _backward_of_leave, setup_context=_keep)
    return torch.ops.shardy_py.enter_local.default, torch.ops.shardy_py.leave_local.default


_LIBRARIES: list[Any] = []
"""Keeps the operators: PyTorch takes them back with their library."""


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.shape, (_, ctx.sharding, _, ctx.mesh, ctx.names) = list(inputs[0].shape), inputs


def _backward_of_enter(ctx: Any, gradient: Any) -> Any:
    leave = _operators()[1]
    if not ctx.names:
        return leave(gradient, ctx.sharding, ctx.shape, ctx.mesh, []), None, None, None, None
    sharding, mesh = _stacked(parse_tensor_sharding(ctx.sharding), ctx.names), mesh_of_text(ctx.mesh)
    count = prod(mesh.axis_size(name) for name in ctx.names)
    parts = leave(gradient.unsqueeze(0), str(sharding), [count, *ctx.shape], ctx.mesh, [])
    return parts.sum(0), None, None, None, None


def _backward_of_leave(ctx: Any, gradient: Any) -> Any:
    if ctx.names:
        # Each of the devices that have the same result gets a part of its gradient.
        gradient = gradient / prod(mesh_of_text(ctx.mesh).axis_size(name) for name in ctx.names)
    return _operators()[0](gradient, ctx.sharding, ctx.shape, ctx.mesh, []), None, None, None, None
