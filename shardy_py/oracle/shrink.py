"""Reducing a module while something stays true of it, for example a difference from the reference.

    shrink(text, lambda text: not compare(reference.run(text, p).text, run(text, p)))

Ops are taken out in chunks (their results become function arguments), then shardings, results, arguments, functions
and meshes, until nothing more can go. jaxlib is needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from shardy_py.ir.graph.op_names import CALL, FUNCTION, MESH, REGION_RETURN, RETURN
from shardy_py.oracle.reference_worker import make_context

Predicate = Callable[[str], bool]
Edit = Callable[[Any], bool]

_KEPT = frozenset({FUNCTION, RETURN, MESH, REGION_RETURN, "stablehlo.return", "test.yield"})


def shrink(text: str, predicate: Predicate, *, rounds: int = 6) -> str:
    """Return a module that is as small as possible and for which ``predicate`` still holds.

    Args:
        text: A module for which it holds.
        predicate: Called with the text of smaller, valid modules.
        rounds: How often to go over everything at most.
    """
    for _ in range(rounds):
        before = text
        text = _without_ops(text, predicate)
        for edits in (_attribute_edits, _result_edits, _argument_edits, _symbol_edits, _region_edits):
            text = _apply_all(text, predicate, edits)
        text = _simpler_shardings(text, predicate)
        if text == before:
            break
    return text


def _edited(text: str, edit: Edit) -> str | None:
    """Return the module after an edit, or None where it does not apply or leaves an invalid module."""
    from jaxlib.mlir import ir

    with make_context():
        try:
            module = ir.Module.parse(text)
            if not edit(module):
                return None
            result = str(module.operation.get_asm())
            ir.Module.parse(result)
        except (ir.MLIRError, ValueError, RuntimeError):
            return None
    return result


def _walk(block: Any) -> Iterator[Any]:
    for op in list(block.operations):
        yield op.operation
        for region in op.operation.regions:
            for inner in region.blocks:
                yield from _walk(inner)


def _ops(module: Any) -> list[Any]:
    return [op for op in _walk(module.body) if op.name not in _KEPT and not _is_used_source(op)]


def _is_used_source(op: Any) -> bool:
    return op.name == "test.source" and any(list(result.uses) for result in op.results)


def _functions(module: Any) -> list[Any]:
    return [op.operation for op in module.body.operations if op.operation.name == FUNCTION]


def _without_ops(text: str, predicate: Predicate) -> str:
    size = 64
    while size:
        start = 0
        while True:
            total: list[int] = []

            def edit(module: Any, start: int = start, size: int = size, total: list[int] = total) -> bool:
                ops = _ops(module)
                total.append(len(ops))
                chosen = list(reversed(ops))[start : start + size]
                for op in chosen:
                    _erase(op)
                return bool(chosen)

            smaller = _edited(text, edit)
            if smaller is not None and predicate(smaller):
                text = smaller
            elif not total or start >= total[0]:
                break
            else:
                start += size
        size //= 2
    return text


def _erase(op: Any) -> None:
    """Erase an op; a value of the same type takes the place of each result that is used."""
    from jaxlib.mlir import ir

    for result in op.results:
        uses = list(result.uses)
        if not uses:
            continue
        same = [operand for operand in op.operands if operand.type == result.type]
        if same:
            result.replace_all_uses_with(same[0])
        else:
            with op.location:
                source = ir.Operation.create("test.source", results=[result.type], ip=ir.InsertionPoint(op))
            result.replace_all_uses_with(source.results[0])
    op.erase()


def _apply_all(text: str, predicate: Predicate, edits: Callable[[int], Edit]) -> str:
    """Try the edits one after the other until they run out; an edit that is kept makes room for another one."""
    index = 0
    misses = 0
    while misses < 3:
        smaller = _edited(text, edits(index))
        if smaller is not None and smaller != text and predicate(smaller):
            text, misses = smaller, 0
            continue
        index += 1
        misses = misses + 1 if smaller is None else 0
    return text


def _attribute_edits(index: int) -> Edit:
    def edit(module: Any) -> bool:
        from jaxlib.mlir import ir

        places: list[tuple[Any, str, int]] = []
        for op in _walk(module.body):
            names = [item if isinstance(item, str) else item.name for item in op.attributes]
            places += [(op, name, -1) for name in ("sdy.sharding", "sdy.sharding_rule") if name in names]
            for name in ("arg_attrs", "res_attrs"):
                if name in names:
                    places += [(op, name, number) for number, item in enumerate(op.attributes[name]) if len(item)]
        if index >= len(places):
            return False
        op, name, number = places[index]
        if number < 0:
            del op.attributes[name]
        else:
            items = list(op.attributes[name])
            items[number] = ir.DictAttr.get({})
            op.attributes[name] = ir.ArrayAttr.get(items)
        return True

    return edit


def _result_edits(index: int) -> Edit:
    def edit(module: Any) -> bool:
        from jaxlib.mlir import ir

        places = [
            (function, number)
            for function in _functions(module)
            for number in range(len(ir.TypeAttr(function.attributes["function_type"]).value.results))
        ]
        if index >= len(places):
            return False
        function, number = places[index]
        name = ir.StringAttr(function.attributes["sym_name"]).value
        if any(op.name == CALL and op.attributes["callee"].value == name for op in _walk(module.body)):
            return True
        block = function.regions[0].blocks[0]
        last = list(block.operations)[-1]
        operands = [value for position, value in enumerate(last.operands) if position != number]
        with last.operation.location:
            ir.Operation.create(RETURN, operands=operands, ip=ir.InsertionPoint(last))
        last.operation.erase()
        _retype(function, block, "res_attrs", number)
        return True

    return edit


def _argument_edits(index: int) -> Edit:
    def edit(module: Any) -> bool:
        from jaxlib.mlir import ir

        places = [
            (function, number)
            for function in _functions(module)
            for number in range(len(function.regions[0].blocks[0].arguments))
        ]
        if index >= len(places):
            return False
        function, number = places[index]
        block = function.regions[0].blocks[0]
        name = ir.StringAttr(function.attributes["sym_name"]).value
        called = any(op.name == CALL and op.attributes["callee"].value == name for op in _walk(module.body))
        if called or list(block.arguments[number].uses):
            return True
        block.erase_argument(number)
        _retype(function, block, "arg_attrs", number)
        return True

    return edit


def _retype(function: Any, block: Any, attributes: str, number: int) -> None:
    from jaxlib.mlir import ir

    last = list(block.operations)[-1]
    kind = ir.FunctionType.get([item.type for item in block.arguments], [item.type for item in last.operands])
    function.attributes["function_type"] = ir.TypeAttr.get(kind)
    if attributes in function.attributes:
        items = [item for position, item in enumerate(function.attributes[attributes]) if position != number]
        function.attributes[attributes] = ir.ArrayAttr.get(items)


def _symbol_edits(index: int) -> Edit:
    def edit(module: Any) -> bool:
        ops = [op.operation for op in module.body.operations]
        if index >= len(ops):
            return False
        name = str(ops[index].attributes["sym_name"]).strip('"')
        uses = str(module.operation.get_asm()).count(f"@{name}")
        if name != "main" and uses <= 1:
            ops[index].erase()
        return True

    return edit


def _region_edits(index: int) -> Edit:
    """Turn the sources that stand for erased ops into function arguments."""

    def edit(module: Any) -> bool:
        from jaxlib.mlir import ir

        places = [
            (function, op)
            for function in _functions(module)
            for op in (item.operation for item in function.regions[0].blocks[0].operations)
            if op.name == "test.source"
        ]
        if index >= len(places):
            return False
        function, op = places[index]
        name = ir.StringAttr(function.attributes["sym_name"]).value
        if any(item.name == CALL and item.attributes["callee"].value == name for item in _walk(module.body)):
            return True
        block = function.regions[0].blocks[0]
        argument = block.add_argument(op.results[0].type, op.location)
        op.results[0].replace_all_uses_with(argument)
        op.erase()
        if "arg_attrs" in function.attributes:
            items = [*function.attributes["arg_attrs"], ir.DictAttr.get({})]
            function.attributes["arg_attrs"] = ir.ArrayAttr.get(items)
        last = list(block.operations)[-1]
        kind = ir.FunctionType.get([item.type for item in block.arguments], [item.type for item in last.operands])
        function.attributes["function_type"] = ir.TypeAttr.get(kind)
        return True

    return edit


_SIMPLER = (
    (re.compile(r", unreduced=\{[^}]*\}"), ""),
    (re.compile(r", replicated=\{[^}]*\}"), ""),
    (re.compile(r"\}p\d"), "}"),
    (re.compile(r'\{"[^{}]*, \?\}'), "{?}"),
    (re.compile(r'\{"[^{}?]*"(:\(\d+\)\d+)?\}'), "{}"),
    (re.compile(r", device_ids=\[[^\]]*\]"), ""),
)


def _simpler_shardings(text: str, predicate: Predicate) -> str:
    """Replace parts of shardings by less, one place at a time."""
    for pattern, replacement in _SIMPLER:
        position = 0
        while match := pattern.search(text, position):
            smaller = text[: match.start()] + replacement + text[match.end() :]
            if _edited(smaller, lambda module: True) is not None and predicate(smaller):
                text = smaller
            else:
                position = match.end()
    return text
