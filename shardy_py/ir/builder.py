"""Writing programs in Python, for tests and for frontends of one's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.ir.attributes import Attribute, SymbolRef
from shardy_py.ir.graph import Block, Op, Program, Region, Value
from shardy_py.ir.types import Type, function_type
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.parse import parse_tensor_sharding
from shardy_py.sharding.tensor import TensorSharding, symbol


class Builder:
    """Builds a program op by op; uses are entered in the order in which MLIR enters them when it parses text.

    >>> from shardy_py.ir.types import tensor
    >>> b = Builder(mesh=Mesh.of(a=2))
    >>> with b.function("main", [tensor(8)]) as (x,):
    ...     b.shard(x, '[{"a"}]')
    ...     y = b.op("toy.neg", [x], [tensor(8)])
    ...     _ = b.return_(y)
    >>> [op.name for op in b.program.walk()]
    ['sdy.mesh', 'func.func', 'toy.neg', 'func.return']

    Args:
        mesh: The mesh named ``mesh``, which shardings given as ``[...]`` refer to.
        meshes: More meshes by name.
    """

    def __init__(self, *, mesh: Mesh | None = None, meshes: Mapping[str, Mesh] | None = None) -> None:
        self.program = Program()
        self._blocks: list[Block] = [self.program.body]
        named = ({"mesh": mesh} if mesh else {}) | dict(meshes or {})
        for name, value in named.items():
            self.mesh(name, value)

    def mesh(self, name: str, mesh: Mesh) -> Op:
        """Add a named mesh."""
        return self.program.body.append(Op(self.program, "sdy.mesh", attributes={"sym_name": name, "mesh": mesh}))

    @contextmanager
    def function(self, name: str, argument_types: Iterable[Type] = ()) -> Iterator[tuple[Value, ...]]:
        """Add a function and build its body inside the ``with``; `return_` ends it and fixes its results.

        Raises:
            VerificationError: the body does not end with `return_`.
        """
        op = self._new("func.func", attributes={"sym_name": name})
        self.program.body.append(op)
        with self._block(op, argument_types) as block:
            yield tuple(block.arguments)
        if block.terminator is None or block.terminator.name != "func.return":
            raise VerificationError(Diagnostic("missing-terminator", f"function {symbol(name)} has no return"))

    def declare(self, name: str, argument_types: Sequence[Type] = (), result_types: Sequence[Type] = ()) -> Op:
        """Add a function without a body."""
        op = self._new("func.func", attributes={"sym_name": name, "sym_visibility": "private"})
        op.add_region(Region())
        op.attributes["function_type"] = function_type(argument_types, result_types)
        self.program.new_function_results(op, result_types)
        return self.program.body.append(op)

    def return_(self, *values: Value, shardings: Sequence[str | TensorSharding | None] = ()) -> Op:
        """End the function at hand; its results are the given values.

        Args:
            values: The values returned.
            shardings: The shardings of the function's results, or none at all.
        """
        function = self._blocks[-1].parent_op
        if function is None or function.name != "func.func":
            raise VerificationError(Diagnostic("misplaced-return", "return_ outside a function", op="func.return"))
        op = self.emit("func.return", values)
        self.program.new_function_results(function, [value.type for value in values])
        for value, sharding in zip(function.function_results, shardings, strict=False):
            if sharding is not None:
                self.shard(value, sharding)
        return op

    def emit(
        self,
        name: str,
        operands: Iterable[Value] = (),
        result_types: Iterable[Type] = (),
        attributes: Mapping[str, Attribute] | None = None,
    ) -> Op:
        """Add an op without regions and return it."""
        return self._blocks[-1].append(Op(self.program, name, operands, result_types, dict(attributes or {})))

    def op(
        self,
        name: str,
        operands: Iterable[Value] = (),
        result_types: Iterable[Type] = (),
        attributes: Mapping[str, Attribute] | None = None,
        **more_attributes: Attribute,
    ) -> Any:
        """Add an op without regions.

        Args:
            name: The full name.
            operands: The operand values.
            result_types: One type per result.
            attributes: Attributes whose names are no identifiers, for example ``sdy.sharding``.
            more_attributes: The other attributes.

        Returns:
            The value of a single result, else the values of all results in a tuple.
        """
        op = self.emit(name, operands, result_types, {**(attributes or {}), **more_attributes})
        return op.results[0] if len(op.results) == 1 else tuple(op.results)

    def call(self, callee: str, operands: Iterable[Value], result_types: Iterable[Type]) -> Any:
        """Add a call of a function, which may be built later; returns as `op` does."""
        return self.op("func.call", operands, result_types, callee=SymbolRef(callee))

    def constrain(self, value: Value, sharding: str | TensorSharding) -> Value:
        """Add a sharding constraint and return its result."""
        parsed = self.sharding(sharding)
        result: Value = self.op("sdy.sharding_constraint", [value], [value.type], sharding=parsed)
        self.shard(result, parsed)
        return result

    @contextmanager
    def region_op(
        self,
        name: str,
        operands: Iterable[Value] = (),
        result_types: Iterable[Type] = (),
        attributes: Mapping[str, Attribute] | None = None,
        **more_attributes: Attribute,
    ) -> Iterator[Op]:
        """Add an op with regions; build them inside the ``with`` by `region`, in order.

        The op enters its uses at the end of the ``with``, after those of the ops in its regions.
        """
        op = self._new(name, operands, result_types, {**(attributes or {}), **more_attributes})
        self._blocks[-1].append(op)
        yield op
        op.register_uses()

    @contextmanager
    def region(self, op: Op, argument_types: Iterable[Type] = ()) -> Iterator[tuple[Value, ...]]:
        """Add a region of one block to an op and build it inside the ``with``."""
        with self._block(op, argument_types) as block:
            yield tuple(block.arguments)

    def shard(self, value: Value, sharding: str | TensorSharding) -> None:
        """Give a value a sharding, in the program's table.

        Args:
            value: The value.
            sharding: A sharding or its text: ``<@mesh, [...]>``, or ``[...]`` over the mesh named ``mesh``.
        """
        self.program.shardings[value.id] = self.sharding(sharding)

    def sharding(self, text: str | TensorSharding) -> TensorSharding:
        """Return a sharding from its text, as in `shard`."""
        if isinstance(text, TensorSharding):
            return text
        return parse_tensor_sharding(f"<@mesh, {text}>" if text.startswith("[") else text)

    def _new(
        self,
        name: str,
        operands: Iterable[Value] = (),
        result_types: Iterable[Type] = (),
        attributes: dict[str, Attribute] | None = None,
    ) -> Op:
        return Op(self.program, name, operands, result_types, attributes, register_uses=False)

    @contextmanager
    def _block(self, op: Op, argument_types: Iterable[Type]) -> Iterator[Block]:
        block = Block(self.program, argument_types)
        op.add_region(Region([block]))
        self._blocks.append(block)
        try:
            yield block
        finally:
            self._blocks.pop()
