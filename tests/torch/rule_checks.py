"""Rules of operators against arithmetic: one op for each call, and its function on shards."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import torch
from attrs import evolve
from torch.utils import _pytree as pytree

from shardy_dialects.aten.indexing import UPDATES
from shardy_dialects.aten.owned_parts import indexed_dims
from shardy_dialects.aten.shapes import RESHAPES
from shardy_py.ir.graph.builder import Builder
from shardy_py.ir.graph.program import Op
from shardy_py.sharding.rule import FactorKind, OpShardingRule, factor_symbol
from shardy_py.torch.frontend.calls import Call, flat, schema_arguments
from shardy_py.torch.frontend.types import tensor_type
from shardy_py.torch.parallel.calls import call, operator_of
from shardy_py.torch.parallel.exported import to_array
from tests.torch.random_calls import UNKNOWN
from tests.torch.rule_calls import CALLS

_OF_RESULT = ("size", "input_size", "input_sizes")
"""Arguments that hold the sizes of the result."""
_GATHERED = {FactorKind.NEED_REPLICATION, FactorKind.PERMUTATION}
_UPDATES = {f"aten.{name}" for name in (*UPDATES, "slice_scatter.default", "select_scatter.default")}
_GRADIENTS = ("aten.slice_backward.default", "aten.select_backward.default")
_OWN_SIZE = ("unfold", "affine_grid_generator")
"""Operators in which such an argument is something else."""


def op_and_arrays(name: str) -> tuple[Op, list[Any]]:
    """Return the only op of a program, as the frontend makes it of a call, and the arrays of its operands."""
    args, kwargs = (CALLS | UNKNOWN)[name]
    target = operator_of(f"aten.{name}")
    arguments = schema_arguments(target, args, kwargs)
    leaves, spec = pytree.tree_flatten(arguments)
    tensors = [item for item in leaves if isinstance(item, torch.Tensor)]
    output = target(*args, **kwargs)
    results = [item for item in flat(output) if item is not None]
    builder = Builder()
    with builder.function("main", [_type(item) for item in tensors]) as values:
        left = iter(values)
        symbolic = [next(left) if isinstance(item, torch.Tensor) else item for item in leaves]
        single = Call(f"aten.{name}", pytree.tree_unflatten(symbolic, spec), tuple(map(_type, results)))
        operands = [value for _, value in single.operands()]
        op = builder.emit(single.name, operands, list(single.types), single.attributes())
        builder.return_(*op.results)
    by_id = {value.id: tensor for value, tensor in zip(values, tensors, strict=True)}
    return op, [_array(by_id[value.id]) for value in op.operands]


def flipped_rules(rule: OpShardingRule) -> Iterator[tuple[str, OpShardingRule]]:
    """Yield each rule that differs in the kind of one factor that operands have, with words for it."""
    lists = {
        FactorKind.REDUCTION: "reduction_factors",
        FactorKind.NEED_REPLICATION: "need_replication_factors",
        FactorKind.PERMUTATION: "permutation_factors",
    }
    for factor, size in enumerate(rule.factor_sizes):
        is_given = any(factor in dim for mapping in rule.operand_mappings for dim in mapping)
        old = rule.kind(factor)
        for new in FactorKind if size > 1 and is_given else ():
            if new in (old, FactorKind.PERMUTATION) or {old, new} <= _GATHERED:
                continue
            changed = {
                name: tuple(sorted({*getattr(rule, name)} - {factor} | ({factor} if kind is new else set())))
                for kind, name in lists.items()
            }
            combiners = tuple(pair for pair in rule.combiners if pair[0] != factor)
            yield f"{factor_symbol(factor)} as {new.value}", evolve(rule, **changed, combiners=combiners)


def function_of(op: Op) -> Callable[..., Any]:
    """Return what an op computes on the shards of a device, by the sizes that its local form would have."""
    short = op.name.removeprefix("aten.")

    def run(*arrays: Any, local: Any) -> tuple[Any, ...]:
        tensors = [torch.from_numpy(array.copy()) for array in arrays]
        attributes = dict(op.attributes)
        shape = list(local.results[0].shape)
        if short in RESHAPES:
            return (_array(tensors[0].reshape(shape)),)
        if short == "embedding.default":
            return (_array(_rows(tensors, local.operands[0].offset(0))),)
        if op.name in _UPDATES:
            return (_array(_own_part(op, tensors, local)),)
        if op.name in _GRADIENTS:
            return (_array(_part_of_gradient(op, tensors, local)),)
        extra_dims = ("size",) if short.startswith(_OWN_SIZE) else ()
        attributes |= {key: shape for key in _OF_RESULT if key in attributes and key not in extra_dims}
        if short == "native_group_norm.default":
            attributes["N"] = tensors[0].shape[0]
        if short == "affine_grid_generator.default":
            attributes["size"] = (tensors[0].shape[0], *attributes["size"][1:])
        _check_shapes(short, tensors)
        outputs = call(op.name, attributes, tensors, torch.device("cpu"))
        return tuple(_array(item) for item in outputs if item is not None)

    return run


def _check_shapes(short: str, tensors: list[torch.Tensor]) -> None:
    """Refuse operands that operators without checks of their own would read beyond their ends.

    Raises:
        ValueError: the shapes do not belong together.
    """
    shapes = [tuple(tensor.shape) for tensor in tensors]
    if re.fullmatch(r"max_pool[23]d_with_indices_backward\.default", short):
        is_right = shapes[0] == shapes[2] == (*shapes[1][:2], *(size // 2 for size in shapes[1][2:]))
        is_right = is_right and int(tensors[2].max()) < prod(shapes[1][2:])
    elif short.startswith("_scaled_dot_product_flash_attention_for_cpu_backward"):
        is_right = len({*shapes[:5]}) == 1 and shapes[5] == shapes[0][:-1]
    else:
        return
    if not is_right:
        raise ValueError(f"the shapes do not belong together: {shapes}")


def _rows(tensors: list[torch.Tensor], offset: int) -> torch.Tensor:
    table, indices = tensors
    local_indices = indices - offset
    inside = (local_indices >= 0) & (local_indices < len(table))
    return table[local_indices.clamp(0, len(table) - 1)] * inside.unsqueeze(-1)


def _own_part(op: Op, tensors: list[torch.Tensor], local: Any) -> torch.Tensor:
    """Return what an update makes of a part of its first operand, by an update of a whole one that has this part."""
    part = local.operands[0]
    ends = [slice(part.offset(dim), part.offset(dim) + size) for dim, size in enumerate(part.shape)]
    shape = [size if dim in owned_dims(op) else tensors[0].shape[dim] for dim, size in enumerate(op.operands[0].shape)]
    at = tuple(ends[dim] if dim in owned_dims(op) else slice(None) for dim in range(len(shape)))
    whole = torch.zeros(shape, dtype=tensors[0].dtype)
    whole[at] = tensors[0]
    (updated,) = call(op.name, op.attributes, [whole, *tensors[1:]], torch.device("cpu"))
    return updated[at]


def _part_of_gradient(op: Op, tensors: list[torch.Tensor], local: Any) -> torch.Tensor:
    """Return the part of a device of the gradient of a slice or an element, from the whole gradient."""
    part, shape = local.results[0], list(op.attributes["input_sizes"])
    dim = int(op.attributes["dim"]) % len(shape)
    sizes = [size if each == dim else part.shape[each] for each, size in enumerate(shape)]
    (whole,) = call(op.name, {**op.attributes, "input_sizes": sizes}, tensors, torch.device("cpu"))
    return whole.narrow(dim, part.offset(dim), part.shape[dim])


def owned_dims(op: Op) -> set[int]:
    """Return the dimensions along which each device updates its own part."""
    if "_scatter.default" in op.name:
        return {int(op.attributes["dim"]) % len(op.operands[0].shape)}
    return set(indexed_dims(op))


def _type(item: torch.Tensor) -> Any:
    return tensor_type(item, node="", location="")


def _array(item: torch.Tensor) -> Any:
    return to_array(item.resolve_conj())
