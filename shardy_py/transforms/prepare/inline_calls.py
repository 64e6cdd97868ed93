"""Put the bodies of functions in the places of their calls, as XLA does before it propagates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar

from attrs import field

from shardy_py.ir.graph.attributes import symbols_in
from shardy_py.ir.graph.graphs import callee_of, callers_first
from shardy_py.ir.graph.op_names import CALL, CONSTRAINT, NAMED_COMPUTATION
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.ir.graph.rewriting import clone_op
from shardy_py.ir.graph.shardings import complete_unless_maximal
from shardy_py.ir.graph.symbols import EXECUTION_THREAD
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.graph.walk import all_in_region, all_ops, enter_uses_anew, ops_named
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import NoFields, define

Border = Callable[[Op, Value, TensorSharding | None], Value]
"""Returns what stands for a value on the other side of a call."""

MAIN = "main"
VISIBILITY = "sym_visibility"

_NO_INLINE = "no_inline"
_KEEPING = frozenset((_NO_INLINE, "mhlo.frontend_attributes", EXECUTION_THREAD))
"""Attributes of a call or a function that would be lost with the call: where its body runs, or that it must stay."""


class InlineCallsPass(NoFields):
    """Replace every call by the body of its function, also calls inside of regions and of other functions.

    Shardings that a function asks for its arguments and results, and a call for its results, become sharding
    constraints; those without effect are dropped. Named computations are replaced by their bodies, too. Ops
    record the calls through which they came, which shows in their locations. Functions without another use are
    erased.

    Calls stay where they or their functions have ``no_inline``, frontend attributes or an execution thread, and where
    the function has no body or one of several blocks.
    """

    name: ClassVar[str] = "inline-calls"

    def run(self, program: Program, context: PassContext) -> None:
        """Inline the calls of all functions that remain.

        Raises:
            UnsupportedError: functions call each other in a circle.
            VerificationError: a function that does not exist is called.
        """
        if ops_named(program, CALL, NAMED_COMPUTATION):
            _inline_all(program, None)


def inline_explicit_calls(program: Program, at_border: Border) -> None:
    """Replace every call by the body of its function, in a program whose communication is explicit.

    Args:
        program: The program.
        at_border: Returns what stands for a value of the caller in the function, or the other way round. It takes the
            call, before which it may insert ops, the value, and the sharding that is wanted there, or None.

    Raises:
        UnsupportedError: functions call each other in a circle.
        VerificationError: a function that does not exist is called.
    """
    if ops_named(program, CALL):
        _inline_all(program, at_border)


def _inline_all(program: Program, at_border: Border | None) -> None:
    functions = program.functions
    order = callers_first(program)
    inlined = {name for name in map(callee_of, _inlinable(program, functions)) if name is not None}
    remaining = functions.keys() - inlined | _needed(program, functions)
    inliner = _Inliner(program, functions, at_border)
    # A caller comes before what it calls, so that bodies are copied as they were.
    for name in order:
        if name in remaining:
            inliner.inline_in(functions[name])
    for name, function in functions.items():
        if name not in remaining:
            function.erase()


def _inlinable(program: Program, functions: dict[str, Op]) -> Iterator[Op]:
    return (call for call in ops_named(program, CALL) if _is_inlinable(call, functions))


def _is_inlinable(call: Op, functions: dict[str, Op]) -> bool:
    function = functions[callee_of(call) or ""]
    if not function.regions or len(function.regions[0].blocks) != 1:
        return False
    return not any(name in op.attributes for op in (call, function) for name in _KEEPING)


def _needed(program: Program, functions: dict[str, Op]) -> set[str]:
    """Return the names of the functions that are more than called; without a main one, the public ones are, too."""
    needed = {MAIN} if MAIN in functions else {name for name, op in functions.items() if _is_public(op)}
    for op in all_ops(program):
        if op.name != CALL:
            needed.update(symbols_in(op.attributes))
        elif not _is_inlinable(op, functions):
            needed.add(callee_of(op) or "")
    return needed & functions.keys()


def _is_public(function: Op) -> bool:
    return function.attributes.get(VISIBILITY, "public") == "public"


@define
class _Inliner:
    """Puts bodies in the places of calls."""

    _program: Program
    _functions: dict[str, Op]
    _at_border: Border | None = None
    _meshes: dict[str, Mesh] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._meshes = self._program.meshes

    def inline_in(self, function: Op) -> None:
        """Inline all calls of a function, and those in the bodies that come into it."""
        # A stack instead of recursion, as chains of calls may be longer than Python's own.
        pending = _calls_in(op for region in function.regions for op in all_in_region(region))
        if not pending:
            return
        while pending:
            op = pending.pop()
            if op.parent is None:
                # It was in a named computation, whose copy has a copy of it.
                continue
            if op.name == NAMED_COMPUTATION:
                pending += _calls_in(self._inline(op, op, op.regions[0].block))
            elif _is_inlinable(op, self._functions):
                callee = self._functions[callee_of(op) or ""]
                pending += _calls_in(self._inline(op, callee, callee.regions[0].block))
        # Propagation follows uses in their order: that of a module in which the bodies were written there.
        enter_uses_anew(function)

    def _inline(self, call: Op, callee: Op, body: Block) -> list[Op]:
        """Replace a call, or a named computation, by a copy of a body; return the ops of the copy with all inside."""
        block, table = call.parent, self._program.shardings
        assert block is not None
        is_call = callee is not call
        if is_call and self._at_border is not None:
            arguments = [self._at_border(call, *pair) for pair in self._pairs(call.operands, body.arguments)]
            copies, returned = self._copy(call, body, arguments, is_call=True)
            for result, pair in zip(call.results, self._pairs(returned, callee.function_results), strict=True):
                result.replace_all_uses_with(self._at_border(call, *pair))
            call.erase()
            return copies
        wanted = complete_unless_maximal(table, call.results, self._meshes) if _any(table, call.results) else ()
        if is_call and not _any(table, call.results):
            wanted = complete_unless_maximal(table, callee.function_results, self._meshes)
        arguments = self._constrain(
            call, call.operands, complete_unless_maximal(table, body.arguments, self._meshes), is_call
        )
        copies, returned = self._copy(call, body, arguments, is_call=is_call)
        for result, value in zip(call.results, self._constrain(call, returned, wanted, is_call), strict=True):
            result.replace_all_uses_with(value)
        call.erase()
        return copies

    def _copy(
        self, call: Op, body: Block, arguments: Sequence[Value], *, is_call: bool
    ) -> tuple[list[Op], list[Value]]:
        """Insert a copy of a body before a call; return its ops with all inside, and what it returns."""
        mapping = {argument.id: value for argument, value in zip(body.arguments, arguments, strict=True)}
        copies: list[Op] = []
        assert call.parent is not None
        assert body.last is not None
        for op in body.ops:
            if op is body.last:
                break
            copy = clone_op(op, mapping)
            call.parent.insert_before(call, copy)
            copies += copy.walk()
        if is_call:
            self._program.call_sites.update((copy.id, call) for copy in copies)
        return copies, [mapping.get(value.id, value) for value in body.last.operands]

    def _pairs(self, values: Sequence[Value], others: Sequence[Value]) -> Iterator[tuple[Value, TensorSharding | None]]:
        """Yield values with the shardings of what stands for them on the other side of a call."""
        return zip(values, map(self._program.sharding, others), strict=True)

    def _constrain(
        self, call: Op, values: Sequence[Value], shardings: Sequence[TensorSharding], is_call: bool
    ) -> list[Value]:
        """Return values with constraints before a call, where the shardings say something."""
        if not shardings:
            return list(values)
        return [
            self._constraint(call, value, sharding, is_call) if _says_something(value, sharding) else value
            for value, sharding in zip(values, shardings, strict=True)
        ]

    def _constraint(self, call: Op, value: Value, sharding: TensorSharding, is_call: bool) -> Value:
        op = Op(self._program, CONSTRAINT, [value], [value.type], {"sharding": sharding})
        assert call.parent is not None
        call.parent.insert_before(call, op)
        self._program.shardings[op.results[0].id] = sharding
        if is_call:
            self._program.call_sites[op.id] = call
        return op.results[0]


def _calls_in(ops: Iterable[Op]) -> list[Op]:
    """Return the calls and named computations among ops, the first one last."""
    return [op for op in ops if op.name in (CALL, NAMED_COMPUTATION)][::-1]


def _any(table: dict[int, TensorSharding], values: Sequence[Value]) -> bool:
    return any(value.id in table for value in values)


def _says_something(value: Value, sharding: TensorSharding) -> bool:
    """Return whether a constraint with a sharding would keep propagation from anything."""
    if not isinstance(value.type, TensorType):
        return False
    return sharding != TensorSharding.fully_open(sharding.mesh, value.type.rank)
