"""The fast form of aggressive propagation, against the slow and clear one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shardy_py.propagation.step_outcomes import project_step, propagate_step
from shardy_py.propagation.steps.factors import StepContext, Strategy
from shardy_py.propagation.steps.whole_axis import (
    WholeAxisTensor,
    open_tensor,
    propagate_whole_axes,
    whole_axis_rule,
    whole_axis_tensor,
)
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding

MESH = Mesh.of(a=2, b=2, c=3, d=4)


@st.composite
def whole_axis_rules(draw: st.DrawFn) -> OpShardingRule:
    """Draw a rule each of whose tensors has some of the factors, in any order."""
    sizes = tuple(draw(st.lists(st.sampled_from([1, 2, 4, 5, 8]), min_size=1, max_size=4)))
    factors = st.lists(st.sampled_from(range(len(sizes))), unique=True, max_size=len(sizes))
    mappings = factors.map(lambda chosen: tuple((factor,) for factor in chosen))
    operands = tuple(draw(st.lists(mappings, min_size=1, max_size=3)))
    return OpShardingRule(sizes, operands, tuple(draw(st.lists(mappings, min_size=1, max_size=2))))


@st.composite
def whole_shardings(draw: st.DrawFn, rank: int) -> TensorSharding | None:
    """Draw a sharding along whole axes, each used once, or none."""
    axes = draw(st.permutations("abcd"))
    taken = [draw(st.integers(0, 2)) for _ in range(rank + 2)]
    parts = []
    for count in taken:
        parts.append(tuple(AxisRef(name) for name in axes[:count]))
        axes = axes[count:]
    dims = tuple(DimensionSharding(part, draw(st.booleans())) for part in parts[:rank])
    sharding = TensorSharding("mesh", dims, tuple(sorted(parts[rank], key=MESH.sort_key)), parts[rank + 1])
    return draw(st.none() | st.just(sharding))


@given(whole_axis_rules(), st.data())
def test_the_fast_form_does_what_the_general_one_does(rule: OpShardingRule, data: st.DataObject) -> None:
    """The same tensors get the same axes, whatever the shardings and the directions."""
    shardings = [data.draw(whole_shardings(len(mapping))) for mapping in rule.mappings]
    directions = tuple(data.draw(st.integers(0, 3)) for _ in rule.factor_sizes)
    is_elementwise = data.draw(st.booleans())
    coarse_rule = whole_axis_rule(rule)
    assert coarse_rule is not None
    tensors = [
        open_tensor(len(mapping)) if item is None else _without_sub_axes(item)
        for item, mapping in zip(shardings, rule.mappings, strict=True)
    ]
    changes = propagate_whole_axes(coarse_rule, tensors, directions, MESH, is_elementwise=is_elementwise)

    projection = project_step(rule, shardings, MESH)
    context = StepContext(rule.factor_sizes, directions, MESH, conservative=False, is_elementwise=is_elementwise)
    updated = propagate_step(projection, context, Strategy.AGGRESSIVE)
    assert sorted(changes) == [index for index, changed in enumerate(updated) if changed]
    for index, dims in changes.items():
        factors = projection.tensors[index].factors
        expected = [tuple(axis.name for axis in factors[dim[0]].axes) for dim in rule.mappings[index]]
        assert dims == expected


def _without_sub_axes(sharding: TensorSharding) -> WholeAxisTensor:
    tensor = whole_axis_tensor(sharding)
    assert tensor is not None
    return tensor
