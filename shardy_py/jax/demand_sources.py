"""Ops that demand something of their operands: indices in range, positive numbers under a logarithm, and so on.

Ops are known by their names without the dialect, since StableHLO and CHLO give the same name to the same function.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from attrs import evolve

from shardy_py.ir.graph.attributes import DenseElements
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.jax.demands import (
    ABOVE_ONE,
    DEFINITE,
    INSIDE_UNIT,
    POSITIVE,
    Demand,
    up_to,
)

Demands = Iterable[tuple[Value, Demand]]

FORWARDING = frozenset(
    (
        *("all_gather", "all_slice", "all_to_all", "broadcast", "broadcast_in_dim", "collective_broadcast"),
        *("collective_permute", "convert", "copy", "dynamic_broadcast_in_dim", "dynamic_gather", "dynamic_reshape"),
        *(
            "dynamic_slice",
            "gather",
            "real_dynamic_slice",
            "reduce_precision",
            "reshape",
            "reverse",
            "round_nearest_afz",
        ),
        *("round_nearest_even", "floor", "ceil", "set_dimension_size", "slice", "transpose"),
    )
)
"""Ops whose results hold elements of their first operand, or numbers near them."""

_POSITIVE = frozenset(("log", "sqrt", "rsqrt", "cbrt", "lgamma", "digamma", "igamma", "igammac"))
_INSIDE_UNIT = frozenset(("acos", "asin", "atanh", "erf_inv", "log_plus_one"))
_DEFINITE = frozenset(("cholesky", "triangular_solve", "eigh"))
_DEFINITE_TARGETS = re.compile(
    r"^(?:lapack_|cusolver_|hipsolver_)?(?:[sdcz]?(?:potrf|trsm|getrf|syevd|heevd)|syevj?d?)"
)
_DEFINITE_CALLS = frozenset(("Cholesky", "Eigh", "LuDecomposition"))
_LIST = re.compile(r"(\w+)\s*=\s*\[([^\]]*)\]")
_NUMBER = re.compile(r"(\w+)\s*=\s*(-?\d+)")


def base_name(op: Op) -> str:
    """Return the name of an op without its dialect, and without the prefix of CHLO's broadcasting ops."""
    dialect, _, name = op.name.rpartition(".")
    return name.removeprefix("broadcast_") if dialect == "chlo" else name


def demands_of(op: Op) -> Demands:
    """Return the demands of an op on its operands, whatever becomes of its results."""
    name = base_name(op)
    source = _SOURCES.get(name)
    if source is not None:
        return source(op)
    for names, demand in ((_POSITIVE, POSITIVE), (_INSIDE_UNIT, INSIDE_UNIT), (_DEFINITE, DEFINITE)):
        if name in names:
            return [(op.operands[0], demand)]
    return ()


def largest_value(value: Value) -> float | None:
    """Return the largest element of an integer constant or an iota, also one that is broadcast; else None."""
    op = _origin(value)
    if op is None:
        return None
    if base_name(op) == "iota":
        return max((iota_size(op.results[0]) or 1) - 1, 0)
    constant = op.attributes.get("value")
    return max(constant.values) if isinstance(constant, DenseElements) and constant.values else None


def iota_size(value: Value) -> int | None:
    """Return the length of an iota, also of one that is broadcast; None for any other value."""
    op = _origin(value)
    if op is None or base_name(op) not in ("iota", "dynamic_iota"):
        return None
    type_ = op.results[0].type
    return type_.shape[int(op.attributes["iota_dimension"])] if isinstance(type_, TensorType) else None


def is_integer(value: Value) -> bool:
    """Return whether the elements are integers, and not booleans."""
    type_ = value.type
    return isinstance(type_, TensorType) and bool(re.match(r"[su]?i(?!1$)\d", type_.element_type))


def _origin(value: Value) -> Op | None:
    """Return the op that makes a value, behind those that move or repeat its elements."""
    op = value.defining_op
    while op is not None and op.operands and base_name(op) in FORWARDING:
        op = op.operands[0].defining_op
    return op


def _gather(op: Op) -> Iterator[tuple[Value, Demand]]:
    lists, index_vector_dim = _dimension_numbers(op, "dimension_numbers")
    sizes = op.attributes.get("slice_sizes") or ()
    shape = _shape(op.operands[0])
    limits = [_size(shape, dim) - _size(sizes, dim) for dim in lists.get("start_index_map", ())]
    yield from _index_columns(op.operands[1], index_vector_dim, limits, _ordered(op, Demand()))


def _scatter(op: Op) -> Iterator[tuple[Value, Demand]]:
    inputs = len(op.results)
    lists, index_vector_dim = _dimension_numbers(op, "scatter_dimension_numbers")
    shape, updates = _shape(op.operands[0]), _shape(op.operands[-1])
    dims = lists.get("scatter_dims_to_operand_dims", ())
    without = {*lists.get("inserted_window_dims", ()), *lists.get("input_batching_dims", ())}
    window = iter([_size(updates, dim) for dim in lists.get("update_window_dims", ())])
    sizes = [1 if dim in without else next(window, 1) for dim in range(len(shape))]
    limits = [_size(shape, dim) - sizes[dim] for dim in dims]
    # Of equal indices the last one wins, and which one that is depends on the partition.
    yield from _index_columns(op.operands[inputs], index_vector_dim, limits, _ordered(op, Demand(distinct=True)))


def _index_columns(indices: Value, dim: int, limits: Sequence[int], model: Demand) -> Iterator[tuple[Value, Demand]]:
    """Yield the demands on index vectors: on the parts that they are made of, where these are concatenated."""
    if not limits:
        return
    op = indices.defining_op
    if op is not None and base_name(op) == "concatenate" and op.attributes.get("dimension") == dim:
        start = 0
        for part in op.operands:
            end = start + _size(_shape(part), dim)
            yield from _index_columns(part, dim, limits[start:end], model)
            start = end
        return
    yield indices, evolve(model, low=0, high=max(min(limits), 0))


def _ordered(op: Op, demand: Demand) -> Demand:
    return evolve(demand, ordered=True) if op.attributes.get("indices_are_sorted") else demand


def _dynamic_slice(op: Op) -> Iterator[tuple[Value, Demand]]:
    sizes = op.attributes.get("slice_sizes") or ()
    for dim, (index, size) in enumerate(zip(op.operands[1:], _shape(op.operands[0]), strict=False)):
        yield index, up_to(size - _size(sizes, dim))


def _dynamic_update_slice(op: Op) -> Iterator[tuple[Value, Demand]]:
    update = _shape(op.operands[1])
    for dim, (index, size) in enumerate(zip(op.operands[2:], _shape(op.operands[0]), strict=False)):
        yield index, up_to(size - _size(update, dim))


def _compare(op: Op) -> Iterator[tuple[Value, Demand]]:
    """Yield the demand on what is compared with an iota: that it meets an element."""
    for value, other in (op.operands, reversed(op.operands)):
        size = iota_size(other)
        if size is not None and is_integer(value):
            yield value, up_to(size - 1)


def _case(op: Op) -> Iterator[tuple[Value, Demand]]:
    if is_integer(op.operands[0]):
        yield op.operands[0], up_to(len(op.regions) - 1)


def _divide(op: Op) -> Iterator[tuple[Value, Demand]]:
    yield op.operands[1], Demand(low=1) if is_integer(op.operands[1]) else POSITIVE


def _power(op: Op) -> Iterator[tuple[Value, Demand]]:
    if not is_integer(op.operands[0]):
        yield op.operands[0], POSITIVE


def _shift(op: Op) -> Iterator[tuple[Value, Demand]]:
    bits = re.search(r"\d+$", getattr(op.operands[1].type, "element_type", ""))
    yield op.operands[1], up_to(int(bits[0]) - 1 if bits else 0)


def _ragged_dot(op: Op) -> Iterator[tuple[Value, Demand]]:
    lists, _ = _dimension_numbers(op, "ragged_dot_dimension_numbers")
    ragged = lists.get("lhs_ragged_dimensions", (0,))
    if len(op.operands) > 2 and ragged:
        yield op.operands[2], Demand(low=0, total=_size(_shape(op.operands[0]), ragged[0]))


def _set_dimension_size(op: Op) -> Iterator[tuple[Value, Demand]]:
    # Nothing is said of the elements behind the size.
    size = _size(_shape(op.operands[0]), int(op.attributes.get("dimension") or 0))
    yield op.operands[1], Demand(low=size, high=size)


def _polygamma(op: Op) -> Iterator[tuple[Value, Demand]]:
    yield op.operands[0], Demand(low=1, whole=True)
    yield op.operands[1], POSITIVE


def _batch_norm_inference(op: Op) -> Iterator[tuple[Value, Demand]]:
    yield op.operands[4], POSITIVE


def _batch_norm_grad(op: Op) -> Iterator[tuple[Value, Demand]]:
    yield op.operands[3], POSITIVE


def _zeta(op: Op) -> Iterator[tuple[Value, Demand]]:
    yield op.operands[0], ABOVE_ONE
    yield op.operands[1], POSITIVE


def _acosh(op: Op) -> Iterator[tuple[Value, Demand]]:
    yield op.operands[0], ABOVE_ONE


def _custom_call(op: Op) -> Iterator[tuple[Value, Demand]]:
    target = str(op.attributes.get("call_target_name") or "")
    if op.operands and (target in _DEFINITE_CALLS or _DEFINITE_TARGETS.match(target)):
        yield op.operands[0], DEFINITE


_SOURCES: dict[str, Callable[[Op], Demands]] = {
    "gather": _gather,
    "scatter": _scatter,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "compare": _compare,
    "case": _case,
    "divide": _divide,
    "remainder": _divide,
    "power": _power,
    "shift_left": _shift,
    "shift_right_logical": _shift,
    "shift_right_arithmetic": _shift,
    "ragged_dot": _ragged_dot,
    "set_dimension_size": _set_dimension_size,
    "polygamma": _polygamma,
    "batch_norm_inference": _batch_norm_inference,
    "batch_norm_grad": _batch_norm_grad,
    "zeta": _zeta,
    "acosh": _acosh,
    "custom_call": _custom_call,
}


def _dimension_numbers(op: Op, name: str) -> tuple[dict[str, tuple[int, ...]], int]:
    """Return the lists of a dimension-numbers attribute by name, and its ``index_vector_dim``."""
    text = str(op.attributes.get(name) or "")
    lists = {key: tuple(int(item) for item in body.split(",") if item.strip()) for key, body in _LIST.findall(text)}
    return lists, int(dict(_NUMBER.findall(text)).get("index_vector_dim", 0))


def _shape(value: Value) -> tuple[int, ...]:
    """Return the sizes, 1 for one that is not known; () for a value that is not a tensor."""
    type_ = value.type
    return tuple(1 if size is None else size for size in type_.shape) if isinstance(type_, TensorType) else ()


def _size(sizes: Sequence[int], dim: int) -> int:
    return sizes[dim] if 0 <= dim < len(sizes) else 1
