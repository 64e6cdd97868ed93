"""Shapes, layouts and tiles in XLA's notation: text, index arithmetic, bytes, shards, policies, pictures."""

from __future__ import annotations

from types import FunctionType

from shardy_py.layout.drawing import draw_svg, draw_text
from shardy_py.layout.index import (
    expanded_sizes,
    inverse_indexing_map,
    linear_index,
    multi_index,
    multi_indices,
    physical_strides,
    strides,
    to_indexing_map,
)
from shardy_py.layout.instruction import HloInstruction, HloOperand, parse_instruction
from shardy_py.layout.numpy_arrays import from_image, image, padding_mask
from shardy_py.layout.parse import parse_array, parse_layout, parse_shape
from shardy_py.layout.policies import POLICIES, ROW_MAJOR, TPU_V5E, LayoutPolicy, apply_policy, find_policy
from shardy_py.layout.shape import AnyShape, Bounded, OpaqueShape, Shape, TokenShape, TupleShape, arrays
from shardy_py.layout.sizes import (
    Footprint,
    array_size,
    footprint,
    logical_bytes,
    padded_bytes,
    padded_elements,
    shard_counts,
    shard_shape,
)
from shardy_py.layout.values import COMBINE, HBM, HOST, VMEM, Layout, MemorySpace, Split, Tile, default_layout
from shardy_py.support.arguments import checked
from shardy_py.support.element_types import ELEMENT_TYPES, bit_width, storage_bits, xla_element_type

__all__ = [
    "AnyShape",
    "Bounded",
    "OpaqueShape",
    "Shape",
    "TokenShape",
    "TupleShape",
    "arrays",
    "COMBINE",
    "HBM",
    "HOST",
    "VMEM",
    "Layout",
    "MemorySpace",
    "Split",
    "Tile",
    "default_layout",
    "ELEMENT_TYPES",
    "bit_width",
    "storage_bits",
    "xla_element_type",
    "parse_array",
    "parse_layout",
    "parse_shape",
    "HloInstruction",
    "HloOperand",
    "parse_instruction",
    "expanded_sizes",
    "linear_index",
    "multi_index",
    "multi_indices",
    "physical_strides",
    "strides",
    "inverse_indexing_map",
    "to_indexing_map",
    "from_image",
    "image",
    "padding_mask",
    "Footprint",
    "array_size",
    "footprint",
    "logical_bytes",
    "padded_bytes",
    "padded_elements",
    "shard_counts",
    "shard_shape",
    "POLICIES",
    "ROW_MAJOR",
    "TPU_V5E",
    "LayoutPolicy",
    "apply_policy",
    "find_policy",
    "draw_svg",
    "draw_text",
]

for _name in __all__:
    # Callers from outside get functions that check what they are given; inside each other they need not.
    if isinstance(globals()[_name], FunctionType):
        globals()[_name] = checked(globals()[_name])
del _name
