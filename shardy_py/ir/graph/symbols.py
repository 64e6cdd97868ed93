"""Symbols: named ops of a module, the names MLIR would give to new ones, and the functions among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from shardy_py.errors import Diagnostic, UnsupportedError, VerificationError
from shardy_py.ir.graph.attributes import SymbolRef
from shardy_py.ir.graph.graphs import call_graph, callee_of, check_no_recursion
from shardy_py.ir.graph.op_names import CALL, FUNCTION
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.walk import ops_named, outermost
from shardy_py.sharding.tensor import symbol

SYMBOL_NAME = "sym_name"
ORIGINAL_FUNCTION_NAME = "sdy.original_func_name"
EXECUTION_THREAD = "execution_thread"
_CALLS = (CALL,)


class SymbolTable:
    """The symbols of a program by name; a name that is taken gets a number, as MLIR's table of the same name does it.

    All names share one counter, which only grows: after ``f`` became ``f_0``, ``g`` becomes ``g_1``. So one table
    must be kept for as long as the reference keeps one, which is a pass.
    """

    __slots__ = ("_counter", "_ops", "_program")

    def __init__(self, program: Program) -> None:
        self._program = program
        self._counter = 0
        named = [(op.attributes.get(SYMBOL_NAME), op) for op in program.body.ops]
        self._ops: dict[str, Op] = {name: op for name, op in named if name is not None}

    def get(self, name: str) -> Op | None:
        """Return the op of a name, or None."""
        return self._ops.get(name)

    def function(self, name: str, call: Op) -> Op:
        """Return the function that a call calls by a name.

        Raises:
            VerificationError: there is no such function.
        """
        op = self._ops.get(name)
        if op is None or op.name != FUNCTION:
            message = f"there is no function {symbol(name)}"
            raise VerificationError(Diagnostic("unknown-function", message, location=call.location, op=call.name))
        return op

    def callee(self, call: Op) -> Op:
        """Return the function that a ``func.call`` calls.

        Raises:
            VerificationError: there is no such function.
        """
        name = callee_of(call) or ""
        op = self._ops.get(name)
        return op if op is not None and op.name == FUNCTION else self.function(name, call)

    def insert(self, op: Op) -> str:
        """Enter a new symbol, at the end of the module unless it stands there already.

        Returns:
            Its name, which is another one than before where that was taken.
        """
        if op.parent is None:
            self._program.body.append(op)
        wanted = op.attributes[SYMBOL_NAME]
        name = wanted
        while self._ops.setdefault(name, op) is not op:
            name = f"{wanted}_{self._counter}"
            self._counter += 1
        if name != wanted:
            op.attributes[SYMBOL_NAME] = name
        return name

    def erase(self, op: Op) -> None:
        """Erase a symbol; its name becomes free."""
        del self._ops[op.attributes[SYMBOL_NAME]]
        op.erase()


def original_function_name(function: Op) -> str:
    """Return the name of the function this is a copy of, its own where it is none."""
    return function.attributes.get(ORIGINAL_FUNCTION_NAME) or function.attributes[SYMBOL_NAME]


def set_callee(call: Op, name: str) -> None:
    """Make a ``func.call`` call the function of that name."""
    call.attributes["callee"] = SymbolRef(name, symbol(name))


def has_body(function: Op) -> bool:
    """Return whether a function is more than a declaration."""
    return bool(function.regions and function.regions[0].blocks)


def check_has_body(function: Op) -> None:
    """Check that a function is more than a declaration.

    Raises:
        UnsupportedError: it is not.
    """
    if not has_body(function):
        message = f"the function {symbol(function.attributes[SYMBOL_NAME])} has no body"
        hint = "give the module with its definition"
        raise UnsupportedError(Diagnostic("no-body", message, function.location, function.name, hint))


def calls_callees_first(program: Program) -> list[Op]:
    """Return all calls, those in a function after those in the functions it calls.

    Raises:
        UnsupportedError: functions call each other in a circle.
    """
    calls: list[Op] = []
    calls_in = calls_by_function(program)
    pending = {function.attributes[SYMBOL_NAME]: function for function in functions_callees_first(program)}
    for name, function in list(pending.items()):
        own_calls = calls_in.get(function, ())
        if any(callee_of(call) in pending for call in own_calls):
            check_no_recursion(call_graph(program))
        calls += own_calls
        del pending[name]
    return calls


def functions_callees_first(program: Program) -> list[Op]:
    """Return all functions with a body, each after those it calls: the order in which the reference visits them.

    It is depth-first from the functions in program order, callees in the order of their first calls. Functions that
    call each other in a circle come in some order, too.
    """
    functions = {name: op for name, op in program.functions.items() if has_body(op)}
    calls_in = calls_by_function(program)
    ordered: list[Op] = []
    seen: set[str] = set()
    # A stack of iterators, because chains of calls may be longer than Python's own stack.
    stack = [iter(functions)]
    path: list[str] = []
    while stack:
        for name in stack[-1]:
            if name in functions and name not in seen:
                seen.add(name)
                path.append(name)
                stack.append(iter([callee_of(call) or "" for call in calls_in.get(functions[name], ())]))
                break
        else:
            stack.pop()
            if path:
                ordered.append(functions[path.pop()])
    return ordered


def calls_by_callee(program: Program) -> dict[str, list[Op]]:
    """Return the name of a function to the calls of it, for all that are called.

    They come in the order of MLIR's walk over the uses of symbols (`SymbolTable::getSymbolUses`), which goes through
    all ops of a region before it goes into theirs, the last region first.
    """
    calls = ops_named(program, CALL)
    nested = {outermost(call) for call in calls if call.parent_op is not None and call.parent_op.name != FUNCTION}
    by_callee: dict[str, list[Op]] = {}
    done: set[Op] = set()
    for call in calls:
        function = outermost(call) if nested else None
        if function not in nested:
            by_callee.setdefault(call.attributes["callee"].name, []).append(call)
        elif function not in done:
            done.add(function)
            for other in _calls_by_region(function):
                by_callee.setdefault(other.attributes["callee"].name, []).append(other)
    return by_callee


def _calls_by_region(op: Op) -> Iterator[Op]:
    """Yield the calls inside an op: those of a region before those in the regions of its ops, the last region first."""
    waiting = list(op.regions)
    while waiting:
        for block in waiting.pop().blocks:
            for inner in block.ops:
                if inner.name == CALL:
                    yield inner
                waiting += inner.regions


def calls_by_function(program: Program) -> Mapping[Op, Sequence[Op]]:
    """Return function to the calls in it, in program order, for all functions with calls."""
    return program.index.derived(_CALLS, _by_function) if CALL in program.op_names else {}


def _by_function(calls: Sequence[Op]) -> Mapping[Op, Sequence[Op]]:
    by_function: dict[Op, list[Op]] = {}
    for call in calls:
        by_function.setdefault(outermost(call), []).append(call)
    return by_function
