"""What the bodies of linalg's ops say: how they combine, where they start, what they read."""

from __future__ import annotations

import pytest

pytest.importorskip("xdsl")

import numpy as np

import shardy_py as sdy
from shardy_py.testing import assert_rule_holds
from tests.unit.dialects.linalg.test_linalg import REGISTRY

X, R = "tensor<8x6xf32>", "tensor<8xf32>"


def program(body, *, init="%init", captured="", results=1, kind="reduction"):
    """Return a program with one generic op that goes through the columns of a matrix."""
    outs = ", ".join([init] * results)
    out_map = "affine_map<(d0, d1) -> (d0)>"
    maps = ", ".join(["affine_map<(d0, d1) -> (d0, d1)>", *[out_map] * results])
    types = ", ".join([R] * results)
    arguments = ", ".join(["%in: f32", *(f"%out{number}: f32" for number in range(results))])
    names = ":" + str(results) if results > 1 else ""
    returned = ", ".join(f"%g#{number}" for number in range(results)) if results > 1 else "%g"
    return f"""builtin.module {{
      func.func @main(%x: {X}, %init: {R}, %table: tensor<6xf32>) -> ({types}) {{
        %zero = arith.constant 0.0 : f32
        %one = arith.constant 1.0 : f32
        %e = tensor.empty() : {R}
        %zeros = linalg.fill ins(%zero : f32) outs(%e : {R}) -> {R}
        %ones = linalg.fill ins(%one : f32) outs(%e : {R}) -> {R}
        %dense = arith.constant dense<0.0> : {R}
        {captured}
        %g{names} = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "{kind}"]}}
          ins(%x : {X}) outs({outs} : {types}) {{
        ^bb0({arguments}):
          {body}
        }} -> {types}
        func.return {returned} : {types}
      }}
    }}"""


def find(text, name="linalg.generic"):
    """Return an op of a program."""
    from shardy_py.api.source import read_program
    from shardy_py.frontends.xdsl import parse_module

    return next(op for op in read_program(parse_module(text)).walk() if op.name == name)


def body(op, *, of="%in, %out0"):
    """Return a body of one op."""
    return f"%r = {op} {of} : f32 linalg.yield %r : f32"


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("arith.addf", "reduction={j}"),
        ("arith.mulf", "reduction=mul{j}"),
        ("arith.maximumf", "reduction=max{j}"),
        ("arith.maxnumf", "reduction=max{j}"),
        ("arith.minimumf", "reduction=min{j}"),
        ("arith.divf", "need_replication={j}"),
    ],
)
def test_a_body_says_how_iterations_combine(op, expected):
    """The op that makes the value handed back is the combiner; another one means that the loop needs replication."""
    rule = REGISTRY.get_sharding_rule(find(program(body(op))))
    assert str(rule) == f"<([i, j], [i])->([i]) {{i=8, j=6}} {expected}>"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # The input may be computed with before.
        ("%s = arith.mulf %in, %in : f32 %r = arith.maximumf %s, %out0 : f32 YIELD", "reduction=max{j}"),
        # What starts from the output is not separate from it.
        ("%s = arith.mulf %in, %out0 : f32 %r = arith.addf %s, %out0 : f32 YIELD", "need_replication={j}"),
        ("%r = arith.subf %out0, %in : f32 linalg.yield %r : f32", "reduction={j}"),
        ("%r = arith.subf %in, %out0 : f32 linalg.yield %r : f32", "need_replication={j}"),
        ("linalg.yield %in : f32", "need_replication={j}"),
    ],
)  # fmt: skip
def test_only_a_separate_output_combines(text, expected):
    """The output is one operand of the combiner, and the other has nothing to do with it."""
    rule = REGISTRY.get_sharding_rule(find(program(text.replace("YIELD", "linalg.yield %r : f32"))))
    assert str(rule).endswith(f"{expected}>")


def test_the_position_of_the_largest_element_is_no_reduction():
    """Several outputs that combine each in its own way, or not at all, need replication."""
    argmax = """%larger = arith.cmpf ogt, %in, %out0 : f32
      %a = arith.maximumf %in, %out0 : f32
      %b = arith.select %larger, %in, %out1 : f32
      linalg.yield %a, %b : f32, f32"""
    both = """%a = arith.maximumf %in, %out0 : f32
      %b = arith.maximumf %in, %out1 : f32
      linalg.yield %a, %b : f32, f32"""
    rules = [str(REGISTRY.get_sharding_rule(find(program(text, results=2)))) for text in (argmax, both)]
    assert rules[0].endswith("need_replication={j}>")
    assert rules[1].endswith("reduction=max{j}>")


def test_a_loop_whose_number_is_read_needs_replication():
    """A shard would count its own iterations only."""
    text = """%i = linalg.index 1 : index
      %n = arith.index_cast %i : index to i32
      %f = arith.sitofp %n : i32 to f32
      %s = arith.mulf %f, %in : f32
      %r = arith.addf %s, %out0 : f32
      linalg.yield %r : f32"""
    assert str(REGISTRY.get_sharding_rule(find(program(text)))).endswith("need_replication={j}>")
    parallel = program(text.replace("index 1", "index 0"))
    assert str(REGISTRY.get_sharding_rule(find(parallel))).endswith("reduction={j} need_replication={i}>")


@pytest.mark.parametrize(
    ("op", "init", "initial"),
    [
        ("arith.addf", "%init", (1,)),
        ("arith.addf", "%ones", (1,)),
        ("arith.addf", "%zeros", ()),
        ("arith.addf", "%dense", ()),
        ("arith.addf", "%e", ()),
        ("arith.mulf", "%zeros", (1,)),
        ("arith.mulf", "%ones", ()),
        ("arith.maximumf", "%init", ()),
    ],
)
def test_an_output_with_values_is_what_a_reduction_starts_from(op, init, initial):
    """Values that change nothing do not count, and of a largest they may count as often as they like."""
    assert REGISTRY.get_reductions(find(program(body(op), init=init))).initial_operands == initial


def test_the_initial_value_of_a_product_is_added_once():
    """The numeric check of a contraction that adds to its output holds; one that is not told would add it per shard."""
    text = f"""builtin.module {{
      func.func @main(%x: {X}, %y: tensor<6x4xf32>, %init: tensor<8x4xf32>) -> tensor<8x4xf32> {{
        %r = linalg.matmul ins(%x, %y : {X}, tensor<6x4xf32>) outs(%init : tensor<8x4xf32>) -> tensor<8x4xf32>
        func.return %r : tensor<8x4xf32>
      }}
    }}"""
    op = find(text, "linalg.matmul")
    accumulate = lambda x, y, out: x @ y + out  # noqa: E731
    assert_rule_holds(op, accumulate, registry=REGISTRY)
    with pytest.raises(AssertionError, match="initial=2"):
        assert_rule_holds(REGISTRY.get_sharding_rule(op), accumulate, [(8, 6), (6, 4), (8, 4)])


@pytest.mark.parametrize(
    ("op", "function"),
    [
        ("arith.addf", np.add),
        ("arith.mulf", np.multiply),
        ("arith.maximumf", np.maximum),
        ("arith.minimumf", np.minimum),
    ],
)
def test_rules_of_bodies_hold(op, function):
    """What the body computes on shards combines to what it computes on the whole."""
    actual = find(program(body(op)))
    assert_rule_holds(actual, lambda x, out: function(function.reduce(x, axis=1), out), registry=REGISTRY)


def reshards(text, **given):
    """Return the text after propagation with explicit collectives."""
    from shardy_py.frontends.xdsl import parse_module

    result = sdy.propagate(
        parse_module(text), {"a": 2}, in_shardings=given, registry=REGISTRY, explicit_collectives=True
    )
    return result.text


def test_sums_of_linalg_start_once():
    """A sum into an output with values gathers what it sums; a sum into zeros is reduced across devices."""
    in_shardings = {"arg0": (None, "a")}
    assert "all_gather" in reshards(program(body("arith.addf")), **in_shardings)
    zeros = reshards(program(body("arith.addf"), init="%zeros"), **in_shardings)
    assert "all_gather" not in zeros
    assert "all_reduce" in zeros
    assert "reduction_op" not in zeros
    assert "reduction_op = 1 : i32" in reshards(program(body("arith.maximumf")), **in_shardings)


def test_captured_tensors_are_gathered():
    """A table that the body reads by index is whole on every device."""
    text = """%i = linalg.index 1 : index
      %t = tensor.extract %table[%i] : tensor<6xf32>
      %r = arith.addf %t, %out0 : f32
      linalg.yield %r : f32"""
    actual = reshards(program(text, init="%zeros"), arg2=("a",))
    assert "all_gather" in actual
    assert "tensor.extract %table[" not in actual


def test_poolings_combine_as_their_names_say():
    """Windows side by side that are sharded within combine by the largest or smallest; unsigned ones do not."""
    from shardy_py.testing import make_op
    from tests.unit.dialects.linalg.test_windows import steps

    def rule(kind):
        shapes = [(2, 8, 4), (2,), (2, 4, 4)]
        op = make_op(f"linalg.pooling_nwc_{kind}", shapes, [shapes[2]], {"strides": steps(2)})
        return REGISTRY.get_sharding_rule(op)

    assert [str(rule(kind)).split("} ")[1][:-1] for kind in ("sum", "max", "min", "max_unsigned")] == [
        "reduction={l}",
        "reduction=max{l}",
        "reduction=min{l}",
        "need_replication={l}",
    ]
