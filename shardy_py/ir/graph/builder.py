"""Build programs in Python, for tests and for new frontends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from shardy_py.ir.graph.attributes import Attribute, SymbolRef
from shardy_py.ir.graph.builder_checks import (
    check_attributes,
    check_mesh,
    check_name,
    check_operands,
    check_sharding,
    check_types,
    check_value,
    join_attributes,
    refuse,
)
from shardy_py.ir.graph.op_names import CALL, CONSTRAINT, FUNCTION, MESH, RETURN
from shardy_py.ir.graph.program import Block, Op, Program, Region, Value
from shardy_py.ir.graph.types import Type, function_type
from shardy_py.ir.graph.verify import MAX_REGION_DEPTH, verify
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.parse import parse_tensor_sharding
from shardy_py.sharding.tensor import TensorSharding, symbol
from shardy_py.support.arguments import shown


class Builder:
    """Builds a program op by op; `shardy_py.propagate` takes what `build` returns.

    Arguments are checked at once: an error is raised at the line that gives them. Uses are entered in
    the order in which MLIR enters them when it parses text, so that the program is the one that its text would be.

    >>> from shardy_py.ir.graph.types import tensor
    >>> b = Builder(mesh=Mesh.of(a=2))
    >>> with b.function("main", [tensor(8)]) as (x,):
    ...     b.shard(x, '[{"a"}]')
    ...     y = b.op("toy.neg", [x], [tensor(8)])
    ...     _ = b.return_(y)
    >>> [op.name for op in b.build().walk()]
    ['sdy.mesh', 'func.func', 'toy.neg', 'func.return']

    Args:
        mesh: The mesh named ``mesh``, which shardings given as ``[...]`` refer to; a `Mesh` or a mapping of axis sizes.
        meshes: More meshes by name.

    Raises:
        VerificationError: a mesh is not valid, or two have one name.
    """

    def __init__(
        self, *, mesh: Mesh | Mapping[str, int] | None = None, meshes: Mapping[str, Mesh] | None = None
    ) -> None:
        self.program = Program()
        self._blocks: list[Block] = [self.program.body]
        self._region_ops: list[Op] = []
        self._locations: dict[int, str] = {}
        self._location = ""
        locations = self._locations
        self.program.locate = lambda op: locations.get(op.id, "")
        if not isinstance(meshes, Mapping | None):
            raise refuse("invalid-mesh", f"meshes is {shown(meshes)}, not a mapping", hint='give {"mesh": {"a": 2}}')
        named = ({} if mesh is None else {"mesh": mesh}) | dict(meshes or {})
        for name, value in named.items():
            self.mesh(name, value)

    def build(self) -> Program:
        """Return the program, which may go on being built.

        Raises:
            VerificationError: a function is not complete, or a call does not fit its function; all problems are named.
        """
        verify(self.program)
        return self.program

    def mesh(self, name: str, mesh: Mesh | Mapping[str, int]) -> Op:
        """Add a named mesh.

        Raises:
            VerificationError: the mesh is not valid, or the name is taken.
        """
        new_mesh = check_mesh(name, mesh, self.program)
        return self.program.body.append(Op(self.program, MESH, attributes={"sym_name": name, "mesh": new_mesh}))

    @contextmanager
    def at(self, location: str) -> Iterator[None]:
        """Give the ops that are added inside the ``with`` a location, such as ``model.py:12``."""
        if not isinstance(location, str):
            raise refuse("invalid-location", f"the location is {shown(location)}, not a text", hint='"model.py:12"')
        before, self._location = self._location, location
        try:
            yield
        finally:
            self._location = before

    @contextmanager
    def function(self, name: str, argument_types: Iterable[Type] = ()) -> Iterator[tuple[Value, ...]]:
        """Add a function and build its body inside the ``with``; `return_` ends it and fixes its results.

        Raises:
            VerificationError: the name is taken, this is inside another function, or the body does not end with
                `return_`.
        """
        check_name(name, self.program)
        if len(self._blocks) > 1:
            hint = "end the other one first"
            raise refuse("misplaced-function", f"function {symbol(name)} is inside another one", hint=hint)
        op = self._new(FUNCTION, attributes={"sym_name": name})
        types = check_types(argument_types, op.name)
        self.program.body.append(op)
        with self._block(op, types) as block:
            yield tuple(block.arguments)
        if block.terminator is None or block.terminator.name != RETURN:
            hint = "end its body with return_"
            raise refuse("missing-terminator", f"function {symbol(name)} has no return", op=op.name, hint=hint)

    def declare(self, name: str, argument_types: Sequence[Type] = (), result_types: Sequence[Type] = ()) -> Op:
        """Add a function without a body.

        Raises:
            VerificationError: the name is taken, or a type is none.
        """
        check_name(name, self.program)
        arguments, results = check_types(argument_types, FUNCTION), check_types(result_types, FUNCTION)
        op = self._new(FUNCTION, attributes={"sym_name": name, "sym_visibility": "private"})
        op.add_region(Region())
        op.attributes["function_type"] = function_type(arguments, results)
        self.program.new_function_results(op, results)
        return self.program.body.append(op)

    def return_(self, *values: Value, shardings: Sequence[str | TensorSharding | None] = ()) -> Op:
        """End the function at hand; its results are the given values.

        Args:
            values: The values returned.
            shardings: One sharding or None for each of the function's results, or none at all.

        Raises:
            VerificationError: this is outside a function, or inside a region of one of its ops; a value cannot be seen
                here; there are not as many shardings as values, or one does not fit.
        """
        function = self._blocks[-1].parent_op
        if function is None or function.name != FUNCTION:
            raise refuse(
                "misplaced-return", "return_ outside a function", op=RETURN, hint="end regions by their own op"
            )
        if isinstance(shardings, str) or not isinstance(shardings, Sequence):
            message = f"shardings is {shown(shardings)}, not a list of shardings"
            raise refuse("sharding-count", message, op=RETURN, hint="give one for each value, None for those without")
        if shardings and len(shardings) != len(values):
            message = f"{len(shardings)} shardings are given for {len(values)} values"
            raise refuse("sharding-count", message, op=RETURN, hint="give one for each, None for those without")
        op = self.emit(RETURN, values)
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
        """Add an op without regions and return it; arguments and errors are those of `op`."""
        op = self._new(name, operands, result_types, attributes)
        op.register_uses()
        return self._blocks[-1].append(op)

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
            attributes: Attributes whose names are not identifiers, for example ``sdy.sharding``.
            more_attributes: The other attributes.

        Returns:
            The value of a single result, else the values of all results in a tuple.

        Raises:
            VerificationError: an operand is not a value, belongs to another program, or is defined in a region around
                which the op does not stand; a type or an attribute is none; the function has ended.
        """
        op = self.emit(name, operands, result_types, join_attributes(attributes, more_attributes))
        return op.results[0] if len(op.results) == 1 else tuple(op.results)

    def call(self, callee: str, operands: Iterable[Value], result_types: Iterable[Type]) -> Any:
        """Add a call of a function, which may be built later; returns as `op` does."""
        if not isinstance(callee, str):
            raise refuse(
                "invalid-symbol", f"{shown(callee)} is not the name of a function", op=CALL, hint="give a text"
            )
        return self.op(CALL, operands, result_types, callee=SymbolRef(callee))

    def constrain(self, value: Value, sharding: str | TensorSharding) -> Value:
        """Add a sharding constraint and return its result.

        Raises:
            VerificationError: the sharding does not fit the value or the mesh.
        """
        check_value(value, "the value", CONSTRAINT, self.program)
        parsed = self.sharding(sharding)
        check_sharding(value, parsed, self.program)
        result: Value = self.op(CONSTRAINT, [value], [value.type], sharding=parsed)
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

        The op enters its uses at the end of the ``with``, after those of the ops in its regions. Its results can be
        used after that only.
        """
        op = self._new(name, operands, result_types, join_attributes(attributes, more_attributes))
        self._blocks[-1].append(op)
        self._region_ops.append(op)
        try:
            yield op
        finally:
            self._region_ops.pop()
        op.register_uses()

    @contextmanager
    def region(self, op: Op, argument_types: Iterable[Type] = ()) -> Iterator[tuple[Value, ...]]:
        """Add a region with a single block to an op, and build it inside the ``with``.

        Raises:
            VerificationError: the op is not the one whose `region_op` is being built, or there are too many regions
                around it.
        """
        if not self._region_ops or self._region_ops[-1] is not op:
            hint = "build its regions inside the with of region_op"
            raise refuse("misplaced-region", f"{shown(op)} is not being built here", hint=hint)
        if len(self._blocks) > MAX_REGION_DEPTH:
            message = f"regions are nested more than {MAX_REGION_DEPTH} deep"
            raise refuse(
                "nested-too-deeply", message, op=op.name, hint="move what is inside to functions, and call them"
            )
        with self._block(op, check_types(argument_types, op.name)) as block:
            yield tuple(block.arguments)

    def shard(self, value: Value, sharding: str | TensorSharding) -> None:
        """Give a value a sharding, in the program's table; the last one given counts.

        Args:
            value: The value.
            sharding: A sharding or its text: ``<@mesh, [...]>``, or ``[...]`` over the mesh named ``mesh``.

        Raises:
            ParseError: the text is not a valid sharding.
            VerificationError: the program has no such mesh, the mesh no such axis, an axis is used twice, or the rank
                is not that of the value.
        """
        parsed = self.sharding(sharding)
        check_value(value, "the value", "", self.program)
        check_sharding(value, parsed, self.program)
        self.program.shardings[value.id] = parsed

    def sharding(self, text: str | TensorSharding) -> TensorSharding:
        """Return a sharding from its text, as in `shard`."""
        if isinstance(text, str):
            return parse_tensor_sharding(f"<@mesh, {text}>" if text.startswith("[") else text)
        return text

    def _new(
        self,
        name: str,
        operands: Iterable[Value] = (),
        result_types: Iterable[Type] = (),
        attributes: Mapping[str, Attribute] | None = None,
    ) -> Op:
        """Return an op that is in no block yet, after a check of its parts."""
        if not isinstance(name, str) or not name:
            raise refuse(
                "invalid-op-name", f"{shown(name)} is not the name of an op", hint='give its full name: "toy.add"'
            )
        last = self._blocks[-1].last
        if last is not None and last.name == RETURN:
            raise refuse("misplaced-op", "the function has ended with return_", op=name, hint="add the op before that")
        values = check_operands(operands, name, self.program, self._blocks)
        types = check_types(result_types, name)
        op = Op(self.program, name, values, types, check_attributes(attributes or {}, name), register_uses=False)
        if self._location:
            self._locations[op.id] = self._location
        return op

    @contextmanager
    def _block(self, op: Op, argument_types: Iterable[Type]) -> Iterator[Block]:
        block = Block(self.program, argument_types)
        op.add_region(Region([block]))
        self._blocks.append(block)
        try:
            yield block
        finally:
            self._blocks.pop()
