"""Shardings that DTensor can say: whole axes of the mesh, in parts as DTensor cuts them."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from shardy_py.ir.graph.program import Program, Value
from shardy_py.ir.graph.types import static_shape
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding


def make_expressible(program: Program) -> dict[int, TensorSharding]:
    """Restrict the shardings of arguments and results to those that placements can express; other axes are gathered.

    Args:
        program: A propagated program, before its communication is explicit.

    Returns:
        The shardings that changed, as they were, by the id of the value.
    """
    main = program.functions["main"]
    mesh = next(iter(program.meshes.values()), Mesh())
    changed: dict[int, TensorSharding] = {}
    for value in (*main.regions[0].blocks[0].arguments, *main.function_results):
        sharding = program.shardings.get(value.id)
        if sharding is None:
            continue
        expressible = _expressible_part(value, sharding, mesh)
        if expressible != sharding:
            changed[value.id] = sharding
            program.shardings[value.id] = expressible
    return changed


def tie_pairs(program: Program, pairs: Sequence[tuple[int, int]]) -> None:
    """Let what a module takes and returns for one tensor have one sharding, also where a caller or a plan asks for two.

    The gradient of a parameter or input is returned where that is; the gradient of an output is taken where that is.

    Args:
        program: A propagated program of a traced module, before its communication is explicit.
        pairs: Numbers of arguments and of outputs.
    """
    main, origin = program.functions["main"], program.origin
    for argument, output in pairs:
        number = origin.outputs[output].result
        if number is None:
            continue
        value, result = main.regions[0].blocks[0].arguments[argument], main.function_results[number]
        if origin.arguments[argument].kind == "tangent":
            value, result = result, value
        sharding = program.shardings.get(value.id)
        if sharding is None:
            program.shardings.pop(result.id, None)
        else:
            program.shardings[result.id] = sharding


def _expressible_part(value: Value, sharding: TensorSharding, mesh: Mesh) -> TensorSharding:
    dims = []
    for dim, size in zip(sharding.dim_shardings, static_shape(value.type) or (), strict=True):
        axes: list[AxisRef] = []
        for axis in dim.axes:
            is_whole = axis.size(mesh) == mesh.axis_size(axis.name)
            # DTensor cuts along one axis after the other: uneven parts of uneven parts are others than ours.
            is_even = not axes or size % _count([*axes, axis], mesh) == 0
            if not (is_whole and is_even):
                break
            axes.append(axis)
        dims.append(evolve(dim, axes=tuple(axes)))
    return evolve(sharding, dim_shardings=tuple(dims), unreduced_axes=())


def _count(axes: list[AxisRef], mesh: Mesh) -> int:
    count = 1
    for axis in axes:
        count *= axis.size(mesh)
    return count
