"""Rules that look at producers, users or regions."""

from __future__ import annotations

import pytest

from shardy_py.ir.graph.program import Block, Op, Region
from shardy_py.ir.graph.types import tensor
from tests.unit.dialects.stablehlo.ops import REGISTRY, arguments, make_op, rule_of

SLICED = "permutation={i}>"
JOINED = "need_replication={i}>"


def concatenate(values):
    """A concatenation of rows."""
    size = sum(value.shape[0] for value in values)
    return make_op("concatenate", values, [(size, 8)], dimension=0)


def slice_of(value, size=4):
    """The first rows of a value."""
    return make_op("slice", [value], [(size, 8)]).result


def test_joining_slices_is_a_permutation():
    """A concatenation of slices only, of whatever tensors, needs a permutation."""
    x, y = arguments((16, 8), (16, 8))
    assert rule_of(concatenate([slice_of(x), slice_of(y)])).endswith(SLICED)


def test_joining_a_tensor_with_slices_of_itself_is_a_permutation():
    """A concatenation of one tensor and slices of it needs a permutation."""
    (x,) = arguments((16, 8))
    assert rule_of(concatenate([slice_of(x), x, slice_of(x)])).endswith(SLICED)


def test_joining_different_tensors_needs_replication():
    """A concatenation of unrelated tensors, or of one tensor without any slice, needs replication."""
    x, y = arguments((16, 8), (16, 8))
    assert rule_of(concatenate([slice_of(x), y])).endswith(JOINED)
    assert rule_of(concatenate([x, x])).endswith(JOINED)


@pytest.mark.parametrize("name", ["stablehlo.constant", "sdy.constant", "chlo.constant"])
def test_a_constant_index_lets_the_update_be_sharded(name):
    """The update of a dynamic update slice needs no replication if all indices are constants of any dialect."""
    x, update, index = arguments((32, 4), (32, 1), ())
    constant = Op(index.owner.parent_op.program, name, [], [tensor(dtype="i32")]).result
    constant_rule = "<([i, j], [i, k], [], [])->([i, j]) {i=32, j=4, k=1}>"
    dynamic_rule = "<([i, j], [i, k], [], [])->([i, j]) {i=32, j=4, k=1} need_replication={k}>"
    assert rule_of(make_op("dynamic_update_slice", [x, update, constant, constant], [(32, 4)])) == constant_rule
    assert rule_of(make_op("dynamic_update_slice", [x, update, constant, index], [(32, 4)])) == dynamic_rule


def test_the_state_of_a_random_number_generator_is_blocked():
    """A combination of halves is pointwise, unless a random number generator uses it."""
    x, y = arguments((2,), (2,))
    op = make_op("custom_call", [x, y], [(2,)], call_target_name="X64Combine")
    assert rule_of(op) == "<([i], [i])->([i]) {i=2}>"
    make_op("rng_bit_generator", [op.result], [(2,), (8,)])
    assert rule_of(op) == "<([i], [i])->([i]) {i=2} need_replication={i} blocked_propagation={i}>"


NUMBERS = (
    "#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],"
    " index_vector_dim = 1>"
)
REDUCING = "<([k, j], [i, l], [i, j])->([k, j]) {i=3, j=8, k=16, l=1} reduction={i} need_replication={l}>"
REPLICATING = "<([k, j], [i, l], [i, j])->([k, j]) {i=3, j=8, k=16, l=1} need_replication={i, l}>"


def scatter(compute, *, inputs=1, dtype="f32"):
    """A scatter of rows; ``compute`` makes the returned values from the program and the region's arguments."""
    large, updates = tensor(16, 8, dtype=dtype), tensor(3, 8, dtype=dtype)
    values = arguments(*[large] * inputs, tensor(3, 1, dtype="i32"), *[updates] * inputs)
    program = values[0].owner.parent_op.program
    block = Block(program, [tensor(dtype=dtype)] * (2 * inputs))
    block.append(Op(program, "stablehlo.return", compute(program, block)))
    op = make_op("scatter", values, [large] * inputs, scatter_dimension_numbers=NUMBERS)
    op.add_region(Region([block]))
    return op


def reduction(*names, swapped=False):
    """A computation that reduces each input with its update by the op of the same number."""

    def compute(program, block):
        pairs = list(zip(block.arguments[: len(names)], block.arguments[len(names) :], strict=True))
        pairs = [pair[::-1] for pair in pairs] if swapped else pairs
        ops = [Op(program, name, pair, [pair[0].type]) for name, pair in zip(names, pairs, strict=True)]
        return [block.append(op).result for op in ops]

    return compute


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "minimum"])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_scatter_with_a_reduction_can_be_summed_up(name, swapped):
    """The batch of updates is a reduction factor if the computation is a known reduction, in any operand order."""
    assert rule_of(scatter(reduction(f"stablehlo.{name}", swapped=swapped))) == REDUCING


def test_logical_reductions_count_for_booleans_only():
    """And and or reduce booleans, not integers."""
    compute = reduction("stablehlo.or")
    assert rule_of(scatter(compute, dtype="i1")) == REDUCING
    assert rule_of(scatter(compute, dtype="i32")) == REPLICATING


@pytest.mark.parametrize(
    "compute",
    [
        reduction("stablehlo.subtract"),
        lambda program, block: [block.arguments[1]],
        lambda program, block: [
            block.append(Op(program, "stablehlo.add", [block.arguments[1]] * 2, [tensor()])).result
        ],
    ],
    ids=["no reduction", "overwriting", "wrong arguments"],
)
def test_other_scatters_replicate_their_updates(compute):
    """The batch of updates is replicated if the computation is anything else."""
    assert rule_of(scatter(compute)) == REPLICATING


def test_all_inputs_of_a_scatter_must_be_reduced_alike():
    """Several inputs count as reduced only if by the same op."""
    same = rule_of(scatter(reduction("stablehlo.add", "stablehlo.add"), inputs=2))
    mixed = rule_of(scatter(reduction("stablehlo.add", "stablehlo.multiply"), inputs=2))
    assert "reduction={i}" in same
    assert "reduction" not in mixed


@pytest.mark.parametrize("name", ["concatenate", "dynamic_update_slice", "custom_call", "scatter"])
def test_rules_with_a_context_are_marked(name):
    """Definitions whose rule looks around are marked, so that no rule is reused for an op that looks the same."""
    assert REGISTRY.find(f"stablehlo.{name}").contextual
