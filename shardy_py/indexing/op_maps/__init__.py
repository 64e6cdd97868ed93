"""Indexing maps of common kinds of ops, from shapes: which element of an operand an element of a result reads.

Each function is for one kind and one operand; a dialect puts them together for its ops. ``output_to_input`` maps have
the result's dimensions, ``input_to_output`` maps (where they exist) the operand's.
"""

from typing import TYPE_CHECKING

from shardy_py.support.homes import look_up_in

if TYPE_CHECKING:
    from shardy_py.indexing.op_maps.data_movement import (
        broadcast,
        broadcast_to_output,
        concatenate,
        concatenate_to_output,
        dynamic_slice,
        dynamic_update,
        gather,
        identity,
        pad,
        reverse,
        scalar,
        slice_,
        slice_to_output,
        transpose,
        transpose_to_output,
    )
    from shardy_py.indexing.op_maps.element_order import (
        bitcast,
        compose_raw,
        delinearized,
        linearized,
        reshape,
        strides_of,
    )
    from shardy_py.indexing.op_maps.reduction import (
        DotDimensions,
        SlidingWindow,
        dot,
        reduce,
        reduce_to_output,
        reduce_window,
    )

__all__ = [
    "DotDimensions",
    "SlidingWindow",
    "bitcast",
    "broadcast",
    "broadcast_to_output",
    "compose_raw",
    "concatenate",
    "concatenate_to_output",
    "delinearized",
    "dot",
    "dynamic_slice",
    "dynamic_update",
    "gather",
    "identity",
    "linearized",
    "pad",
    "reduce",
    "reduce_to_output",
    "reduce_window",
    "reshape",
    "reverse",
    "scalar",
    "slice_",
    "slice_to_output",
    "strides_of",
    "transpose",
    "transpose_to_output",
]

__getattr__ = look_up_in(
    __name__,
    {
        f"{__name__}.data_movement": (
            "broadcast broadcast_to_output concatenate concatenate_to_output dynamic_slice dynamic_update gather "
            "identity pad reverse scalar slice_ slice_to_output transpose transpose_to_output"
        ),
        f"{__name__}.element_order": "bitcast compose_raw delinearized linearized reshape strides_of",
        f"{__name__}.reduction": "DotDimensions SlidingWindow dot reduce reduce_to_output reduce_window",
    },
)
