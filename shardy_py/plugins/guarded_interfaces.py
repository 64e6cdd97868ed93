"""Guarded functions and objects of plugins: each answer has the promised type, or is an error."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shardy_py.errors import PluginError, RuleError, with_article
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
from shardy_py.ir.interfaces.result_sizes import ResultSizes
from shardy_py.plugins.argument_checks import is_written
from shardy_py.plugins.definition_checks import as_traits
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding

if TYPE_CHECKING:
    from shardy_py.indexing import OpIndexing
    from shardy_py.ir.interfaces.emission import ElementBuilder, Emission, Scalar
    from shardy_py.ir.interfaces.local import Localize, Shard
    from shardy_py.ir.interfaces.result_sizes import SizesOf

_Side = tuple[str, Sequence[int] | None]
"""The name of a tensor, and its shape where it is known."""


def guard_traits_of(
    function: Callable[[Op], Any] | None, *, owner: str, location: str = ""
) -> Callable[[Op], frozenset[Trait]]:
    """Return a predicate behind the guard; its answers are sets of traits."""
    return Guard(function, "traits_of", owner, location=location).wrap(_traits)


def guard_context(context: Any, *, owner: str, location: str = "") -> Callable[[Op], Hashable] | None:
    """Guard the function that returns the context of a rule; None where there is no function."""
    if isinstance(context, bool):
        return None
    return Guard(context, "contextual", owner, RuleError, "rule-failed", location).wrap(_hashable)


def guard_data_flow(flow: Any, *, owner: str, location: str = "") -> ShardableDataFlowOpInterface:
    """Return a data flow behind the guard; methods that it does not have get their defaults."""
    return guard_object(
        flow, ShardableDataFlowOpInterface, _DATA_FLOW, Guard(flow, "", owner, code="data-flow", location=location)
    )


def guard_indexing(
    function: Callable[[Op], Any], *, owner: str, location: str = ""
) -> Callable[[Op], OpIndexing | None]:
    """Return a function for indexing maps behind the guard; its answers fit the op."""
    return Guard(function, "indexing", owner, code="indexing-failed", location=location).wrap(_indexing)


def guard_emission(
    function: Emission, *, owner: str, location: str = ""
) -> Callable[[ElementBuilder, Op], tuple[Scalar, ...]]:
    """Return a scalar body behind the guard; it gives one value per result."""
    guard = Guard(function, "emission", owner, code="emission-failed", location=location)

    def emit(builder: ElementBuilder, op: Op) -> tuple[Scalar, ...]:
        elements: tuple[Scalar, ...] = guard.call(builder, op, check=_elements, op=op)
        return elements

    return emit


def guard_local(local: Any, *, owner: str, location: str = "") -> Localize:
    """Return a local form behind the guard; it gives one value per result, each of the type of its shard."""
    guard = Guard(getattr(local, "localize", local), "local", owner, code="local-failed", location=location)
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


def guard_sizes(function: SizesOf, *, owner: str, location: str = "") -> SizesOf:
    """Return a function of the sizes of results behind the guard."""
    return Guard(function, "sizes", owner, code="sizes-failed", location=location).wrap(_result_sizes)


def guard_applies(local: Any, *, owner: str, location: str = "") -> Callable[[Op], bool] | None:
    """Guard the predicate for the ops of a local form; None where the form is for all ops."""
    applies = getattr(local, "applies", None)
    if applies is None:
        return None
    return Guard(applies, "applies", owner, code="local-failed", location=location).wrap(_condition)


def guard_mesh_reference(reference: Any, *, owner: str, location: str = "") -> MeshReferenceOpInterface:
    """Return a mesh reference behind the guard."""
    guard = Guard(reference, "", owner, code="mesh-reference", location=location)
    return guard_object(reference, MeshReferenceOpInterface, _MESH_REFERENCE, guard)


def guard_object(thing: Any, protocol: type, checks: Mapping[str, Check | None], guard: Guard) -> Any:
    """Return an object with guarded methods for those that are written, and the defaults of the protocol.

    Its class is one of its own, named as that of the object: who asks a class what it overrides gets the same answer.
    """
    methods: dict[str, Any] = {}
    for name, check in checks.items():
        if not is_written(thing, name, protocol):
            continue
        named = Guard(getattr(thing, name), name, guard.owner, guard.error, guard.code, guard.location)
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


def _result_sizes(answer: Any, op: Op) -> ResultSizes | None:
    if answer is None or isinstance(answer, ResultSizes):
        return answer
    raise InvalidAnswer(f"returned {shown(answer)}", "return ResultSizes(...), or None where nothing is known")


def _local_results(answer: Any, op: Op) -> tuple[Value, ...]:
    results: tuple[Value, ...] = checked_items(answer, Value, "value")
    if len(results) != len(op.results):
        raise InvalidAnswer(
            f"returned {len(results)} values for {len(op.results)} results", "return one value per result"
        )
    from shardy_py.ir.interfaces.local import Combined

    return Combined(results) if isinstance(answer, Combined) else results


def checked_items(answer: Any, class_: type, wanted: str) -> tuple[Any, ...]:
    """Return an answer as a tuple of values of a class; `wanted` names them in the error."""
    # Most answers are such; the question about protocols takes longer than all others.
    is_list = answer.__class__ is tuple or answer.__class__ is list
    items = tuple(answer) if is_list else _iterated(answer, wanted)
    for item in items:
        if not isinstance(item, class_):
            raise InvalidAnswer(f"gives {shown(item)}, not {with_article(wanted)}")
    return items


def _iterated(answer: Any, wanted: str) -> tuple[Any, ...]:
    if answer is None or isinstance(answer, (str, bytes)) or not isinstance(answer, Iterable):
        hint = "return () for none; is a return missing?" if answer is None else "return a list"
        raise InvalidAnswer(f"returned {shown(answer)}, not a list of {wanted}s", hint)
    if isinstance(answer, OpOperand):
        raise InvalidAnswer("returned an OpOperand, not a list of OpOperands", "return [OpOperand(op, number)]")
    return tuple(bounded_list(answer))


def _values(answer: Any, op: Op) -> tuple[Value, ...]:
    return checked_items(answer, Value, "Value")


def _sources(answer: Any, op: Op) -> tuple[OpOperand, ...]:
    return checked_items(answer, OpOperand, "OpOperand")


def _shardings(answer: Any, op: Op) -> tuple[TensorSharding, ...]:
    return checked_items(answer, TensorSharding, "TensorSharding")


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


def _indexing(answer: Any, op: Op) -> OpIndexing | None:
    if answer is None:
        return None
    from shardy_py.indexing import IndexingMap, OpIndexing

    indexing = (
        answer if isinstance(answer, OpIndexing) else OpIndexing(checked_items(answer, IndexingMap, "IndexingMap"))
    )
    for maps in (indexing.output_to_input, indexing.input_to_output):
        if len(maps) != len(op.operands):
            message = f"returned {len(maps)} indexing maps for {len(op.operands)} operands"
            raise InvalidAnswer(message, "return one per operand")
    output = static_shape(op.results[0].type) if op.results else ()
    for number, operand in enumerate(op.operands):
        role, shape = f"operand {number}", static_shape(operand.type)
        _fits(indexing.output_to_input[number], number, ("the first result", output), (role, shape))
        back = indexing.input_to_output[number]
        if back is not None:
            _fits(back, number, (role, shape), ("the first result", output))
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
    values = tuple(elements)
    if len(values) != len(op.results) or not all(hasattr(item, "dtype") for item in values):
        raise InvalidAnswer(
            f"returned {len(values)} values for {len(op.results)} results", "return one value per result"
        )
    return values


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
_MESH_REFERENCE: dict[str, Check | None] = {"get_mesh": _mesh, "set_mesh": None}
