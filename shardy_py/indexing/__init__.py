"""Indexing maps: from the index of an element to the index of the element that it reads in another tensor.

Sharding rules are derived from them, layouts are maps from indices to offsets in memory, kernels compute with them.
"""

from typing import TYPE_CHECKING

from shardy_py.support.homes import look_up_in

if TYPE_CHECKING:
    from shardy_py.indexing.affine_map import AffineMap
    from shardy_py.indexing.composition import (
        compose,
        rescale_symbols,
        simplify,
        without_unused_dims,
        without_unused_symbols,
        without_variables,
    )
    from shardy_py.indexing.expressions import (
        Binary,
        Constant,
        Expression,
        Variable,
        VariableKind,
        constant,
        dim,
        runtime,
        symbol,
    )
    from shardy_py.indexing.indexing_map import Bound, IndexingMap, Interval, OpIndexing, bounds_of
    from shardy_py.indexing.ranges import first_outside

__all__ = [
    "AffineMap",
    "Binary",
    "Bound",
    "Constant",
    "Expression",
    "IndexingMap",
    "Interval",
    "OpIndexing",
    "Variable",
    "VariableKind",
    "bounds_of",
    "compose",
    "constant",
    "dim",
    "first_outside",
    "rescale_symbols",
    "runtime",
    "simplify",
    "symbol",
    "without_unused_dims",
    "without_unused_symbols",
    "without_variables",
]

__getattr__ = look_up_in(
    __name__,
    {
        f"{__name__}.affine_map": "AffineMap",
        f"{__name__}.composition": (
            "compose rescale_symbols simplify without_unused_dims without_unused_symbols without_variables"
        ),
        f"{__name__}.expressions": "Binary Constant Expression Variable VariableKind constant dim runtime symbol",
        f"{__name__}.indexing_map": "Bound IndexingMap Interval OpIndexing bounds_of",
        f"{__name__}.ranges": "first_outside",
    },
)
