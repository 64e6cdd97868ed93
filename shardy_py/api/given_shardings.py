"""Shardings that the caller gives for the arguments and results of the main function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from shardy_py.api.main_function import (
    MainValues,
    argument_name,
    main_arguments,
    main_results,
    result_name,
)
from shardy_py.errors import Diagnostic, OptionError, ShardyError, VerificationError
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.sharding.verify import field_problem, verify_tensor_sharding
from shardy_py.support.arguments import shown
from shardy_py.values import frozen

InShardings = Mapping[int | str, Any] | Sequence[Any]
"""By argument (number, name ``"arg0"`` or glob of names), or a flat list in their order; None leaves one as it is."""
OutShardings = Mapping[int | str, Any] | Sequence[Any]
"""By result (its number or its name ``"result0"``), or a flat list in their order; None leaves one as it is."""


def meshes_of_shardings(
    in_shardings: InShardings | None, out_shardings: OutShardings | None = None
) -> tuple[Mesh, ...]:
    """Return the distinct meshes that the given shardings bring along."""
    return tuple(mesh for mesh in _brought_meshes(in_shardings, out_shardings) if mesh is not None)


def uses_mesh(mesh: Mesh, in_shardings: InShardings | None, out_shardings: OutShardings | None) -> bool:
    """Return whether a given sharding may be over a mesh: it brings this one along, or none."""
    brought = _brought_meshes(in_shardings, out_shardings)
    return None in brought or mesh in brought


def _brought_meshes(in_shardings: InShardings | None, out_shardings: OutShardings | None) -> dict[Mesh | None, None]:
    """Return the distinct meshes of the given shardings, in order, and None if one brings none along."""
    entries = chain(_entries(in_shardings, _ARGUMENT), _entries(out_shardings, _RESULT))
    specs = [spec for _, spec in entries if spec is not None]
    if not specs:
        return {}
    from shardy_py.api.specs import mesh_of_spec

    return dict.fromkeys(map(mesh_of_spec, specs))


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
    _apply(program, function, _entries(in_shardings, _ARGUMENT), mesh_name, _ARGUMENT)


def apply_out_shardings(program: Program, function: Op, out_shardings: OutShardings | None, mesh_name: str) -> None:
    """Enter the given shardings of results into the table; as `apply_in_shardings`.

    Raises:
        ShardyError: some do not fit; all of them are reported.
    """
    _apply(program, function, _entries(out_shardings, _RESULT), mesh_name, _RESULT)


@frozen
class _Kind:
    """Words and look-ups of arguments, or of results.

    Args:
        option: The name of the option.
        noun: What one of them is called.
        name: Its name by its number.
        values: Those of a function.
        attributes: The attribute of a function with the attributes of each.
    """

    option: str
    noun: str
    name: Callable[[int], str]
    values: Callable[[Op], MainValues]
    attributes: str


_ARGUMENT = _Kind("in_shardings", "argument", argument_name, main_arguments, "arg_attrs")
_RESULT = _Kind("out_shardings", "result", result_name, main_results, "res_attrs")
_MEMORY_KIND = "mhlo.memory_kind"


def _apply(
    program: Program, function: Op, entries: Iterable[tuple[int | str, Any]], mesh_name: str, kind: _Kind
) -> None:
    given = list(entries)
    if not given:
        return
    problems: list[Diagnostic] = []
    values = kind.values(function)
    annotated: dict[int, tuple[frozenset[str], int | str, TensorSharding]] = {}
    for key, spec in given:
        try:
            # None changes nothing, but has to be given for something.
            for value, names in values.find_all(key):
                if spec is None:
                    continue
                sharding = _checked(program, value, spec, mesh_name)
                _refuse_other_memory(function, value, spec, kind)
                _refuse_other_name(annotated.get(value.id), names, sharding)
                annotated[value.id] = names, key, sharding
                program.shardings[value.id] = sharding
        except ShardyError as error:
            problems += (_located(item, function, key, kind) for item in error.diagnostics)
    if problems:
        raise OptionError(*problems)


def _refuse_other_memory(function: Op, value: Value, spec: Any, kind: _Kind) -> None:
    """Check that a sharding names no memory but that in which the module has the argument or result.

    Raises:
        OptionError: it does.
    """
    from shardy_py.api.specs import memory_of_spec

    memory = memory_of_spec(spec)
    if memory is None:
        return
    attributes = function.attributes.get(kind.attributes) or ()
    own = str(attributes[value.index].get(_MEMORY_KIND, "")).strip('"') if value.index < len(attributes) else ""
    if memory != own:
        message = f"it is in the memory {memory!r}, where the module does not have the {kind.noun}"
        hint = f"give it to jax.jit({kind.option}=...), of which the module is lowered"
        raise OptionError(Diagnostic("other-memory", message, hint=hint))


def _refuse_other_name(
    earlier: tuple[frozenset[str], int | str, TensorSharding] | None, names: frozenset[str], sharding: TensorSharding
) -> None:
    """Check that two names of one tensor do not have different shardings; of two entries for one name the last counts.

    Raises:
        OptionError: they have.
    """
    if earlier is None or not earlier[0] or not names or earlier[0] & names or earlier[2] == sharding:
        return
    message = f"it is {sharding}, but the same tensor is {earlier[2]} under its name {earlier[1]!r}"
    hint = "tied weights are one tensor with one sharding: give it under one of the names"
    raise OptionError(Diagnostic("tied-shardings", message, hint=hint))


def _entries(shardings: InShardings | OutShardings | None, kind: _Kind) -> Iterator[tuple[int | str, Any]]:
    if shardings is None:
        return
    if isinstance(shardings, str) or not isinstance(shardings, Mapping | Sequence):
        raise OptionError(
            Diagnostic(
                f"invalid-{kind.option.replace('_', '-')}",
                f"{kind.option} is a {type(shardings).__name__}",
                hint=f"give a mapping from {kind.noun} to sharding, or a flat list in the order of the {kind.noun}s",
            )
        )
    if isinstance(shardings, Mapping):
        yield from shardings.items()
        return
    _refuse_axes(shardings, kind)
    yield from enumerate(shardings)


def _refuse_axes(axes: Sequence[Any], kind: _Kind) -> None:
    """Check that a list is one of shardings, and not the sharding of one argument or result.

    Raises:
        OptionError: it has the name of an axis.
    """
    from shardy_py.api.specs import is_text

    axis = next((spec for spec in axes if isinstance(spec, str) and not is_text(spec)), None)
    if axis is None:
        return
    message = f"{kind.option} is {shown(axes)}, in which {axis!r} is not a sharding"
    hint = f"for {kind.noun} 0 alone, give {{0: {shown(tuple(axes))}}}; in a list, one sharding per {kind.noun}"
    raise OptionError(Diagnostic(f"invalid-{kind.option.replace('_', '-')}", message, hint=hint))


def _checked(program: Program, value: Value, spec: Any, mesh_name: str) -> TensorSharding:
    if not isinstance(value.type, TensorType):
        raise OptionError(Diagnostic("not-a-tensor", f"its type is {value.type}, which cannot be sharded"))
    meshes = program.meshes
    if mesh_name not in meshes and not meshes:
        raise OptionError(
            Diagnostic(
                "no-mesh", "the module has no mesh to shard over", hint="give one: mesh={'data': 4} (--mesh data=4)"
            )
        )
    from shardy_py.api.specs import as_sharding, mesh_of_spec

    own_mesh = mesh_of_spec(spec)
    mesh_name = next((name for name in meshes if meshes[name] == own_mesh), mesh_name)
    sharding = as_sharding(spec, rank=value.type.rank, mesh_name=mesh_name, mesh=meshes.get(mesh_name, Mesh()))
    problem = field_problem(sharding)
    if problem is not None:
        raise VerificationError(problem)
    mesh = sharding.mesh if isinstance(sharding.mesh, Mesh) else meshes.get(sharding.mesh)
    problems = verify_tensor_sharding(sharding, mesh, value.type.shape)
    if problems:
        raise VerificationError(*problems)
    return sharding


def _located(diagnostic: Diagnostic, function: Op, key: int | str, kind: _Kind) -> Diagnostic:
    name = kind.name(key) if isinstance(key, int) else key
    return Diagnostic(
        diagnostic.code,
        f"the sharding given for {name}: {diagnostic.message}",
        location=function.location,
        op=function.name,
        hint=diagnostic.hint,
    )
