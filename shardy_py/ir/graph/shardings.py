"""Loading of shardings from attributes into the table of a program, and storing of them.

Mirrors utils.cc::setShardings and utils.cc::getOpenShardingsWithShardingAtIndex.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from operator import is_
from typing import Any

from shardy_py.errors import Diagnostic, PluginError, VerificationError
from shardy_py.ir.graph.attributes import Attribute, set_in_each, shared_key
from shardy_py.ir.graph.foreign_types import rename_to_foreign, rename_to_shardy
from shardy_py.ir.graph.op_names import FUNCTION
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.rule_attributes import store_rules
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.graph.walk import all_ops, entry_arguments, ops_among
from shardy_py.ir.interfaces.ops import OpSemantics, ShardableDataFlowOpInterface
from shardy_py.sharding.manual_axes import resolve_mesh
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding, TensorShardingPerValue, symbol
from shardy_py.support.identity import identity

SHARDING = "sdy.sharding"


def load_shardings(program: Program, semantics: OpSemantics, *, attribute_names: Collection[str] | None = None) -> None:
    """Fill the table of a program from its attributes; entries of before are dropped.

    Args:
        program: The program.
        semantics: Answers questions about ops.
        attribute_names: The names of all attributes of the ops, where these are known.
    """
    table = program.shardings
    table.clear()
    if program.has_foreign_types:
        rename_to_shardy(program)
    holders = _Holders(semantics)
    known: dict[tuple[int, str], tuple[object, Any]] = {}
    ops = all_ops(program)
    if attribute_names is not None and not program.has_foreign_types:
        names = program.op_names
        some = semantics.names_with_sharding_attribute(names, attribute_names) | semantics.names_with_data_flow(names)
        ops = ops_among(program, (FUNCTION, *some))
    for op in ops:
        try:
            holder = holders[op.name]
        except KeyError:
            holder = holders.add(op)
        if holder is None:
            _load_others(table, op, semantics)
        elif op.results:
            # Ops share their attributes, and few hold a sharding; the set is kept so that its id stays its own.
            shared = shared_key(op.attributes)
            entry = known.get((identity(shared), holder))
            if entry is None or shared is None:
                entry = known[identity(shared), holder] = shared, op.attributes.get(holder)
            if entry[1] is not None:
                _load(table, op.results, _as_sequence(entry[1]))


def store_shardings(program: Program, semantics: OpSemantics) -> None:
    """Write the table of a program to its attributes, where they differ, and the rules that were left on its ops.

    Where an op has several values and only some have a sharding, the others get a fully open one on the same mesh, as
    the attribute has no other way to say so.
    """
    if program.has_foreign_types:
        rename_to_shardy(program)
    set_in_each(SHARDING, _store_others_and_yield(program, semantics))
    if program.has_foreign_types:
        rename_to_foreign(program)
    store_rules(program)


def _store_others_and_yield(
    program: Program, semantics: OpSemantics
) -> Iterator[tuple[MutableMapping[str, Attribute], TensorShardingPerValue]]:
    """Yield the attributes of each op with one result, with the sharding to store there; store all others."""
    table = program.shardings
    holders = _Holders(semantics)
    alone: dict[int, TensorShardingPerValue] = {}
    for op in all_ops(program):
        try:
            holder = holders[op.name]
        except KeyError:
            holder = holders.add(op)
        results = op.results
        if holder is None:
            _store_others(table, op, semantics)
        elif len(results) == 1 and holder == SHARDING:
            # This is nearly every op; those with the same sharding share one attribute.
            sharding = table.get(results[0].id)
            if sharding is not None:
                attribute = alone.get(identity(sharding))
                if attribute is None:
                    attribute = alone[identity(sharding)] = TensorShardingPerValue((sharding,))
                yield op.attributes, attribute
            elif SHARDING in op.attributes:
                del op.attributes[SHARDING]
        elif results:
            _store_results(table, op, holder)


class _Holders(dict[str, str | None]):
    """Name of an op to the attribute that holds the shardings of its results, None where it is not that simple."""

    __slots__ = ("_semantics",)

    def __init__(self, semantics: OpSemantics) -> None:
        self._semantics = semantics

    def add(self, op: Op) -> str | None:
        """Add the entry for the name of an op."""
        simple = op.name != FUNCTION and self._semantics.get_data_flow(op) is None
        holder = self[op.name] = self._semantics.get_sharding_attribute(op) if simple else None
        return holder


def _load_others(table: dict[int, TensorSharding], op: Op, semantics: OpSemantics) -> None:
    """Load the shardings that a function or a data-flow op holds."""
    if op.name == FUNCTION:
        _load(table, entry_arguments(op), _from_dictionaries(op.attributes.get("arg_attrs")))
        _load(table, op.function_results, _from_dictionaries(op.attributes.get("res_attrs")))
        return
    data_flow = semantics.get_data_flow(op)
    if data_flow is not None:
        load_data_flow(table, op, data_flow)


def _store_others(table: dict[int, TensorSharding], op: Op, semantics: OpSemantics) -> None:
    """Store the shardings that a function or a data-flow op holds."""
    if op.name == FUNCTION:
        _store_dictionaries(table, op, "arg_attrs", entry_arguments(op))
        _store_dictionaries(table, op, "res_attrs", op.function_results)
        return
    data_flow = semantics.get_data_flow(op)
    if data_flow is not None:
        store_data_flow(table, op, data_flow)


def complete(table: dict[int, TensorSharding], values: Sequence[Value]) -> tuple[TensorSharding, ...]:
    """Return the shardings of several values, fully open ones for those that have none; () if none has any."""
    shardings = [table.get(value.id) for value in values]
    for sharding in shardings:
        if sharding is not None:
            return _fill_up(shardings, values, sharding.mesh)
    return ()


def complete_unless_maximal(
    table: Mapping[int, TensorSharding], values: Sequence[Value], meshes: Mapping[str, Mesh]
) -> tuple[TensorSharding, ...]:
    """Return the shardings of the arguments or results of a function, fully open ones for those that have none.

    The fully open ones are over the first mesh of several devices.

    Args:
        table: The shardings of the program.
        values: The arguments or results.
        meshes: The meshes of the program.

    Returns:
        One sharding per value; () if none is over a mesh of several devices.
    """
    shardings = [table.get(value.id) for value in values]
    for sharding in shardings:
        if sharding is not None and not _is_maximal(sharding, meshes):
            return _fill_up(shardings, values, sharding.mesh)
    return ()


def _fill_up(
    shardings: Sequence[TensorSharding | None], values: Sequence[Value], mesh: str | Mesh
) -> tuple[TensorSharding, ...]:
    """Return the shardings of some values, fully open ones over a mesh for those that have none."""
    pairs = zip(shardings, values, strict=True)
    return tuple([TensorSharding.fully_open(mesh, _rank(value)) if item is None else item for item, value in pairs])


def mesh_of(sharding: TensorSharding, meshes: Mapping[str, Mesh]) -> Mesh:
    """Return the mesh of a sharding.

    Raises:
        VerificationError: there is no mesh of its name.
    """
    mesh = resolve_mesh(sharding.mesh, meshes)
    if mesh is None:
        known = ", ".join(map(symbol, meshes)) or "none"
        message = f"there is no mesh {symbol(str(sharding.mesh))}, the mesh of the sharding {sharding}"
        raise VerificationError(Diagnostic("unknown-mesh", message, hint=f"the module's meshes are {known}"))
    return mesh


def distinct(shardings: Iterable[TensorSharding]) -> Iterable[TensorSharding]:
    """Return shardings with each object once; equal ones are mostly the same object, and this is much faster."""
    return {identity(sharding): sharding for sharding in shardings}.values()


def set_sharding(program: Program, value: Value, sharding: TensorSharding) -> None:
    """Set the sharding of one value.

    An op holds the shardings of all its results in one attribute, so the others get fully open ones if they have none.
    """
    table = program.shardings
    table[value.id] = sharding
    op = value.defining_op
    # The results of a function belong to its op, too, but each holds its own sharding.
    if op is None or len(op.results) < 2:
        return
    for other in op.results:
        if other.id not in table:
            table[other.id] = TensorSharding.fully_open(sharding.mesh, _rank(other))


def set_shardings(program: Program, values: Sequence[Value], shardings: Sequence[TensorSharding]) -> None:
    """Set the shardings of several values; () for none at all."""
    table = program.shardings
    if not shardings:
        for value in values:
            table.pop(value.id, None)
        return
    for value, sharding in zip(values, shardings, strict=True):
        table[value.id] = sharding


def _is_maximal(sharding: TensorSharding, meshes: Mapping[str, Mesh]) -> bool:
    mesh = sharding.mesh if isinstance(sharding.mesh, Mesh) else meshes.get(sharding.mesh)
    return mesh is not None and mesh.is_maximal


def _rank(value: Value) -> int:
    return value.type.rank if isinstance(value.type, TensorType) else 0


def _as_sequence(attribute: Any) -> Sequence[TensorSharding]:
    if isinstance(attribute, TensorShardingPerValue):
        return attribute.shardings
    return (attribute,) if isinstance(attribute, TensorSharding) else ()


def _from_dictionaries(attribute: Any) -> Sequence[TensorSharding | None]:
    return [item.get(SHARDING) for item in attribute] if attribute else ()


def _load(
    table: dict[int, TensorSharding], values: Sequence[Value], shardings: Sequence[TensorSharding | None]
) -> None:
    for value, sharding in zip(values, shardings, strict=False):
        if sharding is not None:
            table[value.id] = sharding


def _store_results(table: dict[int, TensorSharding], op: Op, name: str) -> None:
    current = op.attributes.get(name)
    wanted = complete(table, op.results)
    if not wanted:
        if current is not None:
            del op.attributes[name]
        return
    if current is not None and tuple(_as_sequence(current)) == wanted:
        return
    op.attributes[name] = TensorShardingPerValue(wanted) if name == SHARDING or len(wanted) > 1 else wanted[0]


def load_data_flow(table: dict[int, TensorSharding], op: Op, data_flow: ShardableDataFlowOpInterface) -> None:
    """Load the shardings that a data-flow op holds into the table."""
    _load(table, data_flow.get_block_argument_edge_owners(op), data_flow.get_block_argument_edge_owner_shardings(op))
    _load(table, data_flow.get_op_result_edge_owners(op), data_flow.get_op_result_edge_owner_shardings(op))


def store_data_flow(table: dict[int, TensorSharding], op: Op, data_flow: ShardableDataFlowOpInterface) -> None:
    """Write the table to the attributes of a data-flow op.

    Raises:
        PluginError: the op does not give the shardings back that it was given.
    """
    _store_owners(
        op,
        "block_argument_edge_owner_shardings",
        complete(table, data_flow.get_block_argument_edge_owners(op)),
        data_flow.get_block_argument_edge_owner_shardings,
        data_flow.set_block_argument_edge_owner_shardings,
    )
    _store_owners(
        op,
        "op_result_edge_owner_shardings",
        complete(table, data_flow.get_op_result_edge_owners(op)),
        data_flow.get_op_result_edge_owner_shardings,
        data_flow.set_op_result_edge_owner_shardings,
    )


def _store_owners(
    op: Op,
    name: str,
    wanted: tuple[TensorSharding, ...],
    getter: Callable[[Op], Sequence[TensorSharding]],
    setter: Callable[[Op, Sequence[TensorSharding]], None],
) -> None:
    if tuple(getter(op)) == wanted:
        return
    if wanted:
        setter(op, wanted)
        stored = tuple(getter(op))
        if stored != wanted:
            raise _not_stored(op, name, wanted, stored)
    elif SHARDING in op.attributes:
        del op.attributes[SHARDING]


def _not_stored(
    op: Op, name: str, wanted: tuple[TensorSharding, ...], stored: tuple[TensorSharding, ...]
) -> PluginError:
    expected, actual = (f"[{', '.join(map(str, shardings))}]" for shardings in (wanted, stored))
    message = f"get_{name}: expected {expected}, which set_{name} got before, got {actual}"
    hint = "let the first method read the attribute that the second one writes, or leave out both"
    return PluginError(Diagnostic("data-flow", message, op.location, op.name, hint))


def _store_dictionaries(table: dict[int, TensorSharding], op: Op, name: str, values: Sequence[Value]) -> None:
    """Write shardings into the dictionaries of a function's arguments or results."""
    if not values:
        return
    current: Sequence[dict[str, Any]] = op.attributes.get(name) or ({},) * len(values)
    changed = [_with_sharding(item, table.get(value.id)) for item, value in zip(current, values, strict=True)]
    if all(map(is_, current, changed)):
        return
    if any(changed):
        op.attributes[name] = tuple(changed)
    else:
        del op.attributes[name]


def _with_sharding(item: dict[str, Any], sharding: TensorSharding | None) -> dict[str, Any]:
    old = item.get(SHARDING)
    if old is sharding or (old is not None and old == sharding):
        return item
    if not item:
        return {SHARDING: sharding}
    rest = {key: value for key, value in item.items() if key != SHARDING}
    return rest if sharding is None else {**rest, SHARDING: sharding}
