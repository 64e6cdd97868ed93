"""Symbols are named as MLIR names them, functions visited as the reference visits them."""

import pytest

from shardy_py.errors import VerificationError
from shardy_py.ir import Builder, tensor
from shardy_py.ir.graph.graphs import callee_of
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.symbols import (
    ORIGINAL_FUNCTION_NAME,
    SymbolTable,
    calls_by_callee,
    functions_callees_first,
    original_function_name,
    set_callee,
)

T = tensor(4)


def program_of(**calls):
    """Return a program with one function per name, which calls the given others in order."""
    b = Builder()
    for name, callees in calls.items():
        with b.function(name, [T]) as (x,):
            for callee in callees:
                x = b.call(callee, [x], [T])
            b.return_(x)
    return b.program


def new_function(program, name):
    """Return a function that stands nowhere yet."""
    return Op(program, "func.func", attributes={"sym_name": name})


def test_all_names_share_one_counter_that_only_grows():
    """A taken name gets the next number, whatever the name; numbers that lead to taken names are skipped."""
    program = program_of(f=[], g=[], g_1=[])
    symbols = SymbolTable(program)
    inserted = [symbols.insert(new_function(program, name)) for name in ("f", "g", "h", "g_1", "f")]
    assert inserted == ["f_0", "g_2", "h", "g_1_3", "f_4"]
    assert list(program.functions) == ["f", "g", "g_1", *inserted]


def test_an_erased_name_is_free_again():
    """The name of an erased symbol is given to the next that wants it."""
    program = program_of(f=[])
    symbols = SymbolTable(program)
    symbols.erase(program.functions["f"])
    assert symbols.get("f") is None
    assert symbols.insert(new_function(program, "f")) == "f"


def test_a_call_of_nothing_is_an_error_that_names_it():
    """The callee of a call is found by name, and reported where there is none."""
    program = program_of(main=["f"], f=[])
    call = next(op for op in program.walk() if op.name == "func.call")
    symbols = SymbolTable(program)
    assert symbols.callee(call) is program.functions["f"]
    set_callee(call, "odd name")
    assert callee_of(call) == "odd name"
    assert str(call.attributes["callee"]) == '@"odd name"'
    with pytest.raises(VerificationError, match='@"odd name"'):
        symbols.callee(call)


def test_a_copy_knows_the_name_of_the_function_it_comes_from():
    """The original name is that of the attribute, else the function's own."""
    program = program_of(f=[])
    function = program.functions["f"]
    assert original_function_name(function) == "f"
    function.attributes[ORIGINAL_FUNCTION_NAME] = "g"
    assert original_function_name(function) == "g"


@pytest.mark.parametrize(
    ("calls", "order"),
    [
        ({"main": ["b", "a"], "a": [], "b": ["c"], "c": []}, ["c", "b", "a", "main"]),
        ({"z": [], "y": ["z"], "x": ["y", "z"]}, ["z", "y", "x"]),
        ({"a": ["b"], "b": ["a"]}, ["b", "a"]),
        ({"a": [], "b": []}, ["a", "b"]),
    ],
)
def test_functions_come_after_those_they_call(calls, order):
    """The order is depth-first from the top, callees in the order of their calls; circles do no harm."""
    assert [op.attributes["sym_name"] for op in functions_callees_first(program_of(**calls))] == order


def test_a_chain_of_calls_may_be_longer_than_the_stack():
    """Order does not need recursion, and a function without a body does not count."""
    b = Builder()
    b.declare("f2000", [T], [T])
    for number in range(2000):
        with b.function(f"f{number}", [T]) as (x,):
            b.return_(b.call(f"f{number + 1}", [x], [T]))
    ordered = functions_callees_first(b.program)
    assert len(ordered) == 2000
    assert ordered[0].attributes["sym_name"] == "f1999"


def test_calls_come_in_the_order_of_mlirs_symbol_walk():
    """Calls of a region come before those in the regions of its ops, of these the last region first."""
    b = Builder()
    with b.function("f", [T]) as (x,):
        b.return_(x)
    with b.function("main", [T]) as (x,):
        with b.region_op("toy.if", [], [T]) as op:
            for number in range(2):
                with b.region(op):
                    if number == 0:
                        with b.region_op("toy.loop", [], [T]) as loop, b.region(loop):
                            b.op("toy.yield", [b.call("f", [x], [T])], [])
                    b.op("toy.yield", [b.call("f", [x], [T])], [])
        b.return_(b.call("f", [op.results[0]], [T]))
    actual = [_place(call) for call in calls_by_callee(b.program)["f"]]
    assert actual == ["func.func 0", "toy.if 1", "toy.if 0", "toy.loop 0"]


def _place(call):
    region = call.parent.parent
    return f"{call.parent_op.name} {call.parent_op.regions.index(region)}"
