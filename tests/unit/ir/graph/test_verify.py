"""Every broken invariant is found and named."""

import pytest

from shardy_py.errors import VerificationError
from shardy_py.ir import Block, Builder, Op, SymbolRef, diagnose, tensor, verify
from shardy_py.plugins import Dialect, IsTerminator, Registry

T = tensor(8)


@pytest.fixture
def built():
    """Return a well-formed program with the ops that the tests break."""
    b = Builder()
    with b.function("main", [T]) as (x,):
        y = b.op("toy.f", [x], [T])
        z = b.op("toy.g", [y], [T])
        with b.region_op("toy.loop", [z], [T]) as loop, b.region(loop, [T]) as (argument,):
            inner = b.op("toy.inner", [argument, y], [T])
            b.op("toy.yield", [inner])
        call = b.call("callee", [loop.result], [T])
        b.return_(call)
    with b.function("callee", [T]) as (argument,):
        b.return_(argument)
    verify(b.program)
    return b, y.owner, z.owner, inner.owner, call.owner


def codes(program, semantics=None):
    """Return the codes of all problems."""
    return [item.code for item in diagnose(program, semantics)]


def test_a_wrong_use_list_is_found(built):
    """A use that the list lacks, and one that no op has, are different sides of one fault."""
    b, f, g, *_ = built
    f.result.uses.remove((g, 0))
    assert codes(b.program) == ["broken-uses"]
    f.result.uses += [(g, 0), (g, 5)]
    assert codes(b.program) == ["broken-uses"]
    f.result.uses[-1:] = [(g, 0)]
    assert codes(b.program) == ["broken-uses"]


def test_wrong_links_are_found(built):
    """An op that does not know its place is named."""
    b, f, g, *_ = built
    g.prev = None
    assert codes(b.program) == ["broken-links"]
    g.prev = f
    verify(b.program)
    b.program.functions["main"].regions[0].parent = None
    assert "broken-links" in codes(b.program)


def test_a_use_before_its_definition_is_found(built):
    """Moving a definition behind its users is noticed for users in the block and in nested regions."""
    b, f, _, _, call = built
    block = f.parent
    block.remove(f)
    block.insert_after(call, f)
    problems = list(diagnose(b.program))
    assert [(item.code, item.op) for item in problems] == [
        ("use-before-definition", "toy.g"),
        ("use-before-definition", "toy.inner"),
    ]


def test_a_value_of_another_region_is_not_visible(built):
    """A result defined in a nested region cannot be used outside."""
    b, _, g, inner, _ = built
    g.set_operand(0, inner.result)
    assert codes(b.program) == ["use-before-definition"]


def test_symbols_are_unique(built):
    """Two functions of one name are an error."""
    b = built[0]
    with b.function("another", [T]) as (x,):
        b.return_(x)
    b.program.functions["another"].attributes["sym_name"] = "callee"
    assert codes(b.program) == ["duplicate-symbol"]


def test_returns_fit_the_results_of_their_function(built):
    """The types returned are the types of the function's results."""
    b = built[0]
    b.program.new_function_results(b.program.functions["main"], [T, T])
    assert codes(b.program) == ["return-mismatch"]


def test_calls_fit_their_function(built):
    """The callee exists and takes and gives what the call says."""
    b, _, _, _, call = built
    call.attributes["callee"] = SymbolRef("nobody")
    with pytest.raises(VerificationError, match="there is no function @nobody") as error:
        verify(b.program)
    assert "@main, @callee" in error.value.diagnostics[0].hint
    call.attributes["callee"] = SymbolRef("other")
    with b.function("other", [tensor(4), T]) as (x, _y):
        b.return_(x)
    assert codes(b.program) == ["call-mismatch", "call-mismatch"]


def test_functions_have_a_last_op(built):
    """A block of a function without ops is an error."""
    b = built[0]
    callee = b.program.functions["callee"]
    for op in callee.regions[0].block.ops:
        op.erase()
    assert codes(b.program) == ["missing-terminator"]


def test_terminators_stand_last(built):
    """With semantics at hand an op behind a terminator is found."""
    b, _, _, inner, _ = built
    toy = Dialect("toy")
    toy.op("toy.yield", traits=[IsTerminator])
    registry = Registry.of([toy])
    assert codes(b.program, registry) == []
    inner.parent.append(Op(b.program, "toy.late"))
    assert codes(b.program) == []
    assert codes(b.program, registry) == ["misplaced-terminator"]


def test_shardings_belong_to_values_of_the_program(built):
    """A sharding left behind by an erased value is found."""
    b, f, *_ = built
    stale = Block(b.program, [T]).arguments[0]
    b.program.shardings[f.result.id] = b.sharding("[{}]")
    assert codes(b.program) == []
    b.program.shardings[stale.id] = b.sharding("[{}]")
    assert codes(b.program) == ["stale-sharding"]


def test_all_problems_come_at_once(built):
    """The error carries one diagnostic per problem."""
    b, f, g, _, call = built
    f.result.uses.remove((g, 0))
    call.attributes["callee"] = SymbolRef("nobody")
    with pytest.raises(VerificationError) as error:
        verify(b.program)
    assert [item.code for item in error.value.diagnostics] == ["broken-uses", "unknown-function"]


def test_a_function_may_end_with_the_return_of_another_dialect():
    """MLIR lets any terminator end a function; JAX has comparators of functions that end with ``stablehlo.return``."""
    b = Builder()
    with b.function("main", [tensor(8)]) as (x,):
        b.return_(x)
    terminator = b.program.functions["main"].regions[0].block.terminator
    assert terminator is not None
    terminator.name = "stablehlo.return"
    verify(b.program)
    terminator.name = "toy.add"
    assert [item.code for item in diagnose(b.program)] == ["missing-terminator"]
