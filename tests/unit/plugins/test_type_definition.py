"""Types of dialects are defined once, under their names, and what their functions answer is checked."""

import types as python_types

import pytest

import shardy_py as sdy
from shardy_py.errors import PluginError
from shardy_py.ir.graph.types import OpaqueType, TensorType, tensor
from shardy_py.plugins import Registry


def registry(answer):
    """Return a registry where the shape of ``!t.x`` is an answer, or what a function of the type returns."""
    dialect = sdy.Dialect("t")
    dialect.type("!t.x", shape_of=answer if callable(answer) else lambda type_: answer)
    return Registry.of([dialect])


class Two:
    """A number, as numpy has them."""

    def __index__(self):
        return 2


@pytest.mark.parametrize(
    ("answer", "shape", "element"),
    [
        ((2, 3), (2, 3), ""),
        ([None], (None,), ""),
        ((Two(), 3), (2, 3), ""),
        ((), (), ""),
        (tensor(2, dtype="i8"), (2,), "i8"),
    ],
)
def test_a_function_gives_sizes_or_a_tensor_type(answer, shape, element):
    """The text of the type stays, whatever the function returns."""
    actual = registry(answer).give_shape(OpaqueType("!t.x<2>"))
    assert (actual.shape, actual.element_type, actual.text) == (shape, element, "!t.x<2>")


def test_no_shape_is_an_answer_too():
    """A type may be no tensor, in general or in this case; one that nobody defines is told apart."""
    dialect = sdy.Dialect("t")
    dialect.type("!t.token")
    token, other = OpaqueType("!t.token"), OpaqueType("!t.other")
    assert Registry.of([dialect]).give_shape(token) is token
    assert Registry.of([dialect]).give_shape(other) is None
    assert registry(None).give_shape(OpaqueType("!t.x")) == OpaqueType("!t.x")


@pytest.mark.parametrize("answer", ["2x3", 3, (2, -1), (2.0,), (True,), {2: 3}, TensorType((-1,), "f32")])
def test_what_is_no_shape_is_refused(answer):
    """The error names the plugin, the type and the line."""
    with pytest.raises(PluginError, match=r"shape_of for !t\.x<2> returned .*") as caught:
        registry(answer).give_shape(OpaqueType("!t.x<2>"))
    assert "defined by dialect 't', at" in str(caught.value) or "defined by dialect 't' at" in str(caught.value)


def test_an_endless_shape_is_refused():
    """Nobody waits for a thousand million sizes."""
    with pytest.raises(PluginError, match=r"shape_of for !t\.x<2> gives more than"):
        registry(range(10**9)).give_shape(OpaqueType("!t.x<2>"))


def test_a_function_that_raises_is_named():
    """No exception of a plugin comes out bare."""

    def fail(type_):
        raise KeyError(type_.parameters)

    with pytest.raises(PluginError, match=r"shape_of for !t\.x<7> raised KeyError: '7'.*"):
        registry(fail).give_shape(OpaqueType("!t.x<7>"))


@pytest.mark.parametrize("name", ["t.x", "!t.x<2>", "", "!", 3, "tensor<2xf32>"])
def test_names_are_those_of_types(name):
    """A name has its exclamation mark and no parameters."""
    with pytest.raises(PluginError, match="is not the name of a type"):
        sdy.Dialect("t").type(name)


def test_a_type_is_defined_once():
    """Twice in a dialect, in two dialects, and a second function are errors."""
    dialect, other = sdy.Dialect("t"), sdy.Dialect("u")
    definition = dialect.type("!t.x", shape_of=lambda type_: (2,))
    with pytest.raises(PluginError, match=r"defines the type !t\.x twice"):
        dialect.type("!t.x")
    with pytest.raises(PluginError, match="has a shape_of already"):
        definition(lambda type_: (3,))
    with pytest.raises(PluginError, match=r"shape_of of !t\.y is 3"):
        dialect.type("!t.y", shape_of=3)
    other.type("!t.x")
    with pytest.raises(PluginError, match=r"the type !t\.x is defined by dialect 't' and by dialect 'u'"):
        Registry.of([dialect, other])
    first, second = python_types.ModuleType("one"), python_types.ModuleType("two")
    first.shardy_register_dialects = sdy.hookimpl(lambda: [dialect])
    second.shardy_register_dialects = sdy.hookimpl(lambda: [other])
    for module in (first, second):
        module.shardy_register_dialects.__name__ = "shardy_register_dialects"
    registry = Registry.from_entry_points(plugins=[first, second], skip_broken=True)
    assert registry.give_shape(OpaqueType("!t.x")).shape == (2,)
    assert "type-clash" in [item.code for item in registry.problems]
