"""The passes that make the local program of a propagated program with explicit collectives."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_py.api.options import LocalOptions
from shardy_py.ir.interfaces.passes import Pass
from shardy_py.local.communication.compose_slices import ComposeSlicesPass
from shardy_py.local.communication.drop_barriers import DropBarriersPass
from shardy_py.local.communication.exchange_in_place import ExchangeInPlacePass
from shardy_py.local.communication.inline import InlineExplicitCallsPass
from shardy_py.local.communication.known_places import UseKnownPlacesPass
from shardy_py.local.communication.merge_equal_ops import MergeEqualOpsPass
from shardy_py.local.communication.partial_sums import CombinePartialSumsLatePass
from shardy_py.local.communication.plan import PlanCommunicationPass
from shardy_py.local.communication.reduce_in_parts import ReduceInPartsPass
from shardy_py.local.communication.run_as_used import RunAsUsedPass
from shardy_py.local.communication.sent_bytes import CountSentBytesPass
from shardy_py.local.communication.tidy import TidyLocalProgramPass
from shardy_py.local.convert_global_to_local import ConvertGlobalToLocalPass
from shardy_py.local.resolve_single_device_sharding import ResolveSingleDeviceShardingPass
from shardy_py.transforms.finish.reshard_to_collectives import ReshardToCollectivesPass


def communication_passes(*, reorder_sums: bool = True) -> tuple[Pass, ...]:
    """Return the passes that lower the bytes that devices send, on a program with explicit collectives.

    Args:
        reorder_sums: Whether sums may be computed in another order.
    """
    return (
        # The result of a barrier may have no sharding, and is not whole for that.
        DropBarriersPass(),
        # Conversion merges equal ops, too: what it needs at least are the bytes after that.
        MergeEqualOpsPass(),
        CountSentBytesPass(),
        # A function that is called several times has one sharding for all its callers.
        InlineExplicitCallsPass(),
        # What is sliced from a tensor with other shards than its source has would move there and back.
        ComposeSlicesPass(),
        # A gather that nothing needs would count in the plan.
        UseKnownPlacesPass(),
        # The plan changes axes that ops have; it does not look for others.
        ExchangeInPlacePass(),
        # Nor does it look for another dimension for axes that an op has.
        RunAsUsedPass(),
        # Equal operands of several ops are then one value, with one plan.
        MergeEqualOpsPass(),
        # Before the plan gathers what sums that could wait for each other seem to cost.
        *((CombinePartialSumsLatePass(),) if reorder_sums else ()),
        PlanCommunicationPass(),
        # What the plan leaves whole on several devices these can combine together.
        ReduceInPartsPass(),
        MergeEqualOpsPass(),
    )


def local_passes(
    options: LocalOptions, padding: float | None = None, communication: Sequence[Pass] | None = None
) -> tuple[Pass, ...]:
    """Return the passes in order.

    Args:
        options: The options.
        padding: A number for the padding of all values; None leaves there what ops make of it.
        communication: The passes on communication that run; None for all, if the options ask for them.
    """
    if communication is None:
        communication = communication_passes(reorder_sums=options.reorder_sums) if options.optimize else ()
    return (
        # Conversion knows shardings over all devices only.
        ResolveSingleDeviceShardingPass(),
        # What goes to one device, or comes from there, is resharded between shardings over all devices now.
        ReshardToCollectivesPass(),
        *communication,
        ConvertGlobalToLocalPass(
            per_dim_all_gather=options.per_dim_all_gather,
            # An all-reduce and a slice in its place would send twice as much.
            combine_multi_dimension_reduce_scatter=options.combine_multi_dimension_reduce_scatter or options.optimize,
            trust_shardings=False,
            gather_unsupported_ops=not options.strict,
            padding=padding,
        ),
        # Each local form computes the offsets of the device for itself.
        *((TidyLocalProgramPass(),) if options.optimize else ()),
    )
