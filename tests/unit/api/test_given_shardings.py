"""Shardings for arguments, which are named by number, name, alias and glob."""

from __future__ import annotations

from typing import Any

import pytest

import shardy_py as sdy
from shardy_py.api.given_shardings import apply_in_shardings, apply_out_shardings, meshes_of_shardings
from shardy_py.api.main_function import MainValues, arguments_of, find_main
from shardy_py.errors import OptionError
from shardy_py.ir.graph.builder import Builder
from shardy_py.ir.graph.types import TensorType
from shardy_py.sharding.mesh import Mesh
from tests.unit.api.programs import program


def given(in_shardings: Any) -> list[str]:
    """Return the shardings of both arguments after some were given."""
    module = program()
    main = find_main(module)
    apply_in_shardings(module, main, in_shardings, "mesh")
    return [str(module.sharding(value)) for value in main.regions[0].block.arguments]


@pytest.mark.parametrize(
    "in_shardings", [{1: ("b",)}, {"arg1": ("b", None)}, {"%arg1": '[{"b"}, {}]'}, [None, ("b",)], (None, ["b"])]
)
def test_by_number_name_or_list(in_shardings: Any) -> None:
    """Arguments are meant by number, by name, or by their place in a list; those left out stay as they are."""
    assert given(in_shardings) == ['<@mesh, [{"a"}, {}]>', '<@mesh, [{"b"}, {}]>']


def test_given_ones_win() -> None:
    """A given sharding replaces the one the module has."""
    assert given({0: (None, "b")})[0] == '<@mesh, [{}, {"b"}]>'


@pytest.mark.parametrize(
    ("in_shardings", "message"),
    [
        ({2: ("a",)}, "has no argument 2"),
        ({-1: ("a",)}, "has no argument -1"),
        ({"weights": ("a",)}, "has no argument 'weights'"),
        ({0: ("z",)}, 'arg0.*"z"'),
        ({0: ("a", "b", None)}, "arg0.*rank"),
        ({0: ("a", "a")}, 'arg0.*"a"'),
        ({0: '<@other, [{"a"}, {}]>'}, "arg0.*unknown mesh.*@other"),
        ("a,b", "in_shardings is a str"),
        ({2: None}, "has no argument 2"),
        ({"weights": None}, "has no argument 'weights'"),
        ([None, None, None], "has no argument 2"),
        ({0: "a"}, r"arg0: 'a' is not a sharding .*\n.*give \('a',\), with one entry per dimension"),
        ({0: "a, None"}, r"arg0: 'a, None' is not a sharding .*\n.*give \('a', None\)"),
        ({0: ""}, r"arg0: '' is not a sharding .*\n.*PartitionSpec"),
        (
            ("a", None),
            r"in_shardings is \('a', None\), in which 'a' is not .*\n.*for argument 0 .* \{0: \('a', None\)\}",
        ),
        ([None, "a"], r"in_shardings is \[None, 'a'\], in which 'a' is not a sharding"),
    ],
)
def test_what_does_not_fit_is_refused(in_shardings: Any, message: str) -> None:
    """Unknown arguments, axes and meshes and wrong ranks are errors that name the argument."""
    with pytest.raises(OptionError, match=message):
        given(in_shardings)


def test_all_problems_are_reported() -> None:
    """Each sharding that does not fit has its own diagnostic."""
    with pytest.raises(OptionError) as caught:
        given({0: ("z",), 7: ("a",)})
    assert len(caught.value.diagnostics) == 2


def test_a_mesh_is_needed() -> None:
    """Shardings for a module without any mesh are an error that says to give one."""
    module = program()
    next(op for op in module.body.ops if op.name == "sdy.mesh").erase()
    with pytest.raises(OptionError, match="no mesh"):
        apply_in_shardings(module, find_main(module), {0: ("a",)}, "mesh")


def test_meshes_come_with_named_shardings() -> None:
    """NamedShardings bring each of their meshes along once."""
    jax = pytest.importorskip("jax")
    spec = jax.sharding.PartitionSpec()
    left, right = (jax.sharding.NamedSharding(jax.sharding.AbstractMesh((size,), ("a",)), spec) for size in (2, 4))
    assert meshes_of_shardings(None) == ()
    assert meshes_of_shardings([left, None, ("a",), left]) == (Mesh.of(a=2),)
    assert meshes_of_shardings({0: left, 1: right}) == (Mesh.of(a=2), Mesh.of(a=4))


@pytest.mark.parametrize("out_shardings", [{0: ("b",)}, {"result0": ("b", None)}, [("b",)], {"0": '[{"b"}, {}]'}])
def test_results_by_number_name_or_list(out_shardings: Any) -> None:
    """Results are meant by number, by name, or by their place in a list."""
    module = program()
    main = find_main(module)
    apply_out_shardings(module, main, out_shardings, "mesh")
    assert [str(module.sharding(value)) for value in main.function_results] == ['<@mesh, [{"b"}, {}]>']


@pytest.mark.parametrize(
    ("out_shardings", "message"),
    [
        ({1: ("a",)}, "no result 1"),
        ({"arg0": ("a",)}, "no result 'arg0'"),
        ([("z",)], 'given for result0.*"z"'),
        (("a",) * 2, "(?s)out_shardings is .*for result 0 alone"),
        ([None, None], "no result 1"),
        ("a", "out_shardings is a str"),
    ],
)
def test_results_that_do_not_fit_are_refused(out_shardings: Any, message: str) -> None:
    """Unknown results and axes are errors that name the result."""
    module = program()
    with pytest.raises(OptionError, match=message):
        apply_out_shardings(module, find_main(module), out_shardings, "mesh")


def test_meshes_come_with_named_shardings_of_results() -> None:
    """A NamedSharding of a result brings its mesh along, behind those of arguments."""
    jax = pytest.importorskip("jax")
    spec = jax.sharding.PartitionSpec()
    left, right = (jax.sharding.NamedSharding(jax.sharding.AbstractMesh((size,), ("a",)), spec) for size in (2, 4))
    assert meshes_of_shardings(None, [left]) == (Mesh.of(a=2),)
    assert meshes_of_shardings([left], {0: right}) == (Mesh.of(a=2), Mesh.of(a=4))


def test_a_named_sharding_is_over_its_own_mesh() -> None:
    """Of two meshes of the same devices, each NamedSharding names its own, and a plain spec the first."""
    jax = pytest.importorskip("jax")
    meshes = jax.sharding.AbstractMesh((4,), ("a",)), jax.sharding.AbstractMesh((2, 2), ("b", "c"))
    first, second = (jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(mesh.axis_names)) for mesh in meshes)
    text = "func.func @main(%a: tensor<8xf32>, %b: tensor<8xf32>, %c: tensor<8xf32>) { return }"
    result = sdy.propagate(text, in_shardings=[first, second, ("a",)])
    assert [str(result.program.sharding(value)) for value in result.main.regions[0].blocks[0].arguments] == [
        '<@mesh, [{"a"}]>',
        '<@mesh_0, [{"b", "c"}]>',
        '<@mesh, [{"a"}]>',
    ]


def test_a_named_sharding_is_over_its_own_mesh_beside_a_given_one() -> None:
    """Axes of the same names have the sizes of the sharding's mesh; one of other devices is an error."""
    jax = pytest.importorskip("jax")
    mesh = jax.sharding.AbstractMesh((2, 4), ("a", "b"))
    given = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("a"))
    text = "func.func @main(%a: tensor<8xf32>, %b: tensor<8xf32>) { return }"
    result = sdy.propagate(text, {"a": 4, "b": 2}, in_shardings=[given, ("a",)])
    first, second = (result.program.sharding(value) for value in result.main.regions[0].blocks[0].arguments)
    assert first is not None
    assert second is not None
    assert [result.program.meshes[str(item.mesh)] for item in (first, second)] == [Mesh.of(a=2, b=4), Mesh.of(a=4, b=2)]
    with pytest.raises(OptionError, match=r'"a"=16.*"a"=2'):
        sdy.propagate(text, {"a": 16}, in_shardings=[given, None])


def test_a_glob_of_names_with_brackets() -> None:
    """JAX's names of arguments have brackets, which are no sets of characters where such sets match nothing."""
    arguments = ", ".join(f"%arg{layer}: tensor<8xf32> loc(\"w['layer{layer}']['up']\")" for layer in range(2))
    text = f"func.func @main({arguments}) -> tensor<8xf32> {{\n  return %arg0 : tensor<8xf32>\n}}"
    for pattern, number in (("w['layer*']['up']", 2), ("*layer[1]*", 1)):
        result = sdy.propagate(text, mesh={"x": 2}, in_shardings={pattern: ("x",)})
        assert [str(item) for item in result.arguments].count('<@mesh, [{"x"}]>') == number


@pytest.mark.parametrize(
    ("pattern", "numbers"), [("*", (0, 1, 2)), ("arg*", (0, 2)), ("arg[12]", (2,)), ("w*", (1,)), ("arg?", (0, 2))]
)
def test_a_glob_of_arguments_without_own_names(pattern: str, numbers: tuple[int, ...]) -> None:
    """An argument that has no name of its own has that of its number in a glob, too."""
    arguments = ", ".join(
        f"%{n}: tensor<8xf32>{location}" for n, location in (("a", ""), ("b", ' loc("w1")'), ("c", ""))
    )
    text = f"func.func @main({arguments}) -> tensor<8xf32> {{\n  return %a : tensor<8xf32>\n}}"
    result = sdy.propagate(text, {"x": 2}, in_shardings={pattern: ("x",)})
    assert [number for number, item in enumerate(result.arguments) if item is not None] == [*numbers]


def test_a_glob_of_results_without_own_names() -> None:
    """A result that has no name of its own has that of its number."""
    text = "func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {\n  return %a : tensor<8xf32>\n}"
    assert str(sdy.propagate(text, {"x": 2}, out_shardings={"result*": ("x",)}).results[0]) == '<@mesh, [{"x"}]>'


def test_many_shardings_are_given() -> None:
    """Each of thousands of arguments gets the sharding that is given for its name."""
    count = 2000
    arguments = ", ".join(f"%a{number}: tensor<8xf32>" for number in range(count))
    text = f"func.func @main({arguments}) {{\n  return\n}}\n"
    result = sdy.propagate(text, {"a": 2}, in_shardings={f"arg{number}": ("a",) for number in range(count)})
    assert {str(sharding) for sharding in result.arguments} == {'<@mesh, [{"a"}]>'}
    assert len(result.arguments) == count


def _values() -> MainValues:
    """Return two arguments, the first of which has three names."""
    builder = Builder()
    with builder.function("main", [TensorType((4,), "f32")] * 2) as arguments:
        builder.return_(*arguments)
    main = builder.build().functions["main"]
    aliases = {"head.weight": 0, "inner.head.weight": 0}
    return MainValues(main, arguments_of(main), ("emb.weight", "bias"), "argument", lambda n: f"arg{n}", aliases)


def test_an_alias_finds_its_argument() -> None:
    """As the first name and the number do; an error lists all names."""
    values = _values()
    assert values.find("head.weight") is values.find("emb.weight") is values.find(0)
    with pytest.raises(sdy.OptionError, match=r"called emb\.weight, bias, head\.weight, inner\.head\.weight"):
        values.find("tail.weight")


def test_a_glob_finds_an_argument_once_with_the_names_that_match() -> None:
    """Each argument comes once, however many of its names match."""
    values = _values()
    ((actual, names),) = values.find_all("*.weight")
    assert actual is values.find(0)
    assert names == {"emb.weight", "head.weight", "inner.head.weight"}
    assert [names for _, names in values.find_all("*head.weight")] == [{"head.weight", "inner.head.weight"}]
    assert values.find_all(0) == [(actual, frozenset())]
