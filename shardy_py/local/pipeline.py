"""The passes that make the local program of a propagated program with explicit collectives."""

from __future__ import annotations

from shardy_py.api.options import LocalOptions
from shardy_py.ir.interfaces.passes import Pass
from shardy_py.local.convert_global_to_local import ConvertGlobalToLocalPass
from shardy_py.local.resolve_single_device_sharding import ResolveSingleDeviceShardingPass
from shardy_py.transforms.finish.reshard_to_collectives import ReshardToCollectivesPass


def local_passes(options: LocalOptions, padding: float | None = None) -> tuple[Pass, ...]:
    """Return the passes in order.

    Args:
        options: The options.
        padding: A number for the padding of all values; None leaves there what ops make of it.
    """
    return (
        # Conversion knows shardings over all devices only.
        ResolveSingleDeviceShardingPass(),
        # What goes to one device, or comes from there, is resharded between shardings over all devices now.
        ReshardToCollectivesPass(),
        ConvertGlobalToLocalPass(
            per_dim_all_gather=options.per_dim_all_gather,
            combine_multi_dimension_reduce_scatter=options.combine_multi_dimension_reduce_scatter,
            trust_shardings=False,
            gather_unsupported_ops=not options.strict,
            padding=padding,
        ),
    )
