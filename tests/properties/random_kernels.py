"""Random programs of reshapes, slices, updates, scatters and reductions for kernels, with arrays to run them on.

Numbers are small integers, so that sums are the same in every order; starts of slices are read at run time, may be the
same value, equal ones, or out of range.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import attrs
import numpy as np

from shardy_py.layout.numpy_arrays import numpy_dtype
from tests.properties.random_index_forms import IndexForm, random_form

INTEGERS = ("i1", "i8", "i16", "i32", "i64", "ui8", "ui32")
FLOATS = ("f32", "f64", "bf16", "f16")
SMALL_FLOATS = ("f8E4M3FN", "f8E5M2", "f8E4M3FNUZ", "f8E5M2FNUZ", "f8E4M3B11FNUZ", "f8E4M3", "f8E3M4", "f8E8M0FNU")
FOUR_BITS = ("i4", "ui4", "f4E2M1FN")

SIZES = (1, 2, 3, 4, 5, 7, 8, 16, 31, 33, 40)
MOST_ELEMENTS = 6000
STARTS = (-5, -1, 0, 0, 1, 2, 3, 6, 50)


@attrs.frozen
class Tensor:
    """A value of a program: its name, shape and element type."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def type(self) -> str:
        """Its type in MLIR's notation."""
        return type_of(self.shape, self.dtype)


@attrs.frozen
class Program:
    """A program with one function, and an array for each of its parameters."""

    text: str
    arrays: tuple[Any, ...]


def type_of(shape: Sequence[int], dtype: str) -> str:
    """The type of a tensor in MLIR's notation."""
    return f"tensor<{''.join(f'{size}x' for size in shape)}{dtype}>"


def is_integer(dtype: str) -> bool:
    """Whether elements are integers or booleans."""
    return dtype.lstrip("u").startswith("i")


def is_exact(dtype: str) -> bool:
    """Whether sums of some thousand elements are the same in every order."""
    return is_integer(dtype) or dtype in ("f32", "f64")


def random_program(seed: int, *, four_bits: bool = False) -> Program:
    """The program of a seed."""
    return _Writer(seed, four_bits=four_bits).program()


class _Writer:
    """A program while it is written."""

    def __init__(self, seed: int, *, four_bits: bool) -> None:
        self.random = random.Random(seed)
        kinds = (INTEGERS, FLOATS, SMALL_FLOATS, *((FOUR_BITS,) if four_bits else ()))
        self.dtype = self.random.choice(self.random.choice(kinds))
        self.numbers = np.random.default_rng(seed)
        self.lines: list[str] = []
        self.parameters: list[Tensor] = []
        self.arrays: list[Any] = []
        self.values: list[Tensor] = []
        self.starts: list[Tensor] = []
        self.roots = (
            *(self.update, self.update, self.scatter, self.scatter, self.reduce, self.move, self.several),
            self.select_and_scatter,
        )

    def program(self) -> Program:
        """Write parameters, some ops and the results."""
        for _ in range(self.random.randint(1, 3)):
            self.values.append(self.parameter(self.shape(), self.dtype))
        start_type = self.random.choice(("i32", "i32", "i64", "ui8"))
        for _ in range(self.random.randint(1, 3)):
            numbers = [number for number in STARTS if number >= 0 or start_type != "ui8"]
            self.starts.append(self.parameter((), start_type, self.random.choice(numbers)))
        for _ in range(self.random.randint(0, 2)):
            left, right = self.random.choice(self.starts), self.random.choice(self.starts)
            self.starts.append(self.op(f"stablehlo.add {left.name}, {right.name} : {left.type}", (), start_type))
        for _ in range(self.random.randint(1, 7)):
            self.step()
        roots = self.random.choice(self.roots)()
        types = ", ".join(root.type for root in roots)
        names = ", ".join(root.name for root in roots)
        arguments = ", ".join(f"{item.name}: {item.type}" for item in self.parameters)
        body = "\n  ".join((*self.lines, f"return {names} : {types}"))
        return Program(f"func.func @main({arguments}) -> ({types}) {{\n  {body}\n}}\n", tuple(self.arrays))

    def shape(self) -> tuple[int, ...]:
        """A shape of up to three dimensions."""
        while True:
            shape = tuple(self.random.choice(SIZES) for _ in range(self.random.choice((1, 1, 2, 2, 2, 3))))
            if prod(shape) <= MOST_ELEMENTS:
                return shape

    def parameter(self, shape: Sequence[int], dtype: str, value: int | None = None) -> Tensor:
        """A parameter; its elements are small integers, or all a value."""
        least, most = (0, 2) if dtype == "i1" else (0 if dtype.startswith("ui") else -2, 4)
        numbers = self.numbers.integers(least, most, tuple(shape)) if value is None else np.full(tuple(shape), value)
        self.arrays.append(np.asarray(numbers).astype(numpy_dtype(dtype)))
        self.parameters.append(Tensor(f"%p{len(self.parameters)}", tuple(shape), dtype))
        return self.parameters[-1]

    def op(self, text: str, shape: Sequence[int], dtype: str) -> Tensor:
        """A new value that an op makes."""
        result = Tensor(f"%v{len(self.lines)}", tuple(shape), dtype)
        self.lines.append(f"{result.name} = {text}")
        return result

    def constant(self, value: int, dtype: str) -> Tensor:
        """A scalar constant.

        The zero of f8E8M0FNU is 2^-127, a subnormal number of f32. XLA:CPU computes with such as with zeros, which are
        NaNs there: `test_the_least_power_of_two_is_no_zero` has what StableHLO says.
        """
        value = max(value, 1) if dtype == "f8E8M0FNU" else value
        text = str(bool(value)).lower() if dtype == "i1" else str(value) if is_integer(dtype) else f"{value}.0"
        return self.op(f"stablehlo.constant dense<{text}> : tensor<{dtype}>", (), dtype)

    def value(self) -> Tensor:
        """A value; later ones and parameters are likelier."""
        return self.random.choice([*self.values, *self.values[-2:], self.values[0]])

    def step(self) -> None:
        """Add an op."""
        ops: list[Callable[[Tensor], Tensor | None]] = [
            *(self.reshape, self.transpose, self.reverse, self.slice, self.pad, self.concatenate, self.broadcast),
            *(self.dynamic_slice, self.dynamic_slice, self.dynamic_update, self.gather, self.unary, self.binary),
            *(self.binary, self.select),
        ]
        output = self.random.choice(ops)(self.value())
        if output is not None and prod(output.shape) <= MOST_ELEMENTS:
            self.values.append(output)

    # Elementwise ops

    def unary(self, x: Tensor) -> Tensor:
        """The negative or absolute value; the opposite of bits."""
        names = ("not",) if x.dtype == "i1" else ("negate", "abs") if not x.dtype.startswith("ui") else ("negate",)
        return self.op(f"stablehlo.{self.random.choice(names)} {x.name} : {x.type}", x.shape, x.dtype)

    def binary(self, x: Tensor) -> Tensor:
        """A sum, an extremum or the like of two values of one shape."""
        others = [item for item in self.values if item.shape == x.shape]
        return self.combined(x, self.random.choice(others))

    def combined(self, x: Tensor, y: Tensor) -> Tensor:
        """A sum, an extremum or the like."""
        names = ["maximum", "minimum"]
        names += ["and", "or", "xor"] if is_integer(x.dtype) else []
        names += ["add"] if x.dtype != "i1" else []
        names += ["subtract"] if x.dtype != "i1" else []
        name = self.random.choice(names)
        return self.op(f"stablehlo.{name} {x.name}, {y.name} : {x.type}", x.shape, x.dtype)

    def select(self, x: Tensor) -> Tensor:
        """One of two values, by a comparison with a third."""
        y, z = (self.random.choice([item for item in self.values if item.shape == x.shape]) for _ in range(2))
        bools = type_of(x.shape, "i1")
        greater = self.op(f"stablehlo.compare GT, {x.name}, {z.name} : ({x.type}, {x.type}) -> {bools}", x.shape, "i1")
        text = f"stablehlo.select {greater.name}, {x.name}, {y.name} : {bools}, {x.type}"
        return self.op(text, x.shape, x.dtype)

    # Ops that move elements

    def regrouped(self, count: int) -> tuple[int, ...]:
        """Another shape with as many elements."""
        sizes: list[int] = []
        while count > 1 and len(sizes) < 2:
            divisors = [size for size in range(1, count + 1) if count % size == 0]
            sizes.append(self.random.choice(divisors))
            count //= sizes[-1]
        return (*sizes, count)

    def reshape(self, x: Tensor) -> Tensor:
        """A reshape."""
        return self.reshaped(x, self.regrouped(prod(x.shape)))

    def reshaped(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """A reshape to a shape."""
        return self.op(f"stablehlo.reshape {x.name} : ({x.type}) -> {type_of(shape, x.dtype)}", shape, x.dtype)

    def transpose(self, x: Tensor) -> Tensor:
        """A transpose."""
        order = self.random.sample(range(len(x.shape)), len(x.shape))
        shape = [x.shape[number] for number in order]
        text = f"stablehlo.transpose {x.name}, dims = {order} : ({x.type}) -> {type_of(shape, x.dtype)}"
        return self.op(text, shape, x.dtype)

    def reverse(self, x: Tensor) -> Tensor:
        """A reversal along some dimensions."""
        dims = [number for number in range(len(x.shape)) if self.random.random() < 0.6]
        return self.op(f"stablehlo.reverse {x.name}, dims = {dims} : {x.type}", x.shape, x.dtype)

    def slice(self, x: Tensor) -> Tensor:
        """A slice with steps."""
        ranges, shape = [], []
        for size in x.shape:
            start = self.random.randrange(size)
            stop, step = self.random.randint(start + 1, size), self.random.choice((1, 1, 2, 3))
            ranges.append(f"{start}:{stop}:{step}")
            shape.append(-(-(stop - start) // step))
        text = f"stablehlo.slice {x.name} [{', '.join(ranges)}] : ({x.type}) -> {type_of(shape, x.dtype)}"
        return self.op(text, shape, x.dtype)

    def pad(self, x: Tensor) -> Tensor | None:
        """Padding at both ends, which may cut, and between."""
        low, high, interior = (
            [self.random.choice(choices) for _ in x.shape] for choices in ((-1, 0, 0, 2), (-1, 0, 1, 3), (0, 0, 0, 1))
        )
        sizes = zip(x.shape, low, high, interior, strict=True)
        shape = [before + size + (size - 1) * inner + after for size, before, after, inner in sizes]
        if not x.shape or min(shape) <= 0:
            return None
        value = self.constant(self.random.randrange(2), x.dtype)
        kinds = f"({x.type}, {value.type}) -> {type_of(shape, x.dtype)}"
        text = f"stablehlo.pad {x.name}, {value.name}, low = {low}, high = {high}, interior = {interior} : {kinds}"
        return self.op(text, shape, x.dtype)

    def concatenate(self, x: Tensor) -> Tensor | None:
        """Some values one behind the other."""
        if not x.shape:
            return None
        dim = self.random.randrange(len(x.shape))

        def fits(y: Tensor) -> bool:
            pairs = enumerate(zip(x.shape, y.shape, strict=False))
            return len(y.shape) == len(x.shape) and all(left == right or n == dim for n, (left, right) in pairs)

        parts = [
            x,
            *(self.random.choice([y for y in self.values if fits(y)]) for _ in range(self.random.randint(1, 4))),
        ]
        shape = list(x.shape)
        shape[dim] = sum(part.shape[dim] for part in parts)
        names, types = (", ".join(items) for items in zip(*((part.name, part.type) for part in parts), strict=True))
        text = f"stablehlo.concatenate {names}, dim = {dim} : ({types}) -> {type_of(shape, x.dtype)}"
        return self.op(text, shape, x.dtype)

    def broadcast(self, x: Tensor) -> Tensor:
        """A broadcast along a new dimension."""
        place = self.random.randint(0, len(x.shape))
        shape = [*x.shape[:place], self.random.choice((1, 2, 3)), *x.shape[place:]]
        dims = [number for number in range(len(shape)) if number != place]
        text = f"stablehlo.broadcast_in_dim {x.name}, dims = {dims} : ({x.type}) -> {type_of(shape, x.dtype)}"
        return self.op(text, shape, x.dtype)

    # Ops that read at run-time starts

    def part_of(self, shape: Sequence[int]) -> list[int]:
        """The shape of a part of a shape."""
        return [self.random.choice((size, self.random.randint(1, size))) for size in shape]

    def starts_for(self, rank: int) -> list[Tensor]:
        """A start per dimension."""
        return [self.random.choice(self.starts) for _ in range(rank)]

    def sliced(self, x: Tensor, shape: Sequence[int], starts: Sequence[Tensor]) -> Tensor:
        """A slice at run-time starts."""
        names = ", ".join(item.name for item in (x, *starts))
        types = ", ".join(item.type for item in (x, *starts))
        result = type_of(shape, x.dtype)
        text = f"stablehlo.dynamic_slice {names}, sizes = {[*shape]} : ({types}) -> {result}"
        return self.op(text, shape, x.dtype)

    def dynamic_slice(self, x: Tensor) -> Tensor | None:
        """A slice at run-time starts."""
        return self.sliced(x, self.part_of(x.shape), self.starts_for(len(x.shape))) if x.shape else None

    def updated(self, x: Tensor, update: Tensor, starts: Sequence[Tensor]) -> Tensor:
        """An update at run-time starts."""
        operands = (x, update, *starts)
        names, types = (", ".join(items) for items in zip(*((item.name, item.type) for item in operands), strict=True))
        return self.op(f"stablehlo.dynamic_update_slice {names} : ({types}) -> {x.type}", x.shape, x.dtype)

    def fitting(self, x: Tensor, starts: Sequence[Tensor], shape: Sequence[int]) -> Tensor:
        """A value of a shape, mostly computed from slices of another value, at its own starts or others."""
        same_shape = [item for item in self.values if list(item.shape) == list(shape)]
        if same_shape and self.random.random() < 0.2:
            return self.random.choice(same_shape)
        start_indices = [*starts] if self.random.random() < 0.5 else self.starts_for(len(x.shape))
        sources = [item for item in self.values if item.shape == x.shape]
        source = x if self.random.random() < 0.7 else self.random.choice(sources)
        part = self.sliced(source, shape, start_indices)
        for _ in range(self.random.randint(0, 2)):
            kind = self.random.choice((self.unary, self.reverse, self.regroup_and_back, self.doubled))
            part = kind(part)
        return part

    def regroup_and_back(self, x: Tensor) -> Tensor:
        """A reshape and the reshape back."""
        return self.reshaped(self.reshape(x), x.shape)

    def doubled(self, x: Tensor) -> Tensor:
        """A value combined with itself."""
        return self.combined(x, x)

    def dynamic_update(self, x: Tensor) -> Tensor | None:
        """An update at run-time starts."""
        if not x.shape:
            return None
        starts, shape = self.starts_for(len(x.shape)), self.part_of(x.shape)
        return self.updated(x, self.fitting(x, starts, shape), starts)

    def indices(self, count: int, columns: int, least: int, most: int, *, is_sorted: bool = False) -> Tensor:
        """A parameter of indices."""
        self.parameter((count, columns), "i32")
        numbers = self.numbers.integers(least, most + 1, (count, columns)).astype(np.int32)
        self.arrays[-1] = numbers[np.lexsort(numbers.T[::-1])] if is_sorted else numbers
        return self.parameters[-1]

    def gather_of_form(self, x: Tensor) -> Tensor:
        """Slices at indices, in any form."""
        form = random_form(self.random, x.shape, (1, 2, 3, 5))
        indices = self.indices_of_form(form, -2, max(x.shape) + 2)
        text = (
            f'"stablehlo.gather"({x.name}, {indices.name}) <{{dimension_numbers = #stablehlo.gather<{form.gather}>, '
            f"slice_sizes = array<i64: {', '.join(map(str, form.sizes))}>}}> : "
            f"({x.type}, {indices.type}) -> {type_of(form.result_shape, x.dtype)}"
        )
        return self.op(text, form.result_shape, x.dtype)

    def indices_of_form(self, form: IndexForm, least: int, most: int) -> Tensor:
        """A parameter of indices."""
        self.parameter(form.indices_shape, "i32")
        self.arrays[-1] = self.numbers.integers(least, most + 1, form.indices_shape).astype(np.int32)
        return self.parameters[-1]

    def gather(self, x: Tensor) -> Tensor | None:
        """Slices at indices, in the canonical form or another one."""
        if not x.shape:
            return None
        if self.random.random() < 0.6:
            return self.gather_of_form(x)
        columns, count = self.random.randint(1, len(x.shape)), self.random.choice((1, 2, 3, 5))
        sizes = self.part_of(x.shape)
        indices = self.indices(count, columns, -2, max(x.shape) + 2)
        shape = (count, *sizes)
        numbers = (
            f"offset_dims = {[*range(1, len(shape))]}, start_index_map = {[*range(columns)]}, index_vector_dim = 1"
        )
        text = (
            f'"stablehlo.gather"({x.name}, {indices.name}) <{{dimension_numbers = #stablehlo.gather<{numbers}>, '
            f"slice_sizes = array<i64: {', '.join(map(str, sizes))}>}}> : "
            f"({x.type}, {indices.type}) -> {type_of(shape, x.dtype)}"
        )
        return self.op(text, shape, x.dtype)

    # Roots

    def move(self) -> list[Tensor]:
        """The last value."""
        return [self.values[-1]]

    def several(self) -> list[Tensor]:
        """Some values of one shape, or updates of several parameters."""
        if self.random.random() < 0.5:
            updates = [self.dynamic_update(item) for item in self.values[:3] if item in self.parameters]
            actual = [item for item in updates if item is not None]
            if actual:
                return [item for item in actual if item.shape == actual[0].shape]
        last = self.values[-1]
        return [last, *[item for item in self.values[:-1] if item.shape == last.shape][:2]]

    def update(self) -> list[Tensor]:
        """An update of a parameter, some behind each other, or reshaped."""
        x: Tensor = self.random.choice([item for item in self.values if item in self.parameters])
        for _ in range(self.random.choice((1, 1, 1, 2))):
            x = self.dynamic_update(x) or x
        return [self.reshape(x) if self.random.random() < 0.2 else x]

    def scatter_of_form(self) -> list[Tensor]:
        """A scatter in any form into a parameter, with updates that may be computed from it; sometimes into two."""
        x: Tensor = self.random.choice([item for item in self.values if item in self.parameters])
        if not x.shape:
            return [x]
        form = random_form(self.random, x.shape, (1, 3, 8, 40))
        if prod(form.result_shape) > 4 * MOST_ELEMENTS:
            return [x]
        indices = self.indices_of_form(form, -1, max(x.shape))
        operands = [x, *([self.parameter(x.shape, x.dtype)] if self.random.random() < 0.2 else [])]
        updates = [self.updates_of_form(form, item) for item in operands]
        names = ("maximum", "minimum", *(("add", "add") if is_exact(x.dtype) else ()))
        scalar, count = f"tensor<{x.dtype}>", len(operands)
        arguments = [f"%{letter}{number}" for letter in "ab" for number in range(count)]
        body = [
            f"%c{number} = stablehlo.{self.random.choice(names)} %a{number}, %b{number} : {scalar}"
            for number in range(count)
        ]
        returned = ", ".join(f"%c{number}" for number in range(count))
        all_operands = (*operands, indices, *updates)
        results, scalars = ", ".join(item.type for item in operands), ", ".join([scalar] * count)
        text = (
            f'"stablehlo.scatter"({", ".join(item.name for item in all_operands)}) <{{scatter_dimension_numbers = '
            f"#stablehlo.scatter<{form.scatter}>}}> ({{\n"
            f"    ^bb0({', '.join(f'{name}: {scalar}' for name in arguments)}):\n      "
            + "\n      ".join([*body, f"stablehlo.return {returned} : {scalars}"])
            + f"\n  }}) : ({', '.join(item.type for item in all_operands)}) -> ({results})"
        )
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name}{f':{count}' if count > 1 else ''} = {text}")
        several = [f"{name}#{number}" for number in range(count)] if count > 1 else [name]
        return [Tensor(item, x.shape, x.dtype) for item in several]

    def updates_of_form(self, form: IndexForm, x: Tensor) -> Tensor:
        """Updates, sometimes gathered from the operand itself."""
        if self.random.random() < 0.3:
            indices = self.indices_of_form(form, -1, max(x.shape))
            text = (
                f'"stablehlo.gather"({x.name}, {indices.name}) <{{dimension_numbers = '
                f"#stablehlo.gather<{form.gather}>, slice_sizes = array<i64: {', '.join(map(str, form.sizes))}>}}> : "
                f"({x.type}, {indices.type}) -> {type_of(form.result_shape, x.dtype)}"
            )
            return self.op(text, form.result_shape, x.dtype)
        return self.parameter(form.result_shape, x.dtype)

    def select_and_scatter(self) -> list[Tensor]:
        """A gradient of a maximum over windows without ties.

        XLA:CPU visits some windows by columns, whose first one of equal elements is another one than by rows. StableHLO
        goes by rows: `test_windows_give_their_source_to_the_element_they_select` has ties.
        """
        x = self.value()
        if not x.shape or not is_exact(x.dtype) or prod(x.shape) > 1 << (int(x.dtype.lstrip("suif")) - 1):
            return [x]
        x = self.parameter(x.shape, x.dtype)
        self.arrays[-1] = self.numbers.permutation(prod(x.shape)).reshape(x.shape).astype(self.arrays[-1].dtype)
        for _ in range(self.random.randint(0, 2)):
            x = self.random.choice((self.reverse, self.transpose, self.reshape))(x)
        sizes = [self.random.randint(1, min(3, size)) for size in x.shape]
        strides = [self.random.randint(1, 3) for _ in x.shape]
        padding = [(self.random.randint(0, size - 1), self.random.randint(0, size - 1)) for size in sizes]
        shape = [
            (size + low + high - window) // stride + 1
            for size, window, stride, (low, high) in zip(x.shape, sizes, strides, padding, strict=True)
        ]
        source, init = self.parameter(shape, x.dtype), self.constant(self.random.randrange(3), x.dtype)
        scalar = f"tensor<{x.dtype}>"
        direction = self.random.choice(("GE", "GT", "LE"))
        text = (
            f'"stablehlo.select_and_scatter"({x.name}, {source.name}, {init.name}) <{{window_dimensions = '
            f"array<i64: {', '.join(map(str, sizes))}>, window_strides = array<i64: {', '.join(map(str, strides))}>, "
            f"padding = dense<{[list(pair) for pair in padding]}> : tensor<{len(sizes)}x2xi64>}}> ({{\n"
            f"    ^bb0(%a: {scalar}, %b: {scalar}):\n"
            f"      %c = stablehlo.compare {direction}, %a, %b : ({scalar}, {scalar}) -> tensor<i1>\n"
            f"      stablehlo.return %c : tensor<i1>\n  }}, {{\n    ^bb0(%a: {scalar}, %b: {scalar}):\n"
            f"      %c = stablehlo.add %a, %b : {scalar}\n      stablehlo.return %c : {scalar}\n  }}) : "
            f"({x.type}, {source.type}, {init.type}) -> {x.type}"
        )
        return [self.op(text, x.shape, x.dtype)]

    def scatter(self) -> list[Tensor]:
        """A scatter into a parameter, in the canonical form or another one."""
        if self.random.random() < 0.5:
            return self.scatter_of_form()
        x = self.random.choice([item for item in self.values if item in self.parameters])
        columns = self.random.randint(1, len(x.shape))
        count = self.random.choice((1, 3, 8, 40, 600))
        window = self.part_of(x.shape)
        if count * prod(window) > 4 * MOST_ELEMENTS:
            count = 3
        is_sorted = self.random.random() < 0.5
        indices = self.indices(count, columns, -1, max(x.shape), is_sorted=is_sorted)
        updates = self.parameter((count, *window), x.dtype)
        if self.random.random() < 0.3:
            ones = [item for item in self.values if prod(item.shape) == prod(window)] or [x]
            if prod(ones[0].shape) == prod(window):
                single = self.reshaped(self.random.choice(ones), (1, *window))
                dims = [*range(1 + len(window))]
                kinds = f"({type_of(window, x.dtype)}) -> {updates.type}"
                flat = self.reshaped(single, window)
                text = f"stablehlo.broadcast_in_dim {flat.name}, dims = {dims[1:]} : {kinds}"
                updates = self.op(text, updates.shape, x.dtype)
        body = self.random.choice(("maximum", "minimum", *(("add", "add") if is_exact(x.dtype) else ())))
        scalar = f"tensor<{x.dtype}>"
        numbers = (
            f"update_window_dims = {[*range(1, 1 + len(window))]}, scatter_dims_to_operand_dims = {[*range(columns)]}, "
            "index_vector_dim = 1"
        )
        text = (
            f'"stablehlo.scatter"({x.name}, {indices.name}, {updates.name}) <{{indices_are_sorted = '
            f"{str(is_sorted).lower()}, scatter_dimension_numbers = #stablehlo.scatter<{numbers}>}}> ({{\n"
            f"    ^bb0(%a: {scalar}, %b: {scalar}):\n      %c = stablehlo.{body} %a, %b : {scalar}\n"
            f"      stablehlo.return %c : {scalar}\n  }}) : ({x.type}, {indices.type}, {updates.type}) -> {x.type}"
        )
        return [self.op(text, x.shape, x.dtype)]

    def reduce(self) -> list[Tensor]:
        """A reduction with an initial value that is a constant or a parameter, and often something behind it."""
        x = self.value()
        if not x.shape:
            return [x]
        bodies = ["maximum", "minimum", *(("and", "or", "xor") if is_integer(x.dtype) else ())]
        bodies += ["add", "multiply", "both"] if is_integer(x.dtype) and x.dtype != "i1" else []
        bodies += ["add"] if is_exact(x.dtype) else []
        body = self.random.choice(bodies)
        dims = sorted(self.random.sample(range(len(x.shape)), self.random.randint(1, len(x.shape))))
        shape = [size for number, size in enumerate(x.shape) if number not in dims]
        value = self.random.randrange(4) if x.dtype != "i1" else self.random.randrange(2)
        init = self.constant(value, x.dtype) if self.random.random() < 0.6 else self.parameter((), x.dtype, value)
        text = (
            f'"stablehlo.reduce"({x.name}, {init.name}) '
            f"<{{dimensions = array<i64: {', '.join(map(str, dims))}>}}> ({{\n"
            f"    ^bb0(%a: {init.type}, %b: {init.type}):\n{combiner(body, init.type)}"
            f"  }}) : ({x.type}, {init.type}) -> {type_of(shape, x.dtype)}"
        )
        result = self.op(text, shape, x.dtype)
        return [self.unary(result) if self.random.random() < 0.3 else result]


def combiner(body: str, scalar: str) -> str:
    """The ops of a region that combines ``%a`` and ``%b``."""
    lines = {
        # Associative and commutative, with a neutral element of its own: (1 + a)(1 + b) - 1.
        "both": ["%p = stablehlo.multiply %a, %b", "%q = stablehlo.add %p, %a", "%c = stablehlo.add %q, %b"],
    }.get(body, [f"%c = stablehlo.{body} %a, %b"])
    return "".join(f"      {line} : {scalar}\n" for line in lines) + f"      stablehlo.return %c : {scalar}\n"
