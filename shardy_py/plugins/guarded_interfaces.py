"""Guarded functions and objects of plugins: each answer has the promised type, or is an error."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

from shardy_py.errors import PluginError, RuleError
from shardy_py.guards.error_texts import shown
from shardy_py.guards.guard import Check, Guard, InvalidAnswer, as_boolean, bounded_list
from shardy_py.ir.graph.attributes import shared_key
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import are_same_tensors, static_shape
from shardy_py.ir.interfaces.ops import (
    MeshReferenceOpInterface,
    OpOperand,
    ShardableDataFlowOpInterface,
    Trait,
)
from shardy_py.plugins.argument_checks import is_written
from shardy_py.plugins.definition_checks import as_traits, check_cost, makes_cost
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding

if TYPE_CHECKING:
    from shardy_py.indexing import OpIndexing
    from shardy_py.ir.interfaces.costs import CostOpInterface, OpWork, OwnCollective, Part, Window
    from shardy_py.ir.interfaces.emission import ElementBuilder, Emission, Scalar
    from shardy_py.ir.interfaces.local import Localize, Shard

_Side = tuple[str, Sequence[int] | None]
"""The name of a tensor, and its shape where it is known."""


def guard_traits_of(
    function: Callable[[Op], Any] | None, *, owner: str, place: str = ""
) -> Callable[[Op], frozenset[Trait]]:
    """Return a predicate behind the guard; its answers are sets of traits."""
    return Guard(function, "traits_of", owner, place=place).wrap(_traits)


def guard_context(given: Any, *, owner: str, place: str = "") -> Callable[[Op], Hashable] | None:
    """Return the function of what a rule reads around its op, behind the guard, or None where there is none."""
    if isinstance(given, bool):
        return None
    return Guard(given, "contextual", owner, RuleError, "rule-failed", place).wrap(_hashable)


def guard_data_flow(flow: Any, *, owner: str, place: str = "") -> ShardableDataFlowOpInterface:
    """Return a data flow behind the guard; methods that it does not have get their defaults."""
    return _guarded(
        flow, ShardableDataFlowOpInterface, _DATA_FLOW, Guard(flow, "", owner, code="data-flow", place=place)
    )


def guard_cost(cost: Any, *, owner: str, place: str = "") -> Callable[[Op], CostOpInterface]:
    """Return a function that returns the cost behind the guard; the cost is made when the first op asks for it."""
    made: list[CostOpInterface] = []

    def cost_of(op: Op) -> CostOpInterface:
        if not made:
            from shardy_py.ir.interfaces.costs import CostOpInterface

            known = _make_cost(cost, op, Guard(cost, "cost", owner, code="invalid-cost", place=place))
            made.append(_guarded(known, CostOpInterface, _COST, Guard(known, "", owner, code="cost", place=place)))
        return made[0]

    return cost_of


def _make_cost(cost: Any, op: Op, guard: Guard) -> Any:
    """Return a cost, where it is given by a function the one that this makes."""
    if not makes_cost(cost):
        return cost
    made = guard.call(op=op)
    if made is None:
        raise guard.refusal("returned None, not a cost", op, hint="is a return missing?")
    check_cost(made, op=op.name)
    return made


def guard_indexing(function: Callable[[Op], Any], *, owner: str, place: str = "") -> Callable[[Op], OpIndexing | None]:
    """Return a function for indexing maps behind the guard; its answers fit the op."""
    return Guard(function, "indexing", owner, code="indexing-failed", place=place).wrap(_indexing)


def guard_emission(
    function: Emission, *, owner: str, place: str = ""
) -> Callable[[ElementBuilder, Op], tuple[Scalar, ...]]:
    """Return a scalar body behind the guard; it gives one value per result."""
    guard = Guard(function, "emission", owner, code="emission-failed", place=place)

    def emit(builder: ElementBuilder, op: Op) -> tuple[Scalar, ...]:
        elements: tuple[Scalar, ...] = guard.call(builder, op, check=_elements, op=op)
        return elements

    return emit


def guard_local(local: Any, *, owner: str, place: str = "") -> Localize:
    """Return a local form behind the guard; it gives one value per result, each of the type of its shard."""
    guard = Guard(getattr(local, "localize", local), "local", owner, code="local-failed", place=place)
    wrapped = guard.wrap(_local_results)

    def localize(op: Op, shard: Shard) -> Sequence[Value]:
        results: Sequence[Value] = wrapped(op, shard)
        for number, value in enumerate(results):
            wanted = shard.result_type(number)
            if not are_same_tensors(value.type, wanted):
                message = f"returned {value.type} for result {number}, which is {wanted} on each device"
                raise guard.refusal(message, op, hint="shard.result_type(number) is the type of a result on a device")
        return results

    return localize


def guard_applies(local: Any, *, owner: str, place: str = "") -> Callable[[Op], bool] | None:
    """Return what says which ops a local form is for, behind the guard, or None where it is for all."""
    applies = getattr(local, "applies", None)
    if applies is None:
        return None
    return Guard(applies, "applies", owner, code="local-failed", place=place).wrap(_condition)


def guard_mesh_reference(reference: Any, *, owner: str, place: str = "") -> MeshReferenceOpInterface:
    """Return a mesh reference behind the guard."""
    guard = Guard(reference, "", owner, code="mesh-reference", place=place)
    return _guarded(reference, MeshReferenceOpInterface, _MESH_REFERENCE, guard)


def _guarded(thing: Any, protocol: type, checks: Mapping[str, Check | None], guard: Guard) -> Any:
    """Return an object with guarded methods in the place of those that are written, and the defaults of the protocol.

    Its class is one of its own, named as that of the object: who asks a class what it overrides gets the same answer.
    """
    methods: dict[str, Any] = {}
    for name, check in checks.items():
        if not is_written(thing, name, protocol):
            continue
        named = Guard(getattr(thing, name), name, guard.owner, guard.error, guard.code, guard.place)
        wrapped = named.wrap(check)
        methods[name] = staticmethod(
            _same_rank_and_mesh(wrapped, named) if name == "transform_target_sharding" else wrapped
        )
    class_ = type(thing)
    return type(class_.__name__, (protocol,), {**methods, "__module__": class_.__module__, "guard": guard})()


def _same_rank_and_mesh(transform: Callable[..., Any], guard: Guard) -> Callable[..., TensorSharding]:
    """Return the transform of a sharding with a check of its answers: rank and mesh stay the same."""

    def checked(op: Op, target: Value, sharding: TensorSharding, kind: Any) -> TensorSharding:
        answer: TensorSharding = transform(op, target, sharding, kind)
        if answer.rank != sharding.rank or answer.mesh != sharding.mesh:
            message = f"returned {answer} for {sharding}, which has other dimensions or another mesh"
            raise guard.refusal(message, op, hint="return a sharding of the same value")
        return answer

    return checked


def op_fingerprint(op: Op) -> tuple[Any, ...]:
    """Return the parts of an op that a rule function must not change."""
    return op.name, op.operands, op.results, op.regions, op.parent, shared_key(op.attributes)


def _traits(answer: Any, op: Op) -> frozenset[Trait]:
    # Most answers are such sets, made once.
    if answer.__class__ is frozenset and (not answer or all(trait.__class__ is Trait for trait in answer)):
        return answer
    if answer is None:
        raise InvalidAnswer("returned None, not a list of traits", "return [] for none; is a return missing?")
    try:
        return as_traits(answer, argument="the answer")
    except PluginError as error:
        (item,) = error.diagnostics
        raise InvalidAnswer(f"returned {shown(answer)}: {item.message}", item.hint) from None


def _hashable(answer: Any, op: Op) -> Hashable:
    try:
        hash(answer)
    except TypeError:
        raise InvalidAnswer(
            f"returned {shown(answer)}, which cannot be hashed", "return a tuple, a text or a number"
        ) from None
    return answer


def _condition(answer: Any, op: Op) -> bool:
    if answer.__class__ is not bool:
        raise InvalidAnswer(f"returned {shown(answer)}, not a bool", "return True or False; is a return missing?")
    return bool(answer)


def _local_results(answer: Any, op: Op) -> tuple[Value, ...]:
    results: tuple[Value, ...] = _items(answer, Value, "value")
    if len(results) != len(op.results):
        raise InvalidAnswer(
            f"returned {len(results)} values for {len(op.results)} results", "return one value per result"
        )
    from shardy_py.ir.interfaces.local import Combined

    return Combined(results) if isinstance(answer, Combined) else results


def _items(answer: Any, class_: type, wanted: str) -> tuple[Any, ...]:
    # Most answers are such; the question about protocols takes longer than all others.
    is_list = answer.__class__ is tuple or answer.__class__ is list
    items = tuple(answer) if is_list else _iterated(answer, wanted)
    for item in items:
        if not isinstance(item, class_):
            article = "an" if wanted[0] in "AIO" else "a"
            raise InvalidAnswer(f"gives {shown(item)}, not {article} {wanted}")
    return items


def _iterated(answer: Any, wanted: str) -> tuple[Any, ...]:
    if answer is None or isinstance(answer, (str, bytes)) or not isinstance(answer, Iterable):
        hint = "return () for none; is a return missing?" if answer is None else "return a list"
        raise InvalidAnswer(f"returned {shown(answer)}, not a list of {wanted}s", hint)
    if isinstance(answer, OpOperand):
        raise InvalidAnswer("returned an OpOperand, not a list of OpOperands", "return [OpOperand(op, number)]")
    return tuple(bounded_list(answer))


def _values(answer: Any, op: Op) -> tuple[Value, ...]:
    return _items(answer, Value, "Value")


def _sources(answer: Any, op: Op) -> tuple[OpOperand, ...]:
    return _items(answer, OpOperand, "OpOperand")


def _shardings(answer: Any, op: Op) -> tuple[TensorSharding, ...]:
    return _items(answer, TensorSharding, "TensorSharding")


def _value(answer: Any, op: Op) -> Value | None:
    if answer is not None and not isinstance(answer, Value):
        raise InvalidAnswer(f"returned {shown(answer)}, not a Value or None")
    return answer


def _sharding(answer: Any, op: Op) -> TensorSharding:
    if not isinstance(answer, TensorSharding):
        raise InvalidAnswer(
            f"returned {shown(answer)}, not a TensorSharding", "return the sharding that it got, or another"
        )
    return answer


def _flops(answer: Any, op: Op) -> float | None:
    if answer is None:
        return None
    if not _is_amount(answer):
        hint = "return a number of operations, or None to derive it from the rule"
        raise InvalidAnswer(f"returned {shown(answer)}, not a number that is finite and at least 0", hint)
    return answer


def _runs(answer: Any, op: Op) -> tuple[float | None, ...]:
    hint = "return one number for each region, None where it is not known"
    if isinstance(answer, (str, bytes)) or not isinstance(answer, Iterable):
        raise InvalidAnswer(f"returned {shown(answer)}, not a list of numbers", hint)
    runs = tuple(bounded_list(answer))
    if len(runs) != len(op.regions):
        raise InvalidAnswer(f"returned {len(runs)} numbers for {len(op.regions)} regions", hint)
    for number in runs:
        if number is not None and not _is_amount(number):
            raise InvalidAnswer(f"gives {shown(number)}, not a number that is finite and at least 0", hint)
    return runs


def _work(answer: Any, op: Op) -> OpWork | None:
    if answer is None:
        return None
    from shardy_py.ir.interfaces.costs import OpWork

    if not isinstance(answer, OpWork):
        raise InvalidAnswer(f"returned {shown(answer)}, not an OpWork or None")
    read, written = answer.reads.values(), answer.writes.values()
    amounts = (answer.flops, answer.transcendentals, answer.temporary_bytes, *read, *written)
    wrong = next((number for number in amounts if not _is_amount(number)), None)
    if wrong is not None:
        raise InvalidAnswer(f"gives {shown(wrong)}, not a number that is finite and at least 0")
    return answer


def _windows(answer: Any, op: Op) -> tuple[Window, ...]:
    from shardy_py.ir.interfaces.costs import Window

    return tuple(_items(answer, Window, "Window"))


def _dims(answer: Any, op: Op) -> tuple[int, ...]:
    found = tuple(answer) if isinstance(answer, Iterable) else (answer,)
    rank = len((static_shape(op.results[0].type) or ()) if op.results else ())
    if not all(isinstance(dim, int) and not isinstance(dim, bool) and 0 <= dim < rank for dim in found):
        raise InvalidAnswer(f"returned {shown(answer)}, not dimensions of the result, which has {rank}")
    return found


def _equal_operand(answer: Any, op: Op) -> int | None:
    if answer is None:
        return None
    if not isinstance(answer, int) or isinstance(answer, bool) or not 0 <= answer < len(op.operands):
        raise InvalidAnswer(f"returned {shown(answer)}, not the number of an operand or None")
    return answer


def _library_operands(answer: Any, op: Op) -> tuple[int, ...] | None:
    if answer is None:
        return None
    found = tuple(answer)
    if not all(isinstance(number, int) and 0 <= number < len(op.operands) for number in found):
        raise InvalidAnswer(f"returned {shown(answer)}, not numbers of operands or None")
    return found


def _parts(answer: Any, op: Op) -> tuple[Part | None, ...]:
    hint = "return a name and the numbers of operands for each result, or None for it"
    if isinstance(answer, (str, bytes)) or not isinstance(answer, Iterable):
        raise InvalidAnswer(f"returned {shown(answer)}, not a list of computations", hint)
    parts = tuple(bounded_list(answer))
    if parts and len(parts) != len(op.results):
        raise InvalidAnswer(f"returned {len(parts)} computations for {len(op.results)} results", hint)
    for part in parts:
        if part is not None and not _is_part(part, op):
            raise InvalidAnswer(f"gives {shown(part)}, not a name and the numbers of operands", hint)
    return parts


def _is_part(part: Any, op: Op) -> bool:
    if not isinstance(part, tuple) or len(part) != 2 or not isinstance(part[1], tuple):
        return False
    name, numbers = part
    return isinstance(name, str) and all(isinstance(item, int) and 0 <= item < len(op.operands) for item in numbers)


def _is_amount(number: Any) -> bool:
    from numbers import Real

    if not isinstance(number, Real) or isinstance(number, bool):
        return False
    try:
        return isfinite(number) and float(number) >= 0
    except OverflowError:
        return False


def _collective(answer: Any, op: Op) -> OwnCollective | None:
    if answer is None:
        return None
    from shardy_py.ir.interfaces.costs import COLLECTIVES, OwnCollective

    if not isinstance(answer, OwnCollective):
        raise InvalidAnswer(f"returned {shown(answer)}, not an OwnCollective or None")
    if answer.kind not in COLLECTIVES:
        raise InvalidAnswer(f"gives the collective {shown(answer.kind)}", f"the kinds are {', '.join(COLLECTIVES)}")
    group = answer.group
    if not isinstance(group, (list, tuple)) or not all(isinstance(item, int) and item >= 0 for item in group):
        raise InvalidAnswer(f"gives the group {shown(group)}, not numbers of devices")
    return answer


def _indexing(answer: Any, op: Op) -> OpIndexing | None:
    if answer is None:
        return None
    from shardy_py.indexing import IndexingMap, OpIndexing

    indexing = answer if isinstance(answer, OpIndexing) else OpIndexing(_items(answer, IndexingMap, "IndexingMap"))
    for maps in (indexing.output_to_input, indexing.input_to_output):
        if len(maps) != len(op.operands):
            message = f"returned {len(maps)} indexing maps for {len(op.operands)} operands"
            raise InvalidAnswer(message, "return one per operand")
    output = static_shape(op.results[0].type) if op.results else ()
    for number, operand in enumerate(op.operands):
        place, shape = f"operand {number}", static_shape(operand.type)
        _fits(indexing.output_to_input[number], number, ("the first result", output), (place, shape))
        back = indexing.input_to_output[number]
        if back is not None:
            _fits(back, number, (place, shape), ("the first result", output))
    return indexing


def _fits(map_: Any, number: int, source: _Side, target: _Side) -> None:
    """Check that a map goes from the index of one tensor to that of another; unknown shapes fit."""
    from shardy_py.indexing import IndexingMap

    if not isinstance(map_, IndexingMap):
        raise InvalidAnswer(f"gives {shown(map_)}, not an IndexingMap")
    if map_.is_undefined or map_.is_known_empty:
        return
    (from_place, from_shape), (to_place, to_shape) = source, target
    if from_shape is not None and len(map_.dims) != len(from_shape):
        raise InvalidAnswer(
            f"gives map {number} over {len(map_.dims)} dimensions, {from_place} has {len(from_shape)}",
            f"this map goes from the index of {from_place} to that of {to_place}",
        )
    if to_shape is not None and len(map_.results) != len(to_shape):
        raise InvalidAnswer(
            f"gives map {number} with {len(map_.results)} results, {to_place} has shape {list(to_shape)}"
        )


def _elements(answer: Any, op: Op) -> tuple[Scalar, ...]:
    elements = (answer,) if hasattr(answer, "dtype") else answer
    if elements is None or isinstance(elements, (str, bytes)) or not isinstance(elements, Iterable):
        hint = "is a return missing?" if answer is None else "return what the builder gave"
        raise InvalidAnswer(f"returned {shown(answer)}, not a value of the builder", hint)
    found = tuple(elements)
    if len(found) != len(op.results) or not all(hasattr(item, "dtype") for item in found):
        raise InvalidAnswer(
            f"returned {len(found)} values for {len(op.results)} results", "return one value per result"
        )
    return found


def _mesh(answer: Any, op: Op) -> str | Mesh | None:
    if answer is not None and not isinstance(answer, (str, Mesh)):
        raise InvalidAnswer(f"returned {shown(answer)}, not the name of a mesh, a Mesh or None")
    return answer


_DATA_FLOW: dict[str, Check | None] = {
    "get_block_argument_edge_owners": _values,
    "get_op_result_edge_owners": _values,
    "get_edge_sources": _sources,
    "get_edge_owner_from_target": _value,
    "get_edge_owner_from_source": _value,
    "get_non_edge_owner_targets": _values,
    "get_block_argument_edge_owner_shardings": _shardings,
    "set_block_argument_edge_owner_shardings": None,
    "get_op_result_edge_owner_shardings": _shardings,
    "set_op_result_edge_owner_shardings": None,
    "transform_target_sharding": _sharding,
    "should_keep_edge_owner_shardings_divisible": as_boolean,
}
_COST: dict[str, Check | None] = {
    "get_flops": _flops,
    "get_work": _work,
    "get_equal_operand": _equal_operand,
    "get_updated_operand": _equal_operand,
    "get_choices": _library_operands,
    "get_library_operands": _library_operands,
    "get_parts": _parts,
    "get_windows": _windows,
    "get_mirrored_dims": _dims,
    "is_fusible": as_boolean,
    "is_expensive": as_boolean,
    "is_branching": as_boolean,
    "is_repeated": as_boolean,
    "get_region_runs": _runs,
    "get_collective": _collective,
}
_MESH_REFERENCE: dict[str, Check | None] = {"get_mesh": _mesh, "set_mesh": None}
