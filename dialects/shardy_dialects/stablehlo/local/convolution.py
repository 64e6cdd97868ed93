"""The local form of a convolution: sharded groups are fewer groups."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_dialects.stablehlo.attributes import parse_convolution_dims
from shardy_py.ir.graph import Op, Value
from shardy_py.ir.local import Shard, no_local_form


def localize_convolution(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the convolution of the shards, with the groups that are on the device."""
    shard.check_kinds()
    dims = parse_convolution_dims(str(op.attributes["dimension_numbers"]))
    features = int(op.attributes["feature_group_count"])
    batches = int(op.attributes["batch_group_count"])
    input_sharding, kernel_sharding = shard.operand_shardings
    outputs = shard.parts(kernel_sharding, dims.kernel_output_feature)
    changes = {"feature_group_count": features, "batch_group_count": batches}
    if features > 1:
        changes["feature_group_count"] = _divided(
            features, shard.parts(input_sharding, dims.input_feature), outputs, "feature"
        )
    if batches > 1:
        changes["batch_group_count"] = _divided(
            batches, shard.parts(input_sharding, dims.input_batch), outputs, "batch"
        )
    return shard.copy(**changes)


def _divided(groups: int, inputs: int, outputs: int, kind: str) -> int:
    """Return the number of groups on each device.

    Args:
        groups: The number of all groups.
        inputs: The number of parts of the dimension of the input that has the groups.
        outputs: The number of parts of the output features.
        kind: The word for the groups.
    """
    if inputs == outputs and groups % inputs == 0:
        return groups // inputs
    if outputs == 1:
        # The parts of the input lie within the groups, along a reduced factor.
        return groups
    raise no_local_form(f"{groups} {kind} groups cannot be divided among {inputs} parts of the input")


FORMS = {"stablehlo.convolution": localize_convolution}
