"""Shardings that the caller gives for the arguments of the main function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shardy_py.api.entry import argument_name, find_argument
from shardy_py.api.specs import as_sharding, mesh_of_spec
from shardy_py.errors import Diagnostic, OptionError, ShardyError, VerificationError
from shardy_py.ir.graph import Op, Program, Value
from shardy_py.ir.types import TensorType
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.sharding.verify import verify_tensor_sharding

InShardings = Mapping[int | str, Any] | Sequence[Any]
"""By argument (its number or its name ``"arg0"``), or a flat list in their order; None leaves one as it is."""


def mesh_of_in_shardings(in_shardings: InShardings | None) -> Mesh | None:
    """Return the mesh that the given shardings bring along, or None.

    Raises:
        OptionError: they bring different ones.
    """
    found: Mesh | None = None
    for _, spec in _entries(in_shardings):
        mesh = mesh_of_spec(spec)
        if mesh is not None and found is not None and mesh != found:
            raise OptionError(Diagnostic("mesh-conflict", f"the given shardings use two meshes, {found} and {mesh}"))
        found = found or mesh
    return found


def apply_in_shardings(program: Program, function: Op, in_shardings: InShardings | None, mesh_name: str) -> None:
    """Enter the given shardings into the table, over those the module has.

    Args:
        program: The program.
        function: Its main function.
        in_shardings: What the caller gave.
        mesh_name: The mesh of shardings that name none.

    Raises:
        ShardyError: some do not fit; all of them are reported.
    """
    problems: list[Diagnostic] = []
    for key, spec in _entries(in_shardings):
        try:
            argument = find_argument(function, key)
            program.shardings[argument.id] = _checked(program, argument, spec, mesh_name)
        except ShardyError as error:
            problems += (_located(item, function, key) for item in error.diagnostics)
    if problems:
        raise OptionError(*problems)


def _entries(in_shardings: InShardings | None) -> Iterator[tuple[int | str, Any]]:
    if in_shardings is None:
        return
    if isinstance(in_shardings, str) or not isinstance(in_shardings, Mapping | Sequence):
        raise OptionError(
            Diagnostic(
                "invalid-in-shardings",
                f"in_shardings is a {type(in_shardings).__name__}",
                hint="give a mapping from argument to sharding, or a flat list in the order of the arguments",
            )
        )
    items = in_shardings.items() if isinstance(in_shardings, Mapping) else enumerate(in_shardings)
    yield from ((key, spec) for key, spec in items if spec is not None)


def _checked(program: Program, argument: Value, spec: Any, mesh_name: str) -> TensorSharding:
    if not isinstance(argument.type, TensorType):
        raise OptionError(Diagnostic("not-a-tensor", f"its type is {argument.type}, which cannot be sharded"))
    meshes = program.meshes
    if mesh_name not in meshes and not meshes:
        raise OptionError(
            Diagnostic("no-mesh", "the module has no mesh to shard over", hint="give one, for example {'data': 4}")
        )
    sharding = as_sharding(spec, rank=argument.type.rank, mesh_name=mesh_name, mesh=meshes.get(mesh_name, Mesh()))
    mesh = sharding.mesh if isinstance(sharding.mesh, Mesh) else meshes.get(sharding.mesh)
    problems = verify_tensor_sharding(sharding, mesh, argument.type.shape)
    if problems:
        raise VerificationError(*problems)
    return sharding


def _located(diagnostic: Diagnostic, function: Op, key: int | str) -> Diagnostic:
    name = argument_name(key) if isinstance(key, int) else key
    return Diagnostic(
        diagnostic.code,
        f"the sharding given for {name}: {diagnostic.message}",
        location=function.location,
        op=function.name,
        hint=diagnostic.hint,
    )
