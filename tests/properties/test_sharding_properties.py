"""Laws of the vocabulary, against a model in which an axis is a digit of the device number, and against jaxlib."""

from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardy_py.sharding import (
    AxisRef,
    Mesh,
    OpShardingRule,
    format_attribute,
    parse_attribute,
    parse_axis_ref,
    parse_dim_sharding,
    parse_manual_axes,
    parse_mesh,
    parse_op_sharding_rule,
    parse_tensor_sharding,
    verify_mesh,
    verify_op_sharding_rule,
    verify_tensor_sharding,
)
from shardy_py.sharding.axes import add_axis_or_merge, axes_size, make_axis, prefix_without_overlap
from shardy_py.sharding.axis_lists import (
    PrefixStatus,
    any_overlap,
    axis_order_key,
    axis_set_difference,
    greatest_common_prefix,
    prefix_status,
    sort_and_merge,
    split_axes,
    truncate_without_overlap,
)
from shardy_py.sharding.mesh import MeshAxis
from shardy_py.testing import strategies as sdy

SIZED_MESHES = sdy.meshes().filter(lambda mesh: mesh.total_size > 1)


def digit(axis: AxisRef, mesh: Mesh, device: int) -> int:
    """The position of a device along an axis, computed from the row-major device number alone."""
    stride = 1
    for other in reversed(mesh.axes):
        if other.name == axis.name:
            break
        stride *= other.size
    full = mesh.axis_size(axis.name)
    pre, size = (axis.sub_axis.pre_size, axis.sub_axis.size) if axis.sub_axis else (1, full)
    return device // stride % full // (full // (pre * size)) % size


def shards(axes: Sequence[AxisRef], mesh: Mesh) -> list[int]:
    """The shard every device holds of a dimension that is sharded on the axes."""
    result = []
    for device in range(mesh.total_size):
        position = 0
        for axis in axes:
            position = position * axis.size(mesh) + digit(axis, mesh, device)
        result.append(position)
    return result


def count(*shard_lists: list[int]) -> int:
    """The number of different combinations of shards."""
    return len(set(zip(*shard_lists, strict=True)))


def independent(first: Sequence[AxisRef], second: Sequence[AxisRef], mesh: Mesh) -> bool:
    """Whether knowing the shard of one says nothing about the other."""
    first_shards, two = shards(first, mesh), shards(second, mesh)
    return count(first_shards, two) == count(first_shards) * count(two)


def is_prefix(first: Sequence[AxisRef], second: Sequence[AxisRef], mesh: Mesh) -> bool:
    """Whether cutting into ``second`` is cutting into ``first``, then cutting each piece further."""
    ratio, rest = divmod(axes_size(second, mesh), axes_size(first, mesh))
    return rest == 0 and [item // ratio for item in shards(second, mesh)] == shards(first, mesh)


def prefixes(axis: AxisRef, mesh: Mesh) -> Iterator[AxisRef]:
    """All prefixes of an axis that are valid sub-axes, longest first."""
    for size in reversed(sdy.divisors(axis.size(mesh))[1:]):
        yield make_axis(axis.name, axis.pre_size, size, mesh)


@given(st.data())
def test_two_axes_relate_as_their_digits_do(data: st.DataObject) -> None:
    """Containing, overlapping, prefix and suffix are what they say on the digits of the devices."""
    mesh = data.draw(SIZED_MESHES)
    a, b = data.draw(sdy.coexisting_pairs(mesh))
    first, second = shards([a], mesh), shards([b], mesh)
    assert a.can_coexist(b)
    assert a.overlaps(b) == (not independent([a], [b], mesh))
    assert a.contains(b) == (count(first, second) == count(first))
    assert a.prefix_of(b) == is_prefix([a], [b], mesh)
    ends_with = second == first or (
        b.size(mesh) % a.size(mesh) == 0 and [item % a.size(mesh) for item in second] == first
    )
    assert a.suffix_of(b, mesh) == ends_with


@given(st.data())
def test_overlap_is_the_common_part(data: st.DataObject) -> None:
    """The overlap lies in both axes and is as large as the information they share."""
    mesh = data.draw(SIZED_MESHES)
    a, b = data.draw(sdy.coexisting_pairs(mesh))
    common = a.overlap(b)
    shared = a.size(mesh) * b.size(mesh) // count(shards([a], mesh), shards([b], mesh))
    assert (common.size(mesh) if common else 1) == shared
    assert common is None or (a.contains(common) and b.contains(common))
    assert common == b.overlap(a)


@given(st.data())
def test_remainders_are_the_largest_free_parts(data: st.DataObject) -> None:
    """The prefix without overlap is independent of the other axis and no longer prefix is; the suffix alike."""
    mesh = data.draw(SIZED_MESHES)
    a, b = data.draw(sdy.coexisting_pairs(mesh))
    prefix, suffix = a.prefix_without_overlap(b), a.suffix_without_overlap(b, mesh)
    longest = next((item for item in prefixes(a, mesh) if item.can_coexist(b) and independent([item], [b], mesh)), None)
    assert (prefix.size(mesh) if prefix else 1) == (longest.size(mesh) if longest else 1)
    assert prefix is None or (is_prefix([prefix], [a], mesh) and independent([prefix], [b], mesh))
    if suffix is not None:
        assert suffix.suffix_of(a, mesh)
        assert independent([suffix], [b], mesh)
    if a.overlaps(b):
        parts = [item for item in (prefix, a.overlap(b), suffix) if item is not None]
        assert shards(parts, mesh) == shards([a], mesh)


@given(st.data())
def test_coexistence_needs_a_common_factorisation(data: st.DataObject) -> None:
    """Two axes coexist exactly if some chain of divisors has all their ends."""
    mesh = data.draw(SIZED_MESHES)
    a, b = data.draw(sdy.axis_refs(mesh)), data.draw(sdy.axis_refs(mesh))
    ends = sorted({point for axis in (a, b) for point in (axis.pre_size, axis.next_pre_size(mesh))})
    chained = all(second % first == 0 for first, second in pairwise(ends))
    assert a.can_coexist(b) == (a.name != b.name or chained)
    assert a.can_coexist(b) == b.can_coexist(a)


@given(st.data())
def test_merging_keeps_the_shards(data: st.DataObject) -> None:
    """Adding axes one by one with merging shards as the list of the separate axes does."""
    mesh = data.draw(SIZED_MESHES)
    parts = data.draw(sdy.partitions(mesh))
    result: list[AxisRef] = []
    for part in parts:
        add_axis_or_merge(result, part, mesh)
    assert shards(result, mesh) == shards(parts, mesh)
    assert not any(first.can_merge(second) for first, second in pairwise(result))


@given(st.data())
def test_sorting_and_merging_gives_one_form(data: st.DataObject) -> None:
    """Any order of the same parts sorts and merges to the same list, in mesh order."""
    mesh = data.draw(SIZED_MESHES)
    parts = data.draw(sdy.partitions(mesh))
    all_axes = tuple(AxisRef(axis.name) for axis in mesh.axes if axis.size > 1)
    assert sort_and_merge(parts, mesh) == all_axes
    some = parts[: len(parts) // 2]
    assert sort_and_merge(some, mesh) == sort_and_merge(some[::-1], mesh)
    assert count(shards(sort_and_merge(some, mesh), mesh), shards(some, mesh)) == axes_size(some, mesh)


@given(st.data())
def test_prefix_status_of_lists_is_that_of_their_shards(data: st.DataObject) -> None:
    """A list is a prefix of another exactly if it shards as the start of it, wherever both are cut alike."""
    mesh = data.draw(SIZED_MESHES)
    parts = data.draw(sdy.partitions(mesh))
    ends = data.draw(st.tuples(st.integers(0, len(parts)), st.integers(0, len(parts))))
    first, second = (sdy.merged(parts[:end], mesh) for end in ends)
    status = prefix_status(first, second)
    assert (status is PrefixStatus.EQUAL) == (ends[0] == ends[1])
    assert (status is PrefixStatus.STRICT_PREFIX) == (ends[0] < ends[1])


@given(st.data())
def test_common_prefix_of_lists_starts_both(data: st.DataObject) -> None:
    """The greatest common prefix is a prefix of both lists, and of a list and itself it is the list."""
    mesh = data.draw(SIZED_MESHES)
    parts = data.draw(sdy.partitions(mesh))
    shared = data.draw(st.integers(0, len(parts)))
    first = sdy.merged(parts[:shared], mesh)
    second = sdy.merged([*parts[:shared], *reversed(parts[shared:])], mesh)
    common = greatest_common_prefix(first, second)
    assert common == first
    assert greatest_common_prefix(second, first) == common
    assert is_prefix(common, second, mesh)


@given(st.data())
def test_truncation_is_the_largest_free_prefix(data: st.DataObject) -> None:
    """A truncated list shares nothing with the others, and it cannot be one valid step longer."""
    mesh = data.draw(SIZED_MESHES)
    parts = data.draw(sdy.partitions(mesh))
    axes = sdy.merged(parts, mesh)
    others = tuple(data.draw(st.lists(st.sampled_from(parts), max_size=2, unique=True)))
    result = truncate_without_overlap(axes, others)
    assert is_prefix(result, axes, mesh)
    assert not any_overlap(result, others)
    free = 0
    while free < len(parts) and parts[free] not in others:
        free += 1
    assert shards(result, mesh) == shards(parts[:free], mesh)


@given(st.data())
def test_difference_leaves_what_the_others_do_not_have(data: st.DataObject) -> None:
    """The difference shares nothing with the others, and together with them it determines the list."""
    mesh = data.draw(SIZED_MESHES)
    parts = data.draw(sdy.partitions(mesh))
    axes = sdy.merged(parts[: data.draw(st.integers(0, len(parts)))], mesh)
    others = data.draw(st.lists(st.sampled_from(parts), max_size=3, unique=True))
    rest = axis_set_difference(axes, others, mesh)
    assert not any_overlap(rest, others)
    known = shards(rest, mesh), shards(others, mesh)
    assert count(*known) == count(*known, shards(axes, mesh))
    shared = [item for item in others if any_overlap([item], axes)]
    assert axes_size(rest, mesh) * axes_size(shared, mesh) == axes_size(axes, mesh)


@given(st.data())
def test_splitting_a_mesh_names_every_device_once(data: st.DataObject) -> None:
    """The axes of a mesh split at sub-axes number the devices row-major, and have each sub-axis as a product."""
    mesh = data.draw(SIZED_MESHES)
    axes = data.draw(sdy.axis_lists(mesh))
    parts = split_axes(axes, mesh)
    assert shards(parts, mesh) == list(range(mesh.total_size))
    assert all(part.contains(axis) or not part.overlaps(axis) or axis.contains(part) for part in parts for axis in axes)


@given(st.data())
def test_the_order_by_name_is_total_and_keeps_parts_in_place(data: st.DataObject) -> None:
    """A full axis sorts after its own prefixes and before its other parts; mesh order agrees within a name."""
    mesh = data.draw(SIZED_MESHES)
    a, b = data.draw(sdy.coexisting_pairs(mesh))
    assert (axis_order_key(a) == axis_order_key(b)) == (a == b)
    assert (axis_order_key(a) < axis_order_key(b)) == (mesh.sort_key(a) < mesh.sort_key(b))
    if a.sub_axis is None and b.sub_axis is not None:
        assert (axis_order_key(b) < axis_order_key(a)) == (b.pre_size == 1)


@given(st.data())
def test_prefix_against_many_is_the_shortest_of_the_prefixes(data: st.DataObject) -> None:
    """The prefix that overlaps none of several axes is the shortest of those for each of them."""
    mesh = data.draw(SIZED_MESHES)
    parts = data.draw(sdy.partitions(mesh))
    axis = data.draw(st.sampled_from(sdy.merged(parts, mesh)))
    others = data.draw(st.lists(st.sampled_from(parts), max_size=3, unique=True))
    each = [axis.prefix_without_overlap(other) for other in others]
    sizes = [item.size(mesh) if item else 1 for item in each] + [axis.size(mesh)]
    result = prefix_without_overlap(axis, others)
    assert (result.size(mesh) if result else 1) == min(sizes)


ODD_MESHES = sdy.meshes(axis_names=sdy.names)


@given(st.data())
def test_every_value_parses_back_from_its_text(data: st.DataObject) -> None:
    """Parsing the text of a value gives the value, whatever its names."""
    mesh = data.draw(ODD_MESHES)
    name = data.draw(st.one_of(sdy.names, st.just(mesh), sdy.special_meshes))
    axis = data.draw(sdy.axis_refs(mesh))
    dim = data.draw(sdy.dim_shardings(mesh))
    sharding = data.draw(sdy.tensor_shardings(mesh, mesh_name=name, reductions=True))
    manual = data.draw(sdy.manual_axes)
    assert parse_mesh(str(mesh)) == mesh
    assert parse_axis_ref(str(axis)) == axis
    assert parse_dim_sharding(str(dim)) == dim
    assert parse_tensor_sharding(str(sharding)) == sharding
    assert parse_manual_axes(str(manual)) == manual


@given(sdy.op_sharding_rules())
def test_every_rule_parses_back_from_its_text(rule: OpShardingRule) -> None:
    """Parsing the text of a rule gives the rule, also beyond factor z."""
    assert parse_op_sharding_rule(str(rule)) == rule
    assert verify_op_sharding_rule(rule, *sdy.rule_shapes(rule)) == []


@given(st.data())
def test_every_attribute_parses_back_from_its_text(data: st.DataObject) -> None:
    """A whole attribute parses back to its value, also when written the long way."""
    mesh = data.draw(ODD_MESHES)
    value = data.draw(
        st.one_of(
            st.just(mesh),
            sdy.special_meshes,
            sdy.tensor_shardings(mesh),
            sdy.shardings_per_value(mesh),
            sdy.manual_axes,
            sdy.op_sharding_rules(),
        )
    )
    text = format_attribute(value)
    assert parse_attribute(text) == value
    if text.startswith("#sdy."):
        assert parse_attribute(f"#sdy<{text[5:]}>") == value


@given(st.data())
def test_generated_values_are_valid(data: st.DataObject) -> None:
    """The strategies of valid values give values without a diagnostic."""
    mesh = data.draw(SIZED_MESHES)
    sharding = data.draw(sdy.tensor_shardings(mesh))
    assert verify_mesh(mesh) == []
    assert verify_tensor_sharding(sharding, mesh, (8,) * sharding.rank) == []


@pytest.fixture(scope="module")
def ir() -> Iterator[Any]:
    """The MLIR bindings of jaxlib with the dialects loaded and one context entered."""
    pytest.importorskip("jaxlib.mlir.dialects.sdy", reason="needs jaxlib, to compare with the reference")
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import sdy as sdy_dialect
    from jaxlib.mlir.dialects import stablehlo

    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    with ir.Context() as context:
        context.append_dialect_registry(registry)
        sdy_dialect.register_dialect(context)
        stablehlo.register_dialect(context)
        context.load_all_available_dialects()
        yield ir


def accepts(ir: Any, parse: Any, text: str) -> bool:
    """Whether the reference parses and verifies a text."""
    try:
        parse(text)
    except (ir.MLIRError, ValueError):
        return False
    return True


@given(st.data())
def test_the_reference_prints_our_text_unchanged(ir: Any, data: st.DataObject) -> None:
    """MLIR parses the text of every attribute and prints the same."""
    mesh = data.draw(ODD_MESHES)
    values = [
        mesh,
        data.draw(sdy.special_meshes),
        data.draw(sdy.tensor_shardings(mesh, mesh_name=data.draw(sdy.names))),
        data.draw(sdy.tensor_shardings(mesh, mesh_name=mesh)),
        data.draw(sdy.shardings_per_value(mesh)),
        data.draw(sdy.manual_axes),
        data.draw(sdy.op_sharding_rules()),
    ]
    for value in values:
        text = format_attribute(value)
        assert str(ir.Attribute.parse(text)) == text


@given(st.lists(st.tuples(st.sampled_from("xyz"), st.integers(-1, 3)), max_size=3), st.lists(st.integers(-1, 5)))
@settings(max_examples=100, deadline=None)
def test_the_reference_agrees_which_meshes_are_valid(ir: Any, axes: list[tuple[str, int]], ids: list[int]) -> None:
    """A mesh has a diagnostic exactly if MLIR refuses it."""
    mesh = Mesh(tuple(MeshAxis(*axis) for axis in axes), tuple(ids))
    assert (not verify_mesh(mesh)) == accepts(ir, ir.Attribute.parse, format_attribute(mesh)), mesh


@given(st.data())
@settings(max_examples=120, deadline=None)
def test_the_reference_agrees_which_shardings_are_valid(ir: Any, data: st.DataObject) -> None:
    """A sharding has a diagnostic exactly if MLIR refuses it on a function argument."""
    mesh = Mesh(data.draw(SIZED_MESHES).axes)
    rank = data.draw(st.integers(0, 2))
    sharding = data.draw(sdy.sloppy_tensor_shardings(mesh, rank=rank))
    shape = (8,) * rank
    type_ = "tensor<" + "8x" * rank + "f32>"
    text = f"""
      sdy.mesh @mesh = {mesh}
      func.func @main(%arg0: {type_} {{sdy.sharding = {format_attribute(sharding)}}}) {{ return }}"""
    problems = verify_tensor_sharding(sharding, mesh, shape)
    assert (not problems) == accepts(ir, ir.Module.parse, text), (text, problems)


@given(sdy.sloppy_op_sharding_rules())
@settings(max_examples=120, deadline=None)
def test_the_reference_agrees_which_rules_are_valid(ir: Any, rule: OpShardingRule) -> None:
    """A rule has a diagnostic exactly if MLIR refuses it on an op of matching types."""
    if any(mapping == ((),) for mapping in rule.mappings):
        return  # its text is that of a scalar's mapping
    operand_shapes, result_shapes = sdy.rule_shapes(rule)
    operand_types, result_types = (
        [f"tensor<{''.join(f'{size}x' for size in shape)}f32>" for shape in shapes]
        for shapes in (operand_shapes, result_shapes)
    )
    arguments = ", ".join(f"%arg{index}: {type_}" for index, type_ in enumerate(operand_types))
    uses = ", ".join(f"%arg{index}" for index in range(len(operand_types)))
    text = f"""
      func.func @main({arguments}) {{
        %0:{len(result_types)} = stablehlo.custom_call @foo({uses}) {{sdy.sharding_rule = {format_attribute(rule)}}}
          : ({", ".join(operand_types)}) -> ({", ".join(result_types)})
        return
      }}"""
    problems = verify_op_sharding_rule(rule, operand_shapes, result_shapes)
    assert (not problems) == accepts(ir, ir.Module.parse, text), (text, problems)


def test_the_digit_model_is_the_definition() -> None:
    """On a mesh of 2 x 8, sub-axis (2)2 of the second axis is the middle bit of the lower three."""
    mesh = Mesh.of(x=2, y=8)
    axis = parse_axis_ref('"y":(2)2')
    expected = [middle for _, _, middle, _ in product((0, 1), repeat=4)]
    assert shards([axis], mesh) == expected
