"""One op as a program of its own, and the ways to shard it that follow from its rule."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import field, frozen

from shardy_py.sharding.rule import OpShardingRule

_TYPE = re.compile(r"((?:\d+x)*)(.+)")
Axes = Mapping[int, str]
"""The axis along which each of some factors is sharded."""


@frozen(eq=False)
class Case:
    """One op.

    Args:
        op: Its full name.
        operands: The types of its operands, without ``tensor<>``.
        results: The types of its results.
        attributes: The text of its attributes.
        regions: The text of its regions.
        constants: Texts of constants, for operands that must be known, by number.
        low: The smallest number in operands.
        high: The largest number in operands.
        tolerance: The largest relative deviation; None for the one of the type.
    """

    op: str
    operands: Sequence[str]
    results: Sequence[str]
    attributes: str = ""
    regions: str = ""
    constants: Mapping[int, str] = field(factory=dict)
    low: float = 0.1
    high: float = 0.9
    tolerance: float | None = None

    def line(self, names: Sequence[str], results: str) -> str:
        """Return the op as text.

        Args:
            names: The names of the operands that are no constants.
            results: The name of the results.
        """
        rest = iter(names)
        lines, operands = [], []
        for number, type_ in enumerate(self.operands):
            if number in self.constants:
                name = f"{results}_c{number}"
                lines.append(f"{name} = stablehlo.constant dense<{self.constants[number]}> : tensor<{type_}>")
            else:
                name = next(rest)
            operands.append(name)
        count = f":{len(self.results)}" if len(self.results) > 1 else ""
        regions = f" ({self.regions})" if self.regions else ""
        attributes = f" {{{self.attributes}}}" if self.attributes else ""
        signature = f"({tensors(self.operands)}) -> ({tensors(self.results)})"
        lines.append(f'{results}{count} = "{self.op}"({", ".join(operands)}){regions}{attributes} : {signature}')
        return "\n".join(lines)

    @property
    def arguments(self) -> list[int]:
        """The numbers of the operands that are no constants."""
        return [number for number in range(len(self.operands)) if number not in self.constants]

    def result_names(self, results: str) -> list[str]:
        """Return the names of the single results."""
        count = len(self.results)
        return [f"{results}#{number}" for number in range(count)] if count > 1 else [results]


def tensors(types: Sequence[str]) -> str:
    """Return types of tensors as text."""
    return ", ".join(f"tensor<{type_}>" for type_ in types)


def program(case: Case, rule: OpShardingRule | None, mesh: str, ways: Sequence[Axes]) -> str:
    """Return a program with one copy of the op for each way to shard it.

    Args:
        case: The op.
        rule: Its rule; None only without ways, for the op on whole tensors.
        mesh: The text of the mesh.
        ways: The ways to shard it.
    """
    arguments, results, lines, returned = [], [], [], []
    for number, axes in enumerate(ways or [{}]):
        names = [f"%a{number}_{operand}" for operand in case.arguments]
        for name, operand in zip(names, case.arguments, strict=True):
            mark = _mark(rule.operand_mappings[operand], axes, rule) if rule is not None else ""
            arguments.append(f"{name}: tensor<{case.operands[operand]}>{mark}")
        lines.append(case.line(names, f"%r{number}"))
        returned += case.result_names(f"%r{number}")
        for result, type_ in enumerate(case.results):
            mark = _mark(rule.result_mappings[result], axes, rule) if rule is not None else ""
            results.append(f"tensor<{type_}>{mark}")
    types = tensors(list(case.results) * max(1, len(ways)))
    head = f"func.func @main({', '.join(arguments)}) -> ({', '.join(results)}) {{"
    return "\n".join([mesh, head, *lines, f"return {', '.join(returned)} : {types}", "}"])


def _mark(mapping: Sequence[Sequence[int]], axes: Axes, rule: OpShardingRule) -> str:
    """Return the sharding of a tensor in which some factors are sharded, as an attribute."""
    names = [[f'"{axis}"' for axis in _dim_axes(dim, axes, rule)] for dim in mapping]
    dims = ", ".join(f"{{{', '.join(axes_of_dim)}}}" for axes_of_dim in names)
    return f" {{sdy.sharding = #sdy.sharding<@mesh, [{dims}]>}}"


def _dim_axes(dim: Sequence[int], axes: Axes, rule: OpShardingRule) -> Iterator[str]:
    """Yield the axis of the major factor of a dimension; axes of others could not be told from those of the major."""
    real = [factor for factor in dim if rule.factor_sizes[factor] > 1]
    if real and real[0] in axes:
        yield axes[real[0]]


def ways_to_shard(rule: OpShardingRule) -> list[Axes]:
    """Return each factor along each of two axes, and each pair of factors along both."""
    factors = [number for number, size in enumerate(rule.factor_sizes) if size > 1]
    alone: list[Axes] = [{factor: axis} for factor in factors for axis in "xy"]
    pairs: list[Axes] = [{item: "x", other: "y"} for item in factors for other in factors if item != other]
    return [*alone, *pairs]


def known_numbers(case: Case, generator: Any) -> list[Any]:
    """Return an array for each operand that is no constant."""
    from shardy_py.layout.numpy_arrays import numpy_dtype

    arrays = []
    for number in case.arguments:
        sizes, element = _TYPE.fullmatch(case.operands[number]).groups()
        shape, dtype = tuple(map(int, sizes.split("x")[:-1])), numpy_dtype(element)
        numbers = generator.uniform(case.low, case.high, shape)
        if dtype.kind == "c":
            numbers = numbers + 1j * generator.uniform(case.low, case.high, shape)
        elif dtype.kind in "iu":
            numbers = generator.integers(int(case.low), int(case.high) + 1, shape)
        elif dtype.kind == "b":
            numbers = generator.integers(0, 2, shape)
        arrays.append(numbers.astype(dtype))
    return arrays
