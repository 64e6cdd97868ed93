"""Programs written in Python are what MLIR makes of the same text."""

from typing import Any

import pytest

import shardy_py as sdy
from shardy_py.errors import VerificationError
from shardy_py.ir import Builder, RawAttribute, SymbolRef, TensorType, Value, tensor, verify
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding

T = tensor(8, 16)


def test_a_program_reads_as_it_is_written():
    """Functions, ops, attributes, shardings and meshes land where they belong."""
    b = Builder(mesh=Mesh.of(a=2, b=2))
    with b.function("main", [T, tensor(16, 4)]) as (x, y):
        z = b.op("toy.dot", [x, y], [tensor(8, 4)], contracting=(1, 0))
        b.shard(x, '[{"a"}, {}]')
        b.return_(z, shardings=['<@mesh, [{?}, {"b"}]>'])
    program = b.program
    main = program.functions["main"]
    assert [op.name for op in program.walk()] == ["sdy.mesh", "func.func", "toy.dot", "func.return"]
    assert program.meshes == {"mesh": Mesh.of(a=2, b=2)}
    assert z.owner.attributes == {"contracting": (1, 0)}
    assert str(program.sharding(x)) == '<@mesh, [{"a"}, {}]>'
    assert str(program.sharding(main.function_results[0])) == '<@mesh, [{?}, {"b"}]>'
    assert [value.type for value in main.function_results] == [tensor(8, 4)]
    verify(program)


def test_the_number_of_results_decides_what_op_returns():
    """One result comes as a value, any other number as a tuple."""
    b = Builder()
    with b.function("main", [T]) as (x,):
        single = b.op("toy.one", [x], [T])
        none, two = b.op("toy.none", [x]), b.op("toy.two", [x], [T, T])
        b.return_()
    assert single.index == 0
    assert none == ()
    assert [value.index for value in two] == [0, 1]


def test_region_ops_enter_their_uses_after_their_regions():
    """Use lists are in the order in which MLIR creates the uses, ids in the order of the text."""
    b = Builder()
    with b.function("main", [T]) as (x,):
        before = b.emit("toy.before", [x])
        with b.region_op("toy.loop", [x], [T]) as loop:
            with b.region(loop) as ():
                inner = b.emit("toy.inner", [x])
            with b.region(loop) as ():
                second = b.emit("toy.second", [x])
        after = b.emit("toy.after", [x])
        b.return_(loop.result)
    assert [op for op, _ in x.uses] == [before, inner, second, loop, after]
    ids = [op.id for op in b.program.walk()]
    assert ids == sorted(ids)
    assert len(loop.regions) == 2
    verify(b.program)


def test_calls_may_come_before_their_function():
    """A call refers to a function by name; a declaration has results and no body."""
    b = Builder()
    with b.function("main", [T]) as (x,):
        b.return_(b.call("f", [x], [T]), b.call("g", [x], [T]))
    with b.function("f", [T]) as (x,):
        b.return_(x)
    g = b.declare("g", [T], [T])
    call = next(op for op in b.program.walk() if op.name == "func.call")
    assert call.attributes["callee"] == SymbolRef("f")
    assert str(g.attributes["function_type"]) == "(tensor<8x16xf32>) -> tensor<8x16xf32>"
    assert g.regions[0].blocks == []
    verify(b.program)


def test_a_constraint_has_its_sharding_in_both_places():
    """The attribute of a sharding constraint and the table say the same."""
    b = Builder(mesh=Mesh.of(a=2))
    sharding = TensorSharding.fully_open("mesh", 2)
    with b.function("main", [T]) as (x,):
        y = b.constrain(x, sharding)
        b.return_(y)
    assert y.owner.attributes["sharding"] == sharding
    assert b.program.sharding(y) == sharding


def test_a_function_ends_with_return():
    """A body without return, and a return outside a function, are errors."""
    b = Builder()
    with pytest.raises(VerificationError, match="function @main has no return"), b.function("main"):
        pass
    with pytest.raises(VerificationError, match="outside a function"):
        b.return_()


@pytest.fixture
def open_function():
    """Return a builder inside a function, and the argument of that."""
    b = Builder(mesh={"a": 2, "b": 2})
    with b.function("main", [T]) as (x,):
        yield b, x
        b.return_(x)


@pytest.mark.parametrize(
    ("sharding", "message"),
    [
        ('[{"c"}, {}]', "unknown axis name"),
        ('[{"a"}]', "doesn't match tensor rank: 1 != 2"),
        ('[{"a"}, {"a"}]', "duplicate axis"),
        ('<@other, [{"a"}, {}]>', "over the mesh 'other', which the program does not have"),
        (3, "an? int is not a sharding"),
    ],
)
def test_a_sharding_fits_its_value_and_its_mesh(open_function, sharding, message):
    """Unknown meshes and axes, axes used twice and other ranks are refused where they are given."""
    b, x = open_function
    with pytest.raises(VerificationError, match=message):
        b.shard(x, sharding)
    with pytest.raises(VerificationError, match=message):
        b.constrain(x, sharding)
    assert b.program.shardings == {}


def test_operands_are_values_that_the_op_can_see(open_function):
    """Values of other programs, tuples of results, and what a region keeps to itself are refused."""
    b, x = open_function
    other = Builder()
    with other.function("main", [T]) as (foreign,):
        other.return_(foreign)
    two = b.op("toy.two", [x], [T, T])
    with b.region_op("toy.loop", [x], [T]) as loop:
        with b.region(loop, [T]) as (inside,):
            b.op("toy.yield", [inside])
        with pytest.raises(VerificationError, match=r"operand 1, .* is defined in a region"):
            b.op("toy.add", [x, inside], [T])
    with pytest.raises(VerificationError, match="belongs to another program"):
        b.op("toy.neg", [foreign], [T])
    with pytest.raises(VerificationError, match="belongs to another program"):
        b.shard(foreign, "[{}, {}]")
    with pytest.raises(VerificationError, match="returns a tuple for an op with several results"):
        b.op("toy.neg", [two], [T])
    with pytest.raises(VerificationError, match="not a list of values"):
        b.op("toy.neg", x, [T])
    with pytest.raises(VerificationError, match="is not being built here"), b.region(loop):
        pass


def test_types_and_attributes_are_checked(open_function):
    """A type that is none, a type in the place of a list, and attributes of foreign classes are named."""
    b, x = open_function
    with pytest.raises(VerificationError, match="type 0 is 'f32', which is not a type"):
        b.op("toy.neg", [x], ["f32"])
    with pytest.raises(VerificationError, match="not a list of types"):
        b.op("toy.neg", [x], T)
    with pytest.raises(VerificationError, match=r"has the sizes \(-1,\)"):
        b.op("toy.neg", [x], [TensorType((-1,), "f32")])
    with pytest.raises(VerificationError, match="the attribute 'axis' holds a complex"):
        b.op("toy.neg", [x], [T], axis=(1, 2j))
    with pytest.raises(VerificationError, match="the attribute 'axis' holds a NoneType"):
        b.op("toy.neg", [x], [T], axis=None)
    with pytest.raises(VerificationError, match="the attribute 'axis' holds an int: 1"):
        b.op("toy.neg", [x], [T], axis={1: 2})
    python_value = {"a": True, "b": 1, "c": 0.5, "d": "x", "e": (1, 2), "f": {"g": RawAttribute("#toy.x")}, "h": T}
    assert b.emit("toy.neg", [x], [T], python_value).attributes == python_value


def test_arguments_of_wrong_types_are_named(open_function):
    """Meshes, locations, callees and shardings of results that are none are errors of the builder."""
    b, x = open_function
    with pytest.raises(VerificationError, match=r"meshes is \['x'\], not a mapping"):
        Builder(meshes=["x"])
    with pytest.raises(VerificationError, match="the location is 12, not a text"), b.at(12):
        pass
    with pytest.raises(VerificationError, match=r"\[\] is not the name of a function"):
        b.call([], [x], [T])
    with pytest.raises(VerificationError, match="not a list of shardings"):
        b.return_(x, shardings='[{"a"}, {}]')


def test_functions_and_meshes_are_named_once():
    """A second function or mesh of a name, and a function inside another, are refused."""
    b = Builder(mesh=Mesh.of(a=2))
    with pytest.raises(VerificationError, match="@mesh is defined twice"):
        b.mesh("mesh", Mesh.of(a=2))
    with pytest.raises(VerificationError, match="axis size must be at least 1"):
        b.mesh("other", {"a": 0})
    with pytest.raises(VerificationError, match="a float is not a mesh"):
        b.mesh("other", 1.5)
    with b.function("main", [T]) as (x,):
        with pytest.raises(VerificationError, match="function @f is inside another one"), b.function("f"):
            pass
        with pytest.raises(VerificationError, match="2 shardings are given for 1 values"):
            b.return_(x, shardings=["[{}, {}]", "[{}, {}]"])
        b.return_(x)
        with pytest.raises(VerificationError, match="the function has ended"):
            b.op("toy.neg", [x], [T])
    with pytest.raises(VerificationError, match="@main is defined twice"), b.function("main"):
        pass


def test_build_verifies_the_whole():
    """Calls of functions that are missing or have other types are found when the program is complete."""
    b = Builder()
    with b.function("main", [T]) as (x,):
        b.return_(b.call("f", [x], [T]))
    with pytest.raises(VerificationError, match="there is no function @f"):
        b.build()
    with b.function("f", [T]) as (x,):
        b.return_(x)
    assert b.build() is b.program


def test_ops_have_the_locations_they_are_given():
    """`at` gives the ops inside it a location; others have none."""
    b = Builder()
    with b.function("main", [T]) as (x,):
        with b.at("model.py:12"):
            y = b.op("toy.neg", [x], [T])
        z = b.op("toy.neg", [y], [T])
        b.return_(z)
    assert (y.owner.location, z.owner.location) == ("model.py:12", "")


NEEDED = {
    "sharding_constraint": "sharding",
    "reshard": "sharding",
    "propagation_barrier": "allowed_direction",
    "all_gather": "gathering_axes",
    "all_slice": "slicing_axes",
    "all_reduce": "reduction_axes",
    "reduce_scatter": "reduce_scatter_axes",
    "all_to_all": "params",
    "collective_permute": "out_sharding",
    "sharding_group": "group_id",
}


@pytest.mark.parametrize("name", NEEDED)
@pytest.mark.parametrize("value", [None, 1.5, True])
def test_ops_of_shardy_need_their_attributes(name: str, value: object) -> None:
    """An op of Shardy without its attribute, or with something else in it, is an error with its place."""
    attribute = NEEDED[name]
    b = Builder(mesh={"a": 2})
    with b.function("main", [tensor(8)]) as (x,):
        types = [] if name == "sharding_group" else [tensor(8)]
        with b.at("model.py:3"):
            op = b.emit(f"sdy.{name}", [x], types, {} if value is None else {attribute: value})
        b.return_(*(op.results or (x,)))
    words = f"model.py:3: error: 'sdy.{name}' op: {attribute} {'is missing' if value is None else 'holds'}"
    program = b.build()
    with pytest.raises(VerificationError, match=words):
        sdy.propagate(program)


def test_regions_below_too_many_others() -> None:
    """Regions are nested as deep as modules may be, and an error beyond that, before any walk ends in recursion."""

    def nested(b: Builder, value: Value, depth: int) -> Value:
        if not depth:
            return value
        with b.region_op("toy.loop", [value], [T]) as op, b.region(op, [T]) as (inner,):
            b.op("toy.yield", [nested(b, inner, depth - 1)])
        return op.result

    for depth in (199, 200):
        b = Builder()
        with b.function("main", [T]) as (x,):
            if depth > 199:
                with pytest.raises(VerificationError, match=r"'toy.loop' op: regions are nested more than 200 deep"):
                    nested(b, x, depth)
            b.return_(nested(b, x, 1 if depth > 199 else depth))
        if depth == 199:
            assert sdy.propagate(b.build()).text.count("toy.loop") == 199


@pytest.mark.parametrize(
    ("python_value", "hint"), [("float32", "f32"), ("bfloat16", "bf16"), ("bool", "i1"), (None, "f32"), (float, "f32")]
)
def test_element_types_of_arrays(python_value: Any, hint: str) -> None:
    """The name of a dtype is no element type; the error says how MLIR writes it."""
    with pytest.raises(VerificationError, match="is not an element type") as caught:
        tensor(8, dtype=python_value)
    assert f'dtype="{hint}"' in caught.value.diagnostics[0].hint


@pytest.mark.parametrize("size", [-1, 2.0, True, "8", (8, 16), [8]])
def test_sizes_are_numbers(size: Any) -> None:
    """Anything else is an error where it is given; numbers of numpy and unknown sizes are taken."""
    with pytest.raises(VerificationError, match="is not the size of a dimension") as caught:
        tensor(8, size)
    assert "tensor(8, 16)" in caught.value.diagnostics[0].hint
    np = pytest.importorskip("numpy")
    assert tensor(np.int32(8), None, 0) == tensor(8, None, 0)


def test_names_that_have_to_be_quoted() -> None:
    """Names of ops and attributes with any characters are written as MLIR reads them."""
    pytest.importorskip("jaxlib")
    b = Builder(mesh={"a": 2})
    with b.function("main", [tensor(8)]) as (x,):
        b.return_(b.op('toy."\n', [x], [tensor(8)], {"\xe4": 1}))
    text = sdy.propagate(b.build(), in_shardings={0: ("a",)}).text
    assert sdy.propagate(text).text.count('"toy.\\22\\0A"') == 1


@pytest.mark.parametrize("direction", [1, "FORWARD", RawAttribute("1 : i32")])
def test_words_of_shardy_print_as_mlir_reads_them(direction: Any) -> None:
    """Directions of barriers and reductions are numbers of 32 bits in the generic form."""
    b = Builder(mesh={"x": 2})
    with b.function("main", [tensor(8)]) as (a,):
        barrier = b.op("sdy.propagation_barrier", [a], [tensor(8)], allowed_direction=direction)
        attributes = {"reduction_op": RawAttribute("#sdy<reduction_op max>")}
        b.return_(b.op("toy.reduced", [barrier], [tensor(8)], attributes))
    result = sdy.propagate(b.build(), in_shardings={0: ("x",)})
    assert '"sdy.propagation_barrier"(%arg0) {allowed_direction = 1 : i32' in result.text
    assert "reduction_op = 1 : i32" in result.text
    assert str(result.sharding(barrier)) == '<@mesh, [{"x"}]>'
