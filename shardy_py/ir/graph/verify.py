"""Verify programs: links, uses, dominance, terminators, symbols, calls, depth, and functions of several blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from shardy_py.errors import Diagnostic, UnsupportedError, VerificationError
from shardy_py.ir.graph.graphs import callee_of
from shardy_py.ir.graph.op_names import RETURN
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.ir.graph.walk import region_arguments
from shardy_py.ir.interfaces.ops import IsTerminator, OpSemantics
from shardy_py.sharding.tensor import symbol
from shardy_py.support.arguments import shown

MAX_REGION_DEPTH = 200
"""The limit on nested regions; the walks over the op graph are recursive."""


def verify(program: Program, semantics: OpSemantics | None = None) -> None:
    """Check a program; all problems are collected before the error is raised.

    Args:
        program: The program.
        semantics: Says which ops are terminators; without it terminators are not checked.

    Raises:
        VerificationError: the program is not well formed.
    """
    problems = list(diagnose(program, semantics))
    if problems:
        raise VerificationError(*problems)


def verify_given(program: Program) -> None:
    """Verify a program from a caller, Shardy's attributes on its ops included.

    Raises:
        VerificationError: the program is not well formed, or an op of Shardy misses what it needs.
    """
    verify(program)
    problems = list(_check_attributes(program))
    if problems:
        raise VerificationError(*problems)


def diagnose(program: Program, semantics: OpSemantics | None = None) -> Iterator[Diagnostic]:
    """Yield all problems of a program, in program order within each check."""
    deepest = _too_deep(program)
    if deepest is not None:
        message = f"regions are nested more than {MAX_REGION_DEPTH} deep"
        yield _problem("nested-too-deeply", message, deepest, hint="move what is inside to functions, and call them")
        return
    ops = list(program.walk())
    yield from _check_links(program)
    yield from _check_uses(ops)
    yield from _check_dominance(program)
    yield from _check_symbols(program)
    yield from _check_functions(program, semantics)
    yield from call_problems(program)
    yield from _check_shardings(program, ops)
    if semantics is not None:
        yield from _check_terminators(program, semantics)


def _too_deep(program: Program) -> Op | None:
    """Return an op whose regions are below too many others, or None."""
    pending = [(op, 0) for op in program.body.ops if op.regions]
    while pending:
        op, depth = pending.pop()
        if depth >= MAX_REGION_DEPTH:
            return op
        blocks = [block for region in op.regions for block in region.blocks]
        pending += [(inner, depth + 1) for block in blocks for inner in block.ops if inner.regions]
    return None


def _problem(code: str, message: str, op: Op, *, hint: str = "") -> Diagnostic:
    return Diagnostic(code, message, location=op.location, op=op.name, hint=hint)


def _blocks(program: Program) -> Iterator[Block]:
    yield program.body
    for op in program.walk():
        for region in op.regions:
            yield from region.blocks


def _check_links(program: Program) -> Iterator[Diagnostic]:
    """Check that the links between blocks, regions and ops agree."""
    for block in _blocks(program):
        previous = None
        for op in block.ops:
            if op.parent is not block or op.prev is not previous:
                yield _problem("broken-links", "the op does not know where it stands", op)
            previous = op
        if block.last is not previous:
            yield Diagnostic("broken-links", "a block does not end with its last op")
    for op in program.walk():
        if any(region.parent is not op for region in op.regions):
            yield _problem("broken-links", "a region does not know its op", op)


def _check_attributes(program: Program) -> Iterator[Diagnostic]:
    """Check that the ops of Shardy have their attributes, with values of the right types."""
    from shardy_py.ir.graph.verify_shardings import wrong_attributes

    for op in program.walk():
        for name, value, expected in wrong_attributes(op):
            message = f"{name} is missing" if value is None else f"{name} holds {shown(value)}, expected {expected}"
            yield _problem("malformed-attribute", message, op, hint=f"give a value of {expected}")


def _check_uses(ops: list[Op]) -> Iterator[Diagnostic]:
    """Check that use lists and operands agree."""
    listed: dict[int, Counter[tuple[int, int]]] = {}
    for value, op in _values(ops):
        listed[value.id] = Counter((user.id, number) for user, number in value.uses)
        for user, number in value.uses:
            if number >= len(user.operands) or user.operands[number] is not value:
                yield _problem("broken-uses", f"{value!r} lists a use that {user!r} does not have", op)
    for op in ops:
        for number, value in enumerate(op.operands):
            if value.id in listed and listed[value.id][op.id, number] != 1:
                yield _problem("broken-uses", f"operand {number} does not list this use exactly once", op)


def _values(ops: list[Op]) -> Iterator[tuple[Value, Op]]:
    return ((value, op) for op in ops for value in (*op.results, *region_arguments(op)))


def _check_dominance(program: Program) -> Iterator[Diagnostic]:
    """Check that every operand is defined before its use, in the same block or in an enclosing one.

    In regions with several blocks only the order within a block is checked.
    """
    positions = {op.id: index for index, op in enumerate(program.walk())}
    for op in program.walk():
        for number, value in enumerate(op.operands):
            if not _is_visible(value, op, positions):
                yield _problem("use-before-definition", f"operand {number} is not defined before its use", op)


def _is_visible(value: Value, user: Op, positions: dict[int, int]) -> bool:
    """Return whether the ancestor of the user in the block of the value comes after the value."""
    home = value.owner if isinstance(value.owner, Block) else value.owner.parent
    anchor: Op | None = user
    while anchor is not None and anchor.parent is not home:
        if home is not None and anchor.parent is not None and anchor.parent.parent is home.parent:
            return True
        anchor = anchor.parent_op
    if anchor is None:
        return False
    return isinstance(value.owner, Block) or positions.get(value.owner.id, -1) < positions.get(anchor.id, -1)


def _check_symbols(program: Program) -> Iterator[Diagnostic]:
    seen: dict[str, Op] = {}
    for op in program.body.ops:
        name = op.attributes.get("sym_name")
        if name is None:
            continue
        if name in seen:
            yield _problem("duplicate-symbol", f"{symbol(name)} is defined twice", op, hint=seen[name].location)
        seen.setdefault(name, op)


def _check_functions(program: Program, semantics: OpSemantics | None) -> Iterator[Diagnostic]:
    """Check that the types of returned values are those of the function's results.

    Any terminator may end a function, as for MLIR; without the semantics those are known that are called returns.
    """
    for name, function in program.functions.items():
        for region in function.regions:
            for block in region.blocks:
                yield from _check_return(name, function, block, semantics)


def _check_return(name: str, function: Op, block: Block, semantics: OpSemantics | None) -> Iterator[Diagnostic]:
    terminator = block.terminator
    if terminator is None:
        yield _problem("missing-terminator", f"function {symbol(name)} has a block without ops", function)
    elif terminator.name == RETURN:
        returned = [str(value.type) for value in terminator.operands]
        declared = [str(value.type) for value in function.function_results]
        if returned != declared:
            message = f"returns ({', '.join(returned)}), but {symbol(name)} has the results ({', '.join(declared)})"
            yield _problem("return-mismatch", message, terminator)
    elif not _may_end(terminator, semantics):
        message = f"function {symbol(name)} ends with {terminator.name}, not with func.return"
        yield _problem("missing-terminator", message, terminator)


def _may_end(op: Op, semantics: OpSemantics | None) -> bool:
    """Return whether an op may end a function."""
    return op.name.endswith(".return") or (semantics is not None and semantics.has_trait(op, IsTerminator))


def call_problems(program: Program) -> Iterator[Diagnostic]:
    """Yield the calls of functions that do not exist, or that have other operands or results."""
    functions = program.functions
    for op in program.walk():
        callee = callee_of(op)
        if callee is None:
            continue
        function = functions.get(callee)
        if function is None:
            known = ", ".join(symbol(name) for name in functions)
            yield _problem("unknown-function", f"there is no function {symbol(callee)}", op, hint=f"there are {known}")
        else:
            yield from _check_call(op, callee, function)


def _check_call(call: Op, callee: str, function: Op) -> Iterator[Diagnostic]:
    blocks = function.regions[0].blocks if function.regions else []
    if blocks:
        yield from _compare(
            call, f"operands of the call and the arguments of {symbol(callee)}", call.operands, blocks[0].arguments
        )
    yield from _compare(
        call, f"results of the call and those of {symbol(callee)}", call.results, function.function_results
    )


def _compare(call: Op, what: str, actual: Sequence[Value], expected: Sequence[Value]) -> Iterator[Diagnostic]:
    actual_types = [str(value.type) for value in actual]
    wanted = [str(value.type) for value in expected]
    if actual_types != wanted:
        yield _problem(
            "call-mismatch", f"the {what} differ: ({', '.join(actual_types)}) and ({', '.join(wanted)})", call
        )


def _check_shardings(program: Program, ops: list[Op]) -> Iterator[Diagnostic]:
    """Check that the table of shardings is about values of this program."""
    known = {value.id for value, _ in _values(ops)}
    known.update(value.id for op in ops for value in op.function_results)
    for number in sorted(program.shardings.keys() - known):
        yield Diagnostic("stale-sharding", f"a sharding is kept for the value {number}, which is not in the program")


def _check_terminators(program: Program, semantics: OpSemantics) -> Iterator[Diagnostic]:
    for op in program.walk():
        if op.parent is None or op.parent is program.body:
            continue
        ends = semantics.has_trait(op, IsTerminator)
        if ends and op is not op.parent.last:
            yield _problem("misplaced-terminator", "ops follow in the same block", op)


def refuse_branches(program: Program) -> None:
    """Check that each function is one block.

    Raises:
        UnsupportedError: some have several; all of them are named.
    """
    problems = [
        Diagnostic(
            "several-blocks",
            f"the function has {len(region.blocks)} blocks, shardings cannot follow the branches between them",
            location=function.location,
            op=function.name,
            hint="write branches and loops as ops with regions, such as stablehlo.case and stablehlo.while",
        )
        for function in program.functions.values()
        for region in function.regions
        if len(region.blocks) > 1
    ]
    if problems:
        raise UnsupportedError(*problems)


@contextmanager
def refuse_deep_nesting(main: Op | None = None) -> Iterator[None]:
    """Turn a `RecursionError` into an error with a hint.

    Args:
        main: The function to name as the location; a chain of calls has no better one.

    Raises:
        UnsupportedError: regions and calls are nested too deeply.
    """
    try:
        yield
    except RecursionError:
        raise UnsupportedError(
            Diagnostic(
                "nested-too-deeply",
                "the regions and the calls of functions in each other are nested too deeply",
                location=main.location if main else "",
                op=main.name if main else "",
                hint="shorten the chain of calls, or raise sys.setrecursionlimit",
            )
        ) from None
