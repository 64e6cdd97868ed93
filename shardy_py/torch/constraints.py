"""Sharding constraints inside of models: an operator that traced programs have where the model asks for a sharding."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

from shardy_py.api.meshes import DEFAULT_NAME, as_mesh
from shardy_py.api.specs import as_sharding, is_placements
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.sharding.mesh import Mesh

OPERATOR = "shardy_py.with_sharding_constraint.default"
"""The name of the operator in traced programs."""
_MESH: ContextVar[Any] = ContextVar("mesh", default=None)


def with_sharding_constraint(x: Any, sharding: Any, mesh: Any = None) -> Any:
    """Return a tensor that is to be sharded in this way; its gradient is sharded alike.

    Programs that `torch.export`, `make_fx` and `shardy_py.parallelize` trace keep the constraint, and propagation holds
    it. A module that runs as it is gets its tensor back.

    Args:
        x: A tensor. A ``DTensor`` is redistributed where placements are given.
        sharding: Placements, one for each dimension of the mesh; or, for each dimension of the tensor, the name of an
            axis, a tuple of several, or None; or Shardy's text.
        mesh: The device mesh of placements; `shardy_py.parallelize` knows its own.

    Raises:
        OptionError: the sharding is none, or placements have no mesh.
    """
    import torch
    from torch._subclasses.fake_tensor import FakeTensor
    from torch.distributed.tensor import DTensor
    from torch.fx.experimental.proxy_tensor import get_proxy_mode

    if isinstance(x, DTensor):
        return x.redistribute(placements=list(sharding)) if is_placements(sharding) else x
    if get_proxy_mode() is None and not isinstance(x, FakeTensor) and not torch.compiler.is_compiling():
        return x
    return _operator()(x, _as_text(sharding, x.dim(), mesh if mesh is not None else constraint_mesh()))


@contextmanager
def constraints_on(mesh: Any) -> Iterator[None]:
    """Trace modules whose constraints are over a device mesh."""
    token = _MESH.set(mesh)
    try:
        yield
    finally:
        _MESH.reset(token)


def constraint_mesh() -> Any:
    """Return the device mesh of the module that is being traced, or None."""
    return _MESH.get()


def _as_text(sharding: Any, rank: int, mesh: Any) -> str:
    if is_placements(sharding) and mesh is None:
        hint = "give mesh=..., or the names of axes for each dimension of the tensor"
        raise OptionError(Diagnostic("no-mesh", "placements are given without their mesh", hint=hint))
    known = Mesh() if mesh is None else as_mesh(mesh)
    return str(as_sharding(sharding, rank=rank, mesh_name=DEFAULT_NAME, mesh=known))


@cache
def _operator() -> Any:
    """Return the operator, which is defined when it is called first."""
    import torch

    library = torch.library.Library("shardy_py", "FRAGMENT")
    library.define("with_sharding_constraint(Tensor x, str sharding) -> Tensor")
    library.impl("with_sharding_constraint", lambda x, sharding: x.clone(), "CompositeExplicitAutograd")
    _LIBRARIES.append(library)
    name = "shardy_py::with_sharding_constraint"
    torch.library.register_autograd(name, _backward, setup_context=_keep)
    return torch.ops.shardy_py.with_sharding_constraint.default


_LIBRARIES: list[Any] = []
"""Keeps the operator: PyTorch takes it back with its library."""


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.sharding = inputs[1]


def _backward(ctx: Any, gradient: Any) -> Any:
    return _operator()(gradient, ctx.sharding), None
