"""Options of local programs."""

from __future__ import annotations

from shardy_py.values import frozen


@frozen(kw_only=True)
class LocalOptions:
    """Options of local programs.

    Args:
        strict: Refuse ops without a local form; otherwise they run on gathered operands, with a warning.
        per_dim_all_gather: Gather several dimensions with one all-gather each; otherwise with one for all.
        combine_multi_dimension_reduce_scatter: Scatter several dimensions with one reduce-scatter; otherwise with an
            all-reduce and a slice.
        optimize: Send the fewest bytes: equal things once, early or late, before loops or after them. Otherwise each
            op communicates as propagation left it.
        reorder_sums: Add partial results before they are combined, which changes how sums are rounded.
    """

    strict: bool = False
    per_dim_all_gather: bool = False
    combine_multi_dimension_reduce_scatter: bool = False
    optimize: bool = True
    reorder_sums: bool = True
