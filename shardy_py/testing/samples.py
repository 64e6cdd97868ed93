"""Ops to try a definition with: those of an author's programs, or ops with the shapes that a rule text asks for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from math import prod
from typing import Any

from numpy import errstate

from shardy_py.ir.graph.attributes import shared_key
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.types import TensorType
from shardy_py.plugins import Elementwise, OpDefinition
from shardy_py.sharding.einsum.spec import RuleSpec, ellipsis
from shardy_py.sharding.einsum.text import TensorSpec
from shardy_py.support.arguments import parameter_names
from shardy_py.testing.numeric.operands import make_generator, make_operand
from shardy_py.testing.ops import make_op

_MOST_SAMPLES = 8
_SMALLEST = 4
Shapes = tuple[tuple[int, ...], ...]


def samples_of_programs(programs: list[Program]) -> Mapping[str, list[Op]]:
    """Return the ops of some programs that differ in types or attributes, by name; a few of each name."""
    samples_by_name: dict[str, dict[Any, Op]] = {}
    for program in programs:
        for op in program.walk():
            types = [str(value.type) for value in (*op.operands, *op.results)]
            key = (shared_key(op.attributes), len(op.operands), *types)
            samples = samples_by_name.setdefault(op.name, {})
            if len(samples) < _MOST_SAMPLES:
                samples.setdefault(key, op)
    return {name: list(samples.values()) for name, samples in samples_by_name.items()}


def sample_of_definition(definition: OpDefinition, function: Callable[..., Any], seed: int) -> Op | None:
    """Return an op with operands that fit a definition; None where only a program can tell what fits.

    Args:
        definition: The definition.
        function: What the op computes, which tells the shapes of the results.
        seed: The seed of the operands that it is called with.
    """
    shapes = _operand_shapes(definition, function)
    if shapes is None or takes_op(function):
        return None
    try:
        return _made_op(definition, function, [TensorType(shape, "f32") for shape in shapes], seed)
    except (TypeError, IndexError):
        # Ops on bits and at indices take integers only.
        with suppress(TypeError, IndexError):
            return _made_op(definition, function, [TensorType(shape, "i32") for shape in shapes], seed)
        raise


def _made_op(definition: OpDefinition, function: Callable[..., Any], types: Sequence[TensorType], seed: int) -> Op:
    """Return an op with operands of some types, and results as a function gives them."""
    generator = make_generator(seed)
    with errstate(all="ignore"):
        results = function(*(make_operand(type_, generator) for type_ in types))
    arrays = results if isinstance(results, tuple) else (results,)
    return make_op(definition.name, types, arrays, definition.when)


def takes_op(function: Callable[..., Any]) -> bool:
    """Return whether a function has a parameter named ``op``, so that it may read attributes and types of results."""
    return "op" in parameter_names(function)


def _operand_shapes(definition: OpDefinition, function: Callable[..., Any]) -> Shapes | None:
    if isinstance(definition.rule, RuleSpec):
        return tuple(shapes_of_text(definition.rule))
    if definition.rule is None and Elementwise in definition.traits:
        count = _operand_count(function)
        return None if count is None else ((4, 6),) * count
    return None


def _operand_count(function: Callable[..., Any]) -> int | None:
    """Return how many operands a function takes; None where it does not say."""
    inputs = getattr(function, "nin", None)
    if inputs is not None:
        # That of a ufunc of numpy.
        return int(inputs)
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return None
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(item.kind in plain and item.default is item.empty for item in parameters)


def shapes_of_text(spec: RuleSpec) -> Iterator[tuple[int, ...]]:
    """Yield the shape of each operand of a rule text: every factor has another size, all of them even.

    >>> from shardy_py.sharding.einsum import rule
    >>> list(shapes_of_text(rule("i k, k j -> i j", reduction="k")))
    [(4, 6), (6, 8)]
    """
    sizes: dict[str, int] = dict(spec.sizes)
    numbers = count(_SMALLEST, 2)
    for tensor in spec.tensors:
        batch = [] if tensor.batch is None else [ellipsis(tensor.batch)]
        for name in (*(name for dim in tensor.dims for name in dim.names), *batch):
            if name not in sizes:
                sizes[name] = next(numbers)
    for tensor in spec.operands:
        yield tuple(_shape(tensor, sizes))


def _shape(tensor: TensorSpec, sizes: Mapping[str, int]) -> list[int]:
    shape = [prod(sizes[name] for name in dim.names) for dim in tensor.dims]
    if tensor.batch is not None:
        shape.insert(tensor.before, sizes[ellipsis(tensor.batch)])
    return shape
