"""Invariants of meshes, shardings, rules and manual computations: one case each, with position and fix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardy_py as sdy
from shardy_py import AxisRef, DimensionSharding, Mesh, MeshAxis, SubAxis, TensorSharding
from shardy_py.errors import Diagnostic
from shardy_py.sharding import (
    ManualValues,
    NoShape,
    parse_op_sharding_rule,
    parse_tensor_sharding,
    parse_tensor_sharding_per_value,
    verify_manual_computation_shardings,
    verify_op_sharding_rule,
    verify_tensor_sharding,
    verify_tensor_shardings,
)
from shardy_py.sharding.verify import field_problem

MESH = Mesh.of(a=8, b=4)
MESHES = {"mesh": MESH, "other": Mesh.of(c=2), "maximal": Mesh((), (0,))}


def one(diagnostics: list[Diagnostic]) -> Diagnostic:
    """Return the only diagnostic, which must have a hint."""
    assert len(diagnostics) == 1, diagnostics
    assert diagnostics[0].hint
    return diagnostics[0]


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ('[{"a"}]', "sharding-rank", "sharding doesn't match tensor rank: 1 != 2"),
        ('[{}, {"c"}]', "unknown-axis", 'dim 1: unknown axis name: "c"'),
        ('[{}, {}], replicated={"c"}', "unknown-axis", 'replicated axes: unknown axis name: "c"'),
        ('[{"a"}, {"a"}]', "duplicate-axis", 'dim 1: duplicate axis ref: "a", already in dim 0'),
        ('[{"a"}, {}], unreduced={"a"}', "duplicate-axis", 'unreduced axes: duplicate axis ref: "a", already in dim 0'),
        ('[{}, {}], replicated={"b", "a"}', "axes-order", "replicated axes are not ordered w.r.t. mesh"),
        ('[{}, {}], unreduced={"a":(4)2, "a":(1)2}', "axes-order", "unreduced axes are not ordered w.r.t. mesh"),
        ("[{}, {}p1]", "priority", "dim 1 is empty and closed but has a priority: {}p1"),
        ('[{"a":(1)2, "a":(2)2}, {}]', "mergeable-sub-axes", "dim 0: two consecutive sub-axes can be merged"),
        ('[{"a", "a":(2)2}, {}]', "overlapping-axes", "dim 0: both sub-axis and full-axis are used"),
        ('[{"a":(1)4}, {"a":(2)4}]', "overlapping-axes", 'dim 0 and dim 1: overlapping sub-axes: "a":(1)4, "a":(2)4'),
        ('[{"a":(0)2}, {}]', "sub-axis-pre-size", 'dim 0: sub-axis pre-size must be at least 1: "a":(0)2'),
        ('[{"a":(2)1}, {}]', "sub-axis-size", 'dim 0: sub-axis sizes must be greater than 1: "a":(2)1'),
        ('[{"a":(3)2}, {}]', "sub-axis-divisibility", "dim 0: sub-axis next pre-size 6 doesn't divide"),
        ('[{"a":(1)8}, {}]', "sub-axis-is-full", "dim 0: sub-axis size is equal to the full axis size"),
    ],
)
def test_each_broken_invariant_of_a_sharding(body: str, code: str, message: str) -> None:
    """A broken sharding gives a diagnostic with the dimension or list, the axis, and the fix."""
    actual = one(verify_tensor_sharding(parse_tensor_sharding(f"<@mesh, {body}>"), MESH, (16, 16)))
    assert actual.code == code
    assert actual.message.startswith(message)


def test_a_merge_hint_names_the_merged_axis() -> None:
    """The fix for two consecutive sub-axes is the one axis they make."""
    sharding = parse_tensor_sharding('<@mesh, [{"a":(1)2, "a":(2)4}]>')
    assert one(verify_tensor_sharding(sharding, MESH)).hint == 'write "a"'


def test_a_negative_priority_is_refused() -> None:
    """Priorities start at 0; text cannot even express another."""
    sharding = parse_tensor_sharding('<@mesh, [{"a"}]>').map_dims(lambda dim: type(dim)(dim.axes, True, -1))
    assert one(verify_tensor_sharding(sharding, MESH)).message.startswith("dim 0 has a negative priority")


def test_independent_problems_are_all_reported() -> None:
    """Every problem of a sharding is reported at once, in the order of the positions."""
    sharding = parse_tensor_sharding('<@mesh, [{"c"}, {"a", "a"}], replicated={"b":(1)4}>')
    codes = [item.code for item in verify_tensor_sharding(sharding, MESH)]
    assert codes == ["unknown-axis", "duplicate-axis", "sub-axis-is-full"]


def test_an_unknown_mesh_is_named() -> None:
    """A sharding on a mesh that does not exist names it."""
    actual = one(verify_tensor_sharding(TensorSharding("my mesh"), None))
    assert (actual.code, actual.message) == ("unknown-mesh", 'unknown mesh: @"my mesh"')


def test_a_maximal_sharding_has_no_dimensions() -> None:
    """On a mesh of one device a sharding is empty, whatever the rank of the value."""
    assert verify_tensor_sharding(TensorSharding("maximal"), MESHES["maximal"], (8, 8)) == []
    broken = parse_tensor_sharding("<@maximal, [{}]>")
    assert one(verify_tensor_sharding(broken, MESHES["maximal"], (8,))).code == "maximal-sharding"


def test_values_without_a_shape() -> None:
    """A token may only have an empty sharding, an unranked tensor none."""
    assert verify_tensor_sharding(TensorSharding("mesh"), MESH, NoShape.NOT_SHAPED) == []
    broken = parse_tensor_sharding('<@mesh, [], replicated={"a"}>')
    assert one(verify_tensor_sharding(broken, MESH, NoShape.NOT_SHAPED)).code == "non-shaped-value"
    assert one(verify_tensor_sharding(broken, MESH, NoShape.UNRANKED)).code == "unranked-tensor"


def test_divisibility_is_checked_on_request() -> None:
    """Padding is allowed unless the caller forbids it; dynamic sizes always are."""
    sharding = parse_tensor_sharding('<@mesh, [{"b"}, {"a"}]>')
    assert verify_tensor_sharding(sharding, MESH, (6, None)) == []
    actual = one(verify_tensor_sharding(sharding, MESH, (6, None), check_divisibility=True))
    assert actual.message == "dim 0 with size 6 is not divisible by its sharded size 4"


def test_axes_bound_outside_cannot_be_used() -> None:
    """Inside a manual computation its manual axes are gone."""
    actual = one(verify_tensor_sharding(parse_tensor_sharding('<@mesh, [{"a"}]>'), MESH, (8,), bound_axes={"a"}))
    assert actual.code == "bound-axis"
    assert actual.message.startswith('dim 0: operates on axis "a" which is already bound')


def test_shardings_per_value_name_the_value() -> None:
    """The message says which of several results it is, and no number where there is one."""
    shardings = parse_tensor_sharding_per_value('<[<@mesh, [{"a"}]>, <@mesh, [{"c"}]>]>')
    actual = one(verify_tensor_shardings(shardings, MESHES, [(8,), (8,)]))
    assert actual.message == 'result 1 - dim 0: unknown axis name: "c"'
    actual = one(verify_tensor_shardings(shardings.shardings[1:], MESHES, [(8,)]))
    assert actual.message == 'result - dim 0: unknown axis name: "c"'
    actual = one(verify_tensor_shardings(shardings, lambda _: MESH, [(8,)]))
    assert actual.message == "result shardings don't match number of values: 2 shardings vs 1 values"


def test_an_op_without_results_may_have_one_empty_sharding() -> None:
    """One maximal or fully replicated sharding is allowed where there are no values."""
    assert verify_tensor_shardings([TensorSharding("maximal")], MESHES, []) == []
    assert verify_tensor_shardings([TensorSharding("mesh")], MESHES, []) == []
    assert one(verify_tensor_shardings([TensorSharding("nope")], MESHES, [])).code == "unknown-mesh"
    broken = [parse_tensor_sharding('<@mesh, [{"a"}]>')]
    assert one(verify_tensor_shardings(broken, MESHES, [])).code == "sharding-count"


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("<([i, j])->([i, j]) {i=2, j=4}>", "mapping-count", "number of operands and mappings must match: 2 != 1"),
        ("<([i, j], [i])->([i, j]) {i=2, j=4}>", "mapping-rank", "operand 1 - mapping rank must match: 1 != 2"),
        ("<([i, j], [i, j])->([i]) {i=2, j=4}>", "mapping-rank", "result - mapping rank must match: 1 != 2"),
        (
            "<([i, j], [i,])->([i, j]) {i=2, j=4}>",
            "factor-missing",
            "operand 1 - dim 1: dim mapping must have at least one factor",
        ),
        (
            "<([i, u], [i, j])->([i, j]) {i=2, j=4}>",
            "factor-unknown",
            "operand 0 - dim 1: expecting factor indices to be within 0<=...<num_factors; received: 12, num_factors: 2",
        ),
        (
            "<([i, i], [i, j])->([i, j]) {i=2, j=4}>",
            "factor-reuse",
            "operand 0 - dim 1: cannot reuse factors for the same tensor value: i, already in dim 0",
        ),
        (
            "<([i, jk], [i, j])->([i, j]) {i=2, j=4, k=1}>",
            "factor-size-one",
            "operand 0 - dim 1: dim mapping can't have a factor of size 1 if there are multiple factors: k",
        ),
        (
            "<([i, j], [i, j])->([i, j]) {i=2, j=4, k=2}>",
            "factor-unused",
            "has factor k=2 that isn't used in operand and result mappings",
        ),
        (
            "<([i, j], [i, j])->([i, j]) {i=2, j=4} need_replication={j, i}>",
            "factor-order",
            "need_replication: indices of special factors must be sorted",
        ),
        (
            "<([i, j], [i, j])->([i, j]) {i=2, j=4} permutation={j, j}>",
            "factor-order",
            "permutation: indices of special factors must be unique",
        ),
        (
            "<([i, j], [i, j])->([i, j]) {i=2, j=4} blocked_propagation={z}>",
            "factor-unknown",
            "blocked_propagation: index must be non-negative and less than 2, got: 17",
        ),
        (
            "<([i, j], [i, j])->([i, j]) {i=2, j=4} need_replication={j} permutation={j}>",
            "factor-kinds",
            "permutation: a factor can only be in one of the reduction, need replication, or permutation factor sets",
        ),
        (
            "<([i, j], [i, j])->([i, j]) {i=2, j=4} reduction={j}>",
            "factor-reduction",
            "reduction factor cannot be in result mappings: j",
        ),
    ],
)
def test_each_broken_invariant_of_a_rule(text: str, code: str, message: str) -> None:
    """A broken rule gives a diagnostic with the operand or result, the dimension, and the fix."""
    actual = one(verify_op_sharding_rule(parse_op_sharding_rule(text), [(2, 4), (2, 4)], [(2, 4)]))
    assert actual.code == code
    assert actual.message.startswith(message)


def test_a_rule_needs_static_shapes_and_values() -> None:
    """An op with a value of unknown shape, or without results, cannot have a rule."""
    rule = parse_op_sharding_rule("<([i])->([i]) {i=2}>")
    assert one(verify_op_sharding_rule(rule, [None], [(2,)])).message.startswith("operand - expected a ranked tensor")
    empty = type(rule)((2,), (((0,),),), ())
    assert one(verify_op_sharding_rule(empty)).message == "number of result mappings cannot be 0"
    assert verify_op_sharding_rule(rule) == []


def manual(
    sharding: str, shape: tuple[int, ...], local: tuple[int, ...], axes: tuple[str, ...] = ("a",)
) -> list[Diagnostic]:
    """Verify a manual computation with one operand and no result."""
    value = ManualValues((parse_tensor_sharding(sharding),), (shape,), (local,))
    return verify_manual_computation_shardings(axes, value, ManualValues((), (), ()), MESHES)


def test_a_valid_manual_computation() -> None:
    """The local shape is divided by the manual axes only."""
    assert manual('<@mesh, [{"a", "b"}, {}]>', (16, 32), (2, 32)) == []
    nothing = ManualValues((), (), ())
    assert verify_manual_computation_shardings(("nowhere",), nothing, nothing, MESHES) == []


@pytest.mark.parametrize(
    ("diagnostics", "code", "message"),
    [
        (manual('<@no, [{"a"}]>', (16,), (2,)), "unknown-mesh", "operand - unknown mesh: @no"),
        (manual('<@mesh, [{"a"}]>', (16, 2), (2, 2)), "sharding-rank", "operand - sharding doesn't match tensor rank"),
        (
            manual('<@mesh, [{"b", "a"}]>', (32,), (4,)),
            "manual-axes-order",
            "operand sharding at index 0 must have all",
        ),
        (manual('<@mesh, [{"a"}]>', (12,), (2,)), "not-divisible", "operand 0 - dim 0: dimension size 12 is not divis"),
        (manual('<@mesh, [{"a"}]>', (16,), (16,)), "local-shape", "operand shape, corresponding sharding, and region"),
        (manual("<@mesh, [{}]>", (16,), (16,), ("c",)), "unknown-axis", 'unknown manual axis: "c"'),
    ],
)
def test_each_broken_invariant_of_a_manual_computation(diagnostics: list[Diagnostic], code: str, message: str) -> None:
    """A broken manual computation gives a diagnostic with the operand, the dimension, and the fix."""
    assert one(diagnostics).code == code
    assert one(diagnostics).message.startswith(message)


def test_manual_computations_have_one_mesh_and_nest_on_different_axes() -> None:
    """In and out shardings are on one mesh; axes bound outside are not manual again; counts agree."""
    value = ManualValues((TensorSharding("mesh"),), ((),), ((),))
    other = ManualValues((TensorSharding("other"),), ((),), ((),))
    assert one(verify_manual_computation_shardings(("a",), value, other, MESHES)).code == "different-meshes"
    nested = verify_manual_computation_shardings(("a",), value, value, MESHES, bound_axes={"a"})
    assert one(nested).code == "bound-axis"
    short = ManualValues((TensorSharding("mesh"),), ((),), ())
    assert one(verify_manual_computation_shardings(("a",), value, short, MESHES)).message == (
        "number of op results and region results must match. Op has 1 op results and 0 region results"
    )


X = DimensionSharding((AxisRef("a"),))
TEXT = """
func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  return %x : tensor<8x4xf32>
}"""

WRONG: list[tuple[Any, str]] = [
    (TensorSharding("mesh", (DimensionSharding(("a",)), X)), "axes of DimensionSharding is ('a',)"),  # type: ignore[arg-type]
    (TensorSharding("mesh", ("a", None)), "dim_shardings of TensorSharding is ('a', None)"),  # type: ignore[arg-type]
    (TensorSharding("mesh", [X, X]), "not a tuple of DimensionSharding"),  # type: ignore[arg-type]
    (TensorSharding(None, (X, X)), "mesh of TensorSharding is None, not a text or Mesh"),  # type: ignore[arg-type]
    (TensorSharding("mesh", (X, DimensionSharding((), 1))), "is_closed of DimensionSharding is 1"),  # type: ignore[arg-type]
    (TensorSharding("mesh", (X, DimensionSharding((), False, 1.5))), "priority of DimensionSharding is 1.5"),  # type: ignore[arg-type]
    (TensorSharding("mesh", (DimensionSharding((AxisRef(0),)), X)), "name of AxisRef is 0, not a text"),  # type: ignore[arg-type]
    (TensorSharding("mesh", (DimensionSharding((AxisRef("a", 2),)), X)), "sub_axis of AxisRef is 2"),  # type: ignore[arg-type]
    (TensorSharding("mesh", (X, X), (), ("b",)), "unreduced_axes of TensorSharding is ('b',)"),  # type: ignore[arg-type]
    (TensorSharding(Mesh.of(a=True), (X, X)), "size of MeshAxis is True, not an integer"),
]


@pytest.mark.parametrize(("sharding", "message"), WRONG)
def test_a_sharding_of_wrong_parts_is_an_error_where_it_is_given(sharding: Any, message: str) -> None:
    """The part is named for `propagate` and for a `Builder`, and nothing fails inside."""
    with pytest.raises(sdy.ShardyError) as error:
        sdy.propagate(TEXT, {"a": 2}, in_shardings={0: sharding})
    assert message in str(error.value)
    b = sdy.Builder(mesh={"a": 2})
    with b.function("main", [sdy.tensor(8, 4)]) as (x,):
        with pytest.raises(sdy.ShardyError) as error:
            b.shard(x, sharding)
        b.return_(x)
    assert message in str(error.value)


@pytest.mark.parametrize("axis", [MeshAxis("a", 2.0), MeshAxis(None, 2), MeshAxis("\ud800", 2)])  # type: ignore[arg-type]
def test_an_axis_of_wrong_parts_is_an_error(axis: MeshAxis) -> None:
    """A size that is no integer, and a name that is no text of Unicode, are refused with the mesh."""
    with pytest.raises(sdy.ShardyError, match="of MeshAxis is"):
        sdy.propagate(TEXT, Mesh((axis,)))


def test_right_parts_have_no_problem() -> None:
    """Sub-axes, priorities, inlined meshes and integers of numpy are of the right types."""
    mesh = Mesh((MeshAxis("a", np.int64(4)),))  # type: ignore[arg-type]
    dim = DimensionSharding((AxisRef("a", SubAxis(1, 2)),), is_closed=False, priority=1)
    assert field_problem(TensorSharding(mesh, (dim, X), reduction_op="max")) is None
