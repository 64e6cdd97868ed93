"""Trees of shardings mean what `jax.jit` means by them, and what it refuses is refused."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

pytest.importorskip("jax")
import jax
import numpy as np
from jax.experimental import io_callback
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

import shardy_py as sdy
from shardy_py.errors import OptionError

MESH = {"x": 2, "y": 2}
X = np.ones((4, 4), np.float32)
ROWS, COLUMNS = P("x"), P(None, "y")


class State(NamedTuple):
    """The state of a training step."""

    params: Any
    moments: Any
    step: Any


STATE = State({"w": X, "v": X}, (X, None), X)


def over(*spec: Any) -> NamedSharding:
    """Return a sharding that jax.jit takes without devices."""
    return NamedSharding(AbstractMesh((2, 2), ("x", "y")), P(*spec))


def plain(x, w):
    """Return two results in a dictionary."""
    return {"product": x @ w, "sum": x.sum(0)}


def in_order(x, w):
    """Return such results of a function with an effect in order."""
    called = io_callback(lambda row: row, jax.ShapeDtypeStruct((4,), x.dtype), x[0], ordered=True)
    return {"product": x @ w, "sum": called}


def unused(nothing, x, w):
    """Use all arguments but the first."""
    return plain(x, w)


def specs(function, *arguments, **options):
    """Return the specs of a function's arguments and results."""
    result = sdy.jit(function, MESH, **options).lower(*arguments).result
    return result.in_specs(), result.out_specs()


@pytest.mark.parametrize("function", [plain, in_order])
@pytest.mark.parametrize(
    "in_shardings",
    [
        (ROWS, COLUMNS),
        [ROWS, COLUMNS],
        {0: ROWS, 1: COLUMNS},
        {"x": ROWS, "w": COLUMNS},
        ('[{"x"}, {}]', '[{}, {"y"}]'),
        (("x", None), (None, "y")),
    ],
    ids=["tuple", "list", "by number", "by name", "texts", "plain"],
)
@pytest.mark.parametrize(
    "out_shardings",
    [
        {"product": P("y"), "sum": P("x")},
        {0: P("y"), 1: P("x")},
        {"result['sum']": P("x"), "result['product']": P("y")},
    ],
    ids=["tree", "by number", "by name"],
)
def test_all_forms_mean_the_same(function, in_shardings, out_shardings) -> None:
    """An effect in order puts a token in front of the arrays of the module, which no form counts."""
    ins, outs = specs(function, X, X, in_shardings=in_shardings, out_shardings=out_shardings)
    assert ins == (P("x", None), P(None, "y"))
    assert outs == {"product": P("y", None), "sum": P("x")}


@pytest.mark.parametrize("sharding", [ROWS, over("x")])
def test_one_sharding_is_for_all(sharding) -> None:
    """One is for all arguments, also for those by keyword, or for all results."""
    lowered = sdy.jit(plain, MESH, in_shardings=sharding, out_shardings=P()).lower(X, w=X)
    arguments, keywords = lowered.result.in_specs()
    assert (*arguments, keywords["w"]) == (P("x", None), P("x", None))
    assert set(lowered.result.out_specs().values()) == {P()} or lowered.result.out_specs()["sum"] == P(None)


def test_an_entry_of_a_named_tuple_is_for_all_below_it() -> None:
    """As many entries as fields, and fewer than arrays, are no flat list of shardings."""

    def step(state):
        return state._replace(params=jax.tree.map(lambda w: w + state.step, state.params))

    ins, outs = specs(step, STATE, in_shardings=(State(ROWS, COLUMNS, P()),), out_shardings=State(COLUMNS, ROWS, None))
    assert ins[0].params == {"w": P("x", None), "v": P("x", None)}
    assert (ins[0].moments[0], ins[0].step) == (P(None, "y"), P(None, None))
    assert outs.params == {"w": P(None, "y"), "v": P(None, "y")}
    assert outs.moments[0] == P("x", None)


IN_TREES = {
    "too few": (plain, (over("x"),), "in_shardings has 1 entries where the call has 2 positional arguments"),
    "too many": (plain, (over(),) * 3, "in_shardings has 3 entries where the call has 2"),
    "none": (plain, (), "in_shardings has 0 entries where the call has 2"),
    "without the unused": (unused, (over("x"), None), "in_shardings has 2 entries where the call has 3"),
    "a tuple for an array": (plain, ((over(), over()), None), r"in_shardings\[0\] is a tuple of length 2 where .* one"),
    "a dict for an array": (plain, (None, {"w": over()}), r"in_shardings\[1\] is a dict with the keys 'w' where"),
}


@pytest.mark.parametrize("name", IN_TREES)
def test_other_trees_of_arguments_are_refused(name) -> None:
    """What `jax.jit` refuses is refused, with the function's line."""
    function, in_shardings, message = IN_TREES[name]
    arguments = (X,) * function.__code__.co_argcount
    with pytest.raises((ValueError, AssertionError)):
        jax.jit(function, in_shardings=in_shardings).lower(*arguments)
    with pytest.raises(OptionError, match=message) as info:
        sdy.jit(function, in_shardings=in_shardings).lower(*arguments)
    (problem,) = info.value.diagnostics
    assert problem.location.endswith(f"{function.__code__.co_filename[-20:]}:{function.__code__.co_firstlineno}")
    assert "None to leave it open" in problem.hint or "in the place of all below it" in problem.hint


OUT_TREES = {
    "a missing key": (plain, {"product": over("x")}, "a dict with the keys 'product' where .* 'product', 'sum'"),
    "another key": (plain, {"product": None, "sum": None, "mean": over()}, "'product', 'sum', 'mean' where"),
    "a tuple for a dict": (plain, (over(), None), "out_shardings is a tuple of length 2 where"),
    "a tuple for an array": (lambda x, w: x @ w, (over(),), "a tuple of length 1 where the function has one array"),
    "a flat tuple": (lambda x, w: (x, (x, w)), (over(), None, None), "length 3 where the function has a tuple of"),
    "too few": (lambda x, w: [x, w], [over()], "a list of length 1 where the function has a list of length 2"),
}


@pytest.mark.parametrize("name", OUT_TREES)
def test_other_trees_of_results_are_refused(name) -> None:
    """What `jax.jit` refuses is refused."""
    function, out_shardings, message = OUT_TREES[name]
    with pytest.raises(ValueError, match="pytree structure error"):
        jax.jit(function, out_shardings=out_shardings).lower(X, X)
    with pytest.raises(OptionError, match=message):
        sdy.jit(function, out_shardings=out_shardings).lower(X, X)


def test_positional_shardings_are_not_those_of_keywords() -> None:
    """In the order of their names arguments by keyword would get those of others; `jax.jit` refuses them, too."""
    with pytest.raises(OptionError, match=r"0 positional arguments .*\n.*a mapping from names"):
        sdy.jit(plain, in_shardings=(over("x"), None)).lower(x=X, w=X)


def test_names_of_axes_are_not_shardings() -> None:
    """A tuple of names in the place of all shardings is refused, as it is not known what it is for."""
    with pytest.raises(OptionError, match="'x' is not a sharding"):
        sdy.jit(plain, MESH, in_shardings=("x", None)).lower(X, X)


@pytest.mark.parametrize("flat", [[None, COLUMNS, ROWS], (COLUMNS, ROWS)], ids=["function", "module"])
def test_flat_lists_of_propagate(flat) -> None:
    """`propagate` takes one for each array of the function, or for each argument of the module, and no other number."""
    lowered = jax.jit(lambda pair: pair["x"] @ pair["w"]).lower({"unused": X, "w": X, "x": X})
    result = sdy.propagate(lowered, MESH, in_shardings=flat)
    assert result.in_specs()[0] == {"unused": None, "w": P(None, "y"), "x": P("x", None)}
    with pytest.raises(OptionError, match="4 entries"):
        sdy.propagate(lowered, MESH, in_shardings=[None, *flat, *flat][:4])
