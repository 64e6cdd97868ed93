"""Writer of the operators of PyTorch that stand in for an op, with the shardings of their results."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod
from typing import Any

from attrs import evolve

from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.types import TensorType, static_shape
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import CLOSED, TensorSharding
from shardy_py.torch.frontend.calls import OPERAND_NAMES, POINTWISE
from shardy_py.torch.frontend.types import DTYPES

SHORT = ("f16", "bf16")
"""The element types whose sums are computed in single precision."""


class OperatorWriter:
    """Writes operators before an op.

    Attributes:
        program: The program.
        op: The op.
        names: Value id to the name of the node that makes it; gets the new values.
        known_totals: Value id to a dimension and the sum along it, of values whose sums need no communication.
    """

    def __init__(
        self, program: Program, op: Op, names: dict[int, str], known_totals: dict[int, tuple[int, Value]]
    ) -> None:
        self.program = program
        self.op = op
        self.names = names
        self.known_totals = known_totals
        self._base = next((names[value.id] for value in op.results if value.id in names), "").partition("#")[0]

    def operand(self, name: str) -> Value | None:
        """Return the operand of an argument, None where it is no tensor."""
        names = self.op.attributes.get(OPERAND_NAMES, ())
        return self.op.operands[names.index(name)] if name in names else None

    def tensor(self, name: str) -> Value:
        """Return the operand of an argument that is always a tensor."""
        operand = self.operand(name)
        assert operand is not None, f"{self.op.name} has the operand {name}"
        return operand

    def dims(self, rank: int, *, name: str = "dim", default: Any = None) -> tuple[int, ...]:
        """Return the dimensions that an argument names; all where it names none."""
        argument = self.op.attributes.get(name, default)
        listed = (argument,) if isinstance(argument, int) else tuple(argument or range(rank))
        return tuple(dim % max(rank, 1) for dim in listed) if rank else ()

    def is_cut(self, value: Value, dims: Collection[int]) -> bool:
        """Return whether a value is sharded along one of some dimensions."""
        return any(self.parts(value, dim) > 1 for dim in dims)

    def parts(self, value: Value, dim: int) -> int:
        """Return the number of parts of a dimension."""
        sharding = self.program.shardings.get(value.id)
        if sharding is None:
            return 1
        mesh = sharding.mesh if isinstance(sharding.mesh, Mesh) else self.program.meshes[sharding.mesh]
        return sharding.of_dimension(dim).sharded_size(mesh)

    def call(
        self, name: str, operands: Mapping[str, Value], type_: TensorType, sharding: TensorSharding | None, **more: Any
    ) -> Value:
        """Return the result of an operator of PyTorch."""
        return self.calls(name, operands, [type_], [sharding], **more)[0]

    def calls(
        self,
        name: str,
        operands: Mapping[str, Value],
        types: Sequence[TensorType],
        shardings: Sequence[TensorSharding | None],
        **more: Any,
    ) -> list[Value]:
        """Return the results of an operator of PyTorch."""
        attributes = {
            OPERAND_NAMES: tuple(operands),
            **{key: value for key, value in more.items() if value is not None},
        }
        op = Op(self.program, f"aten.{name}", tuple(operands.values()), types, attributes)
        assert self.op.parent is not None, "the op is in a block"
        self.op.parent.insert_before(self.op, op)
        for number, (value, sharding) in enumerate(zip(op.results, shardings, strict=True)):
            if sharding is not None:
                self.program.shardings[value.id] = sharding
            if self._base:
                suffix = f"#{number}" if len(types) > 1 else ""
                self.names[value.id] = f"{self._base}/{name.split('.')[0]}{suffix}"
        return list(op.results)

    def pointwise(self, name: str, element_type: str | None = None, /, **arguments: Any) -> Value:
        """Return what an operator on elements gives; numbers among the arguments stay numbers."""
        operands = {key: item for key, item in arguments.items() if isinstance(item, Value)}
        more = {key: item for key, item in arguments.items() if not isinstance(item, Value)}
        values = list(operands.values())
        shape = _broadcast([shape_of(value) for value in values])
        widest = max(values, key=lambda value: (shape_of(value) == shape, len(shape_of(value))))
        wide = next((v for v in values if shape_of(v) == shape and self.is_cut(v, range(len(shape)))), widest)
        type_ = TensorType(shape, element_type or _element_type(values[0]))
        sharding = self.program.shardings.get(wide.id) if shape_of(wide) == shape else None
        return self.call(name, operands, type_, sharding, **{POINTWISE: True}, **more)

    def reduced(self, name: str, value: Value, dims: Sequence[int], *, keepdim: bool = True) -> Value:
        """Return a reduction along some dimensions, such as ``sum.dim_IntList`` or ``amax.default``."""
        shape = shape_of(value)
        reduced_dims = set(dims)
        result_shape = [
            1 if dim in reduced_dims else size for dim, size in enumerate(shape) if keepdim or dim not in reduced_dims
        ]
        sharding = self.program.shardings.get(value.id)
        if sharding is not None:
            dim_shardings = tuple(
                CLOSED if dim in reduced_dims else item
                for dim, item in enumerate(sharding.dim_shardings)
                if keepdim or dim not in reduced_dims
            )
            sharding = evolve(sharding, dim_shardings=dim_shardings)
        type_ = TensorType(tuple(result_shape), _element_type(value))
        return self.call(name, {"self": value}, type_, sharding, dim=tuple(sorted(reduced_dims)), keepdim=keepdim)

    def total(self, value: Value, dims: Sequence[int], *, keepdim: bool = True) -> Value:
        """Return a sum along some dimensions."""
        dim, known = self.known_totals.get(value.id, (None, value))
        if keepdim and [dim] == list(dims):
            return known
        return self.reduced("sum.dim_IntList", value, dims, keepdim=keepdim)

    def cast(self, value: Value, element_type: str) -> Value:
        """Return a value in another element type."""
        if _element_type(value) == element_type:
            return value
        type_ = TensorType(shape_of(value), element_type)
        sharding = self.program.shardings.get(value.id)
        dtype = f"torch.{DTYPES[element_type]}"
        result = self.call("_to_copy.default", {"self": value}, type_, sharding, dtype=dtype)
        if value.id in self.known_totals:
            dim, known = self.known_totals[value.id]
            self.known_totals[result.id] = dim, self.cast(known, element_type)
        return result

    def widened(self, value: Value) -> Value:
        """Return a value in single precision where its element type is a short one."""
        return self.cast(value, "f32") if _element_type(value) in SHORT else value

    def squeezed(self, value: Value, dims: Sequence[int]) -> Value:
        """Return a value without some dimensions, whose size is 1."""
        shape = shape_of(value)
        sharding = self.program.shardings.get(value.id)
        if sharding is not None:
            dim_shardings = tuple(item for dim, item in enumerate(sharding.dim_shardings) if dim not in dims)
            sharding = evolve(sharding, dim_shardings=dim_shardings)
        type_ = TensorType(tuple(size for dim, size in enumerate(shape) if dim not in dims), _element_type(value))
        return self.call("squeeze.dims", {"self": value}, type_, sharding, dim=tuple(dims))

    def unsqueezed(self, value: Value, dim: int) -> Value:
        """Return a value with a further dimension of size 1."""
        shape = list(shape_of(value))
        shape.insert(dim, 1)
        sharding = self.program.shardings.get(value.id)
        if sharding is not None:
            items = list(sharding.dim_shardings)
            items.insert(dim, CLOSED)
            sharding = evolve(sharding, dim_shardings=tuple(items))
        return self.call(
            "unsqueeze.default", {"self": value}, TensorType(tuple(shape), _element_type(value)), sharding, dim=dim
        )

    def numbers(self, like: Value, dim: int, rank: int | None = None) -> Value:
        """Return the numbers of the elements along a dimension, as a tensor of the rank of a value.

        Args:
            like: The value, whose sharding the numbers take.
            dim: The dimension.
            rank: The rank of the result, where the numbers are along its last dimension; by default that of the value.
        """
        size, sharding = shape_of(like)[dim], self.program.shardings.get(like.id)
        line = None if sharding is None else evolve(sharding, dim_shardings=(sharding.dim_shardings[dim],))
        numbers = self.call("arange.default", {}, TensorType((size,), "i64"), line, end=size, device="cpu")
        for place in range(len(shape_of(like)) if rank is None else rank):
            if place < dim:
                numbers = self.unsqueezed(numbers, 0)
            elif place > dim:
                numbers = self.unsqueezed(numbers, len(shape_of(numbers)))
        return numbers

    def replace(self, results: Sequence[Value]) -> None:
        """Put values in the places of the results of the op, and erase it."""
        for old, new in zip(self.op.results, results, strict=True):
            sharding = self.program.shardings.get(old.id)
            if sharding is not None:
                self.program.shardings[new.id] = sharding
            if old.id in self.names:
                self.names[new.id] = self.names[old.id]
            old.replace_all_uses_with(new)
        self.op.erase()


def shape_of(value: Value) -> tuple[int, ...]:
    """Return the sizes of a value."""
    return static_shape(value.type) or ()


def size_of(value: Value, dims: Sequence[int]) -> int:
    """Return the number of elements along some dimensions."""
    return prod(shape_of(value)[dim] for dim in dims)


def element_type_of(value: Value) -> str:
    """Return the element type of a value."""
    return _element_type(value)


def _element_type(value: Value) -> str:
    assert isinstance(value.type, TensorType), "operands of operators are tensors"
    return value.type.element_type


def _broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(next((size for size in sizes if size != 1), 1) for sizes in zip(*padded, strict=True))
