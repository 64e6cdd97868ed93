"""The traits of the ops, as the reference was seen to treat them."""

from __future__ import annotations

import pytest

from shardy_py.plugins import (
    AsSdyConstant,
    Broadcast,
    Concatenation,
    ConstantFoldable,
    ConstantLike,
    Contraction,
    CrossDeviceReduction,
    DynamicSlice,
    DynamicUpdate,
    Elementwise,
    FoldsIntoConstant,
    ForwardPassThrough,
    IsTerminator,
    LibraryCall,
    Nondeterministic,
    PassThrough,
    Pure,
    RecursiveMemoryEffects,
    Reduction,
    Reshape,
    Sort,
    Sum,
    UnitedByMlir,
    Unpartitioned,
    UpstreamDataFlow,
)
from tests.unit.dialects.stablehlo.ops import REGISTRY, make_op

ELEMENTWISE = {Pure, Elementwise, ConstantFoldable}

TRAITS = {
    "stablehlo.abs": ELEMENTWISE,
    "stablehlo.clamp": ELEMENTWISE,
    "stablehlo.compare": ELEMENTWISE,
    "stablehlo.reduce_precision": ELEMENTWISE,
    "stablehlo.select": ELEMENTWISE,
    "chlo.broadcast_add": ELEMENTWISE,
    "chlo.constant_like": {*ELEMENTWISE, FoldsIntoConstant("FoldsIntoConstant", "chlo.constant", "value")},
    "chlo.erf": ELEMENTWISE,
    "chlo.next_after": {Pure},
    "stablehlo.all_gather": set(),
    "stablehlo.add": {*ELEMENTWISE, Sum},
    "stablehlo.all_reduce": {CrossDeviceReduction},
    "stablehlo.broadcast_in_dim": {Pure, Broadcast, ConstantFoldable},
    "stablehlo.case": {RecursiveMemoryEffects},
    "stablehlo.concatenate": {Pure, Concatenation},
    "stablehlo.constant": {Pure, ConstantLike, AsSdyConstant, UnitedByMlir},
    "stablehlo.cross-replica-sum": {Pure},
    "stablehlo.dot_general": {Pure, Contraction},
    "stablehlo.dynamic_slice": {Pure, ForwardPassThrough, DynamicSlice},
    "stablehlo.dynamic_update_slice": {Pure, ForwardPassThrough, DynamicUpdate},
    "stablehlo.infeed": set(),
    "stablehlo.iota": {Pure, ConstantFoldable},
    "stablehlo.batch_norm_grad": {Pure, Unpartitioned},
    "stablehlo.map": {RecursiveMemoryEffects, Unpartitioned},
    "stablehlo.optimization_barrier": {Pure},
    "stablehlo.reduce": {RecursiveMemoryEffects, Reduction},
    "stablehlo.reshape": {Pure, PassThrough, ConstantFoldable, Reshape},
    "stablehlo.return": {Pure, IsTerminator},
    "stablehlo.rng": {Nondeterministic},
    "stablehlo.rng_bit_generator": {Pure, Unpartitioned},
    "stablehlo.slice": {Pure, ConstantFoldable},
    "stablehlo.sort": {RecursiveMemoryEffects, Sort, LibraryCall},
    "stablehlo.transpose": {Pure, PassThrough},
    "stablehlo.while": {RecursiveMemoryEffects, UpstreamDataFlow},
}


@pytest.mark.parametrize("name", sorted(TRAITS))
def test_the_traits_of_an_op(name):
    """Every op has exactly the traits that explain when the reference erases, copies and prefers it."""
    assert REGISTRY.get_traits(make_op(name, [], [])) == TRAITS[name]


def test_a_bitcast_is_elementwise_if_it_keeps_the_shape():
    """A bitcast between element types of one width is elementwise, any other is not."""
    same = make_op("bitcast_convert", [(4, 2)], [(4, 2)])
    other = make_op("bitcast_convert", [(4, 2)], [(4,)])
    assert REGISTRY.get_traits(same) == ELEMENTWISE
    assert REGISTRY.get_traits(other) == {Pure}


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"call_target_name": "foo"}, {Pure}),
        ({"call_target_name": "foo", "has_side_effect": False}, {Pure}),
        ({"call_target_name": "foo", "has_side_effect": True}, set()),
        ({"call_target_name": "MoveToHost"}, {Pure, PassThrough}),
        ({"call_target_name": "Qr"}, {Pure, Unpartitioned}),
        ({"call_target_name": "MoveToDevice", "has_side_effect": True}, {PassThrough}),
    ],
)
def test_the_traits_of_a_custom_call_depend_on_its_attributes(attributes, expected):
    """A custom call is pure unless it says otherwise, and passes through if it moves data to or from the host."""
    assert REGISTRY.get_traits(make_op("custom_call", [(4,)], [(4,)], **attributes)) == expected
