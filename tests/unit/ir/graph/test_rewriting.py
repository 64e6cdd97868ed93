"""Clones are like their originals, and independent of them."""

import pytest

from shardy_py.errors import UnsupportedError
from shardy_py.ir import Builder, tensor, verify
from shardy_py.ir.graph.rewriting import clone_function_recursively, clone_op
from shardy_py.ir.graph.symbols import SymbolTable
from shardy_py.sharding.mesh import Mesh
from tests.unit.outline import outline, sharding_of

T = tensor(4)


def test_a_copy_uses_what_the_mapping_says_and_keeps_shardings():
    """Operands in the mapping are replaced, others kept; results are mapped; shardings and attributes are copied."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [T, T]) as (x, y):
        z = b.op("toy.add", [x, y], [T], mark="m")
        b.shard(z, '[{"a"}]')
        b.return_(z)
    mapping = {x.id: y}
    copied = clone_op(z.owner, mapping)
    assert list(copied.operands) == [y, y]
    assert mapping[z.id] is copied.result
    assert sharding_of(b.program, copied.result) == '<@mesh, [{"a"}]>'
    copied.attributes["mark"] = "n"
    assert z.owner.attributes["mark"] == "m"
    assert y.uses == [(z.owner, 1), (copied, 0), (copied, 1)]


def test_an_op_enters_its_uses_before_those_in_its_regions():
    """As in MLIR, and unlike the parser, cloning enters the uses of an op before those of the ops inside."""
    b = Builder()
    with b.function("main", [T]) as (x,):
        with b.region_op("toy.loop", [x], [T]) as loop, b.region(loop, [T]) as (y,):
            b.op("toy.end", [b.op("toy.add", [x, y], [T])])
        b.return_(loop.result)
    copied = clone_op(loop, {})
    inner = copied.regions[0].block
    assert [op.name for op, _ in x.uses] == ["toy.add", "toy.loop", "toy.loop", "toy.add"]
    assert list(inner.first.operands) == [x, inner.arguments[0]]
    assert list(inner.last.operands) == [inner.first.result]


def test_a_copied_function_calls_copies():
    """All functions reached from a copy are copied, once per call, and remember where they come from."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("leaf", [T]) as (x,):
        b.shard(x, '[{"a"}]')
        b.return_(x, shardings=['[{"a"}]'])
    with b.function("f", [T]) as (x,):
        b.return_(b.call("leaf", [b.call("leaf", [x], [T])], [T]))
    symbols = SymbolTable(b.program)
    name = symbols.insert(clone_function_recursively(b.program.functions["f"], symbols))
    verify(b.program)
    functions = b.program.functions
    assert list(functions) == ["leaf", "f", "leaf_0", "leaf_1", "f_2"]
    assert name == "f_2"
    assert outline(functions["f_2"]) == outline(functions["f"])
    assert [str(op.attributes["callee"]) for op in functions["f_2"].walk() if op.name == "func.call"] == [
        "@leaf_0",
        "@leaf_1",
    ]
    assert [functions[name].attributes["sdy.original_func_name"] for name in ("leaf_0", "f_2")] == ["leaf", "f"]
    assert sharding_of(b.program, functions["leaf_1"].regions[0].block.arguments[0]) == '<@mesh, [{"a"}]>'
    assert sharding_of(b.program, functions["leaf_1"].function_results[0]) == '<@mesh, [{"a"}]>'


def test_recursion_is_an_error():
    """A function that calls itself cannot be copied with all it calls."""
    b = Builder()
    with b.function("f", [T]) as (x,):
        b.return_(b.call("f", [x], [T]))
    with pytest.raises(UnsupportedError, match="@f -> @f"):
        clone_function_recursively(b.program.functions["f"], SymbolTable(b.program))
