"""Fusions in HLO modules: their names and layouts, and the tuples that they must not have inside."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.jax.hlo import HloModule
from shardy_py.layout.parse import parse_shape
from shardy_py.layout.shape import AnyShape, TupleShape, arrays

FUSION = "mhlo.fusion"
"""The op that a fusion of HLO becomes."""

_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.-]+) .*\{$|^(?:ENTRY )?%?([\w.-]+) \{$")
_TUPLE = re.compile(r"^\s*(ROOT )?%?([\w.-]+) = (\(.*\)) (tuple|parameter)\(")
_FUSED = re.compile(r"^\s*(?:ROOT )?%?([\w.-]+) = .* fusion\(.*calls=%?([\w.-]+)")


def fusion_names(text: str) -> tuple[str, ...]:
    """Return the names of the fusions in the canonical text of a module, in their order."""
    return tuple(match[1] for line in text.splitlines() if (match := _FUSED.match(line)))


def check_tuples(text: str) -> None:
    """Check that fused computations have no tuples but those of their results.

    Args:
        text: The canonical text of a module; without fusions its entry computation is the fused one.

    Raises:
        UnsupportedError: one has; all are named.
    """
    fused = {match[2] for line in text.splitlines() if (match := _FUSED.match(line))}
    problems = []
    for is_entry, computation, line in _lines(text):
        match = _TUPLE.match(line)
        if match is None or not (computation in fused if fused else is_entry):
            continue
        is_root, name, shape, opcode = match.groups()
        hint = "return several results, and give the elements of a tuple one by one"
        if opcode == "parameter" or not is_root:
            message = f"the fused computation {computation} has the tuple {name} inside"
            problems.append(Diagnostic("internal-tuple", message, op=opcode, hint=hint))
        elif _is_nested(parse_shape(shape)):
            message = f"the result {name} of the fused computation {computation} is a tuple of tuples"
            problems.append(Diagnostic("nested-tuple", message, op=opcode, hint=hint))
    if problems:
        raise UnsupportedError(*problems)


def _lines(text: str) -> Iterator[tuple[bool, str, str]]:
    """Yield the lines inside of computations: whether it is the entry, its name, the line."""
    is_entry, computation = False, ""
    for line in text.splitlines():
        header = _COMPUTATION.match(line)
        if header is not None and not line.startswith("HloModule"):
            is_entry, computation = line.startswith("ENTRY"), header[1] or header[2]
        else:
            yield is_entry, computation, line


def _is_nested(shape: AnyShape) -> bool:
    return isinstance(shape, TupleShape) and any(isinstance(element, TupleShape) for element in shape.elements)


def hlo_layouts(module: HloModule, program: Program) -> dict[int, tuple[int, ...]]:
    """Return the layouts of the values of a module that are not row-major, by their ids.

    Args:
        module: The module.
        program: Its op graph.

    Raises:
        UnsupportedError: a layout has tiles.
    """
    (block,) = program.functions["main"].regions[0].blocks
    layouts = _Layouts()
    for value, shape in zip(block.arguments, _leaves(*module.parameters), strict=True):
        layouts.set(value, shape)
    layouts.of_ops(block.ops)
    terminator = block.terminator
    for value, shape in zip(terminator.operands if terminator else (), _leaves(module.result), strict=True):
        if value not in block.arguments:
            layouts.set(value, shape)
    return layouts.found


def _leaves(*shapes: AnyShape) -> list[AnyShape]:
    return [leaf for shape in shapes for leaf in (arrays(shape) if isinstance(shape, TupleShape) else (shape,))]


class _Layouts:
    """Layouts by the ids of values."""

    def __init__(self) -> None:
        self.found: dict[int, tuple[int, ...]] = {}

    def set(self, value: Value, shape: AnyShape) -> None:
        """Take the layout of a shape."""
        for array in arrays(shape):
            if array.layout.tiles:
                message = f"a kernel has no tensors in tiles, such as {array}"
                hint = "tiles are for TPUs; leave out T(...)"
                raise UnsupportedError(Diagnostic("tiled-layout", message, hint=hint))
            self._set(value, array.layout.minor_to_major)

    def _set(self, value: Value, minor_to_major: tuple[int, ...]) -> None:
        if list(minor_to_major) == sorted(minor_to_major, reverse=True):
            self.found.pop(value.id, None)
        else:
            self.found[value.id] = tuple(minor_to_major)

    def of_ops(self, ops: Iterator[Op]) -> None:
        """Take what ops say of their results; fusions pass it on into their regions and out of them."""
        for op in ops:
            if op.name == FUSION:
                self._of_fusion(op)
            elif "xla_shape" in op.attributes:
                for value, shape in zip(op.results, _leaves(parse_shape(op.attributes["xla_shape"])), strict=True):
                    self.set(value, shape)
            elif "result_layout" in op.attributes:
                self._set(op.results[0], tuple(map(int, op.attributes["result_layout"].values)))

    def _of_fusion(self, op: Op) -> None:
        (block,) = op.regions[0].blocks
        self._copy(op.operands, block.arguments)
        self.of_ops(block.ops)
        self._copy(block.terminator.operands if block.terminator else (), op.results)

    def _copy(self, sources: Sequence[Value], targets: Sequence[Value]) -> None:
        for source, target in zip(sources, targets, strict=True):
            if source.id in self.found:
                self.found[target.id] = self.found[source.id]
