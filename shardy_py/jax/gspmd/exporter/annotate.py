"""Attributes ``mhlo.sharding`` on functions and ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.op_names import FUNCTION, MANUAL_COMPUTATION, NAMED_COMPUTATION
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.graph.walk import all_ops, entry_arguments
from shardy_py.ir.interfaces.ops import OpOperand, OpSemantics
from shardy_py.jax.gspmd.exporter.texts import Texts
from shardy_py.sharding.axes import SdyAttribute
from shardy_py.sharding.hlo import HloSharding

SHARDING = "mhlo.sharding"
CUSTOM_CALL = "stablehlo.custom_call"
SHARDING_CALL = "Sharding"
REGION_OPS = frozenset((MANUAL_COMPUTATION, NAMED_COMPUTATION))
_COUNT = "mhlo.num_partitions"


def annotate(program: Program, semantics: OpSemantics, texts: Texts) -> None:
    """Give each argument, result and op of other dialects its sharding; take attributes of Shardy away.

    Loops and branches get custom calls for each of their values instead: XLA removes values that it finds to be
    constant from a loop, and refuses the list of shardings that is too long then. Where all axes are manual nothing
    is said, as JAX does it; XLA finds out itself.
    """
    for op in list(all_ops(program)):
        if op.name == FUNCTION:
            _annotate_interface(op, "arg_attrs", entry_arguments(op), texts)
            _annotate_interface(op, "res_attrs", op.function_results, texts)
        elif texts.is_all_manual(op.parent):
            pass
        elif semantics.get_data_flow(op) is not None:
            if op.name not in REGION_OPS:
                _annotate_data_flow(op, semantics, texts)
        elif op.results and not op.name.startswith("sdy."):
            text = _text(op, texts)
            if text is not None:
                op.attributes[SHARDING] = text
        if not op.name.startswith("sdy."):
            drop_shardy_attributes(op)
    count = max((mesh.total_size for mesh in program.meshes.values()), default=1)
    if program.attributes.get(_COUNT, 1) < count:
        program.attributes[_COUNT] = RawAttribute(f"{count} : i32")


def _annotate_data_flow(op: Op, semantics: OpSemantics, texts: Texts) -> None:
    """Constrain the results of a loop or branch, the arguments of its blocks and what these return."""
    data_flow = semantics.get_data_flow(op)
    for value in op.results:
        _constrain(value, texts, op.parent)
    for owner in data_flow.get_op_result_edge_owners(op) if data_flow is not None else ():
        for source in data_flow.get_edge_sources(op, owner) if data_flow is not None else ():
            if source.op is not op and _is_worth_it(owner, texts):
                _constrain_operand(source, texts.of_value(owner, op.parent))
    for region in op.regions:
        for block in region.blocks:
            for value in block.arguments:
                _constrain(value, texts, block)


def _constrain(value: Value, texts: Texts, block: Block | None) -> None:
    """Replace all uses of a value by a custom call with its sharding; a scalar without one stays."""
    if not value.uses or not _is_worth_it(value, texts):
        return
    program = value.owning_op.program
    attributes = sharding_call(SHARDING_CALL, texts.of_value(value, block))
    call = Op(program, CUSTOM_CALL, [value], [value.type], attributes)
    value.replace_all_uses_with(call.results[0], except_op=call)
    value.insert_after(call)


def _constrain_operand(source: OpOperand, sharding: HloSharding) -> None:
    """Say the sharding of what a terminator hands on, right before it."""
    terminator, value = source.op, source.value
    call = Op(terminator.program, CUSTOM_CALL, [value], [value.type], sharding_call(SHARDING_CALL, sharding))
    if terminator.parent is not None:
        terminator.parent.insert_before(terminator, call)
    terminator.set_operand(source.number, call.results[0])


def sharding_call(target: str, sharding: HloSharding) -> dict[str, Any]:
    """Return the attributes of a custom call that says a sharding."""
    return {"call_target_name": target, "backend_config": "", SHARDING: str(sharding)}


def drop_shardy_attributes(op: Op) -> None:
    """Remove the attributes of Shardy from an op: by name, and those of other dialects that hold shardings."""
    for name in [name for name, item in op.attributes.items() if name.startswith("sdy.") or _is_of_shardy(item)]:
        del op.attributes[name]


def _is_of_shardy(attribute: Any) -> bool:
    """Return whether an attribute is Shardy's, such as the shardings of the arguments of a loop of ``scf``."""
    is_raw = isinstance(attribute, RawAttribute) and attribute.text.startswith("#sdy.")
    return is_raw or isinstance(attribute, SdyAttribute)


def _annotate_interface(function: Op, name: str, values: Sequence[Value], texts: Texts) -> None:
    """Write the shardings of arguments or results into their dictionaries."""
    if not values:
        return
    body = function.regions[0].blocks[0] if function.regions and function.regions[0].blocks else None
    has_sharding = not texts.is_all_manual(body)
    old: Sequence[dict[str, Any]] = function.attributes.get(name) or ({},) * len(values)
    new = []
    for item, value in zip(old, values, strict=True):
        entries = {key: attribute for key, attribute in item.items() if not key.startswith("sdy.")}
        if isinstance(value.type, TensorType) and has_sharding:
            entries[SHARDING] = str(texts.of_value(value, body))
        new.append(entries)
    if any(new):
        function.attributes[name] = tuple(new)
    elif name in function.attributes:
        del function.attributes[name]


def _text(op: Op, texts: Texts) -> str | None:
    """Return the sharding of the results of an op; None for scalars alone of which nothing is said."""
    if not any(_is_worth_it(value, texts) for value in op.results):
        return None
    shardings = [texts.of_value(value, op.parent) for value in op.results]
    return str(shardings[0] if len(shardings) == 1 else HloSharding.tuple_of(shardings))


def _is_worth_it(value: Value, texts: Texts) -> bool:
    if not isinstance(value.type, TensorType):
        return False
    return value.type.rank > 0 or texts.has_sharding(value)
