"""Copies of the names, the donation and the memory kinds of arguments and results, which HLO does not keep."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from shardy_py.frontends.mlir.native_reader import location_name
from shardy_py.ir.graph.op_names import FUNCTION

_NAME = "sym_name"
_MAIN = "main"
_OF_HLO = ("mhlo.input_output_alias", "mhlo.buffer_donor")
"""Donation in terms of HLO: attributes of the module, which the attributes of arguments say already."""
_SHARDINGS = frozenset(("sdy.sharding", "mhlo.sharding"))


def copy_main_interface(source: ir.Module, target: ir.Module) -> None:
    """Copy what a module says about arguments and results to the module that was made of it, by their numbers.

    Shardings are left out, as the other module has them in its own form.

    Args:
        source: The module as JAX wrote it.
        target: The module to change; it may be of another context.
    """
    before, after = _main(source), _main(target)
    if before is None or after is None:
        return
    context = target.context
    known: dict[str, Any] = {}

    def move(attribute: Any) -> Any:
        text = str(attribute)
        if text not in known:
            known[text] = ir.Attribute.parse(text, context)
        return known[text]

    for name in ("arg_attrs", "res_attrs"):
        _merge(before, after, name, move)
    arguments = zip(before.regions[0].blocks[0].arguments, after.regions[0].blocks[0].arguments, strict=False)
    for argument, copy in arguments:
        name = location_name(argument.location)
        if not hasattr(copy, "set_location"):  # jaxlib before 0.10: arguments are called arg0, arg1 and so on
            break
        copy.set_location(ir.Location.name(name, context=context) if name else ir.Location.unknown(context))
    _copy_module_attributes(source, target, move)


def _main(module: ir.Module) -> Any:
    for op in module.body.operations:
        if op.operation.name == FUNCTION and ir.StringAttr(op.attributes[_NAME]).value == _MAIN:
            return op.operation
    return None


def _merge(before: Any, after: Any, name: str, move: Any) -> None:
    if name not in before.attributes:
        return
    items = [ir.DictAttr(item) for item in before.attributes[name]]
    new_items = [ir.DictAttr(item) for item in after.attributes[name]] if name in after.attributes else []
    merged = []
    for index, item in enumerate(items):
        entries = {entry.name: move(entry.attr) for entry in item if entry.name not in _SHARDINGS}
        if index < len(new_items):
            entries |= {entry.name: entry.attr for entry in new_items[index]}
        merged.append(ir.DictAttr.get(entries, context=after.context))
    after.attributes[name] = ir.ArrayAttr.get(merged, context=after.context)


def _copy_module_attributes(source: ir.Module, target: ir.Module, move: Any) -> None:
    """Copy the attributes of a module; those that repeat what arguments say, or tell nothing, go."""
    attributes = target.operation.attributes
    for name, attribute in dict(attributes.items()).items():
        if str(attribute) in ("[]", "false") or name in _OF_HLO:
            del attributes[name]
    for name, attribute in source.operation.attributes.items():
        if name not in attributes:
            attributes[name] = move(attribute)
