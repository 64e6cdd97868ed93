"""The anatomy of shapes and operations as lines and as JSON."""

from __future__ import annotations

from typing import Any

from shardy_py.layout.index import expanded_sizes
from shardy_py.layout.instruction import HloInstruction
from shardy_py.layout.shape import AnyShape, Shape, TupleShape, arrays
from shardy_py.layout.sizes import element_bits, footprint
from shardy_py.support.element_types import bit_width

Rows = list[tuple[str, str]]


def shape_rows(shape: AnyShape) -> Rows:
    """Return the parts of a shape and its bytes in memory, as labels and texts."""
    rows = [("shape", str(shape))]
    if isinstance(shape, Shape):
        rows += _array_rows(shape)
    if isinstance(shape, TupleShape):
        rows += [(f"element {number}", str(element)) for number, element in enumerate(shape.elements)]
    if any(None in array.sizes for array in arrays(shape)):
        return [*rows, ("bytes", "unknown, a dimension is unbounded")]
    sizes = footprint(shape)
    return [
        *rows,
        ("elements", f"{sizes.elements}"),
        ("  padded", f"{sizes.padded_elements}"),
        ("logical bytes", f"{sizes.logical_bytes}"),
        ("padded bytes", f"{sizes.padded_bytes}"),
        ("  as ArraySize", f"{sizes.array_size}"),
        ("waste", f"{sizes.wasted_bytes} bytes, {sizes.waste:.1%}"),
    ]


def instruction_rows(instruction: HloInstruction) -> Rows:
    """Return the parts of an operation, as labels and texts; its shape follows from `shape_rows`."""
    rows = [("name", instruction.name), ("opcode", instruction.opcode)]
    if instruction.is_root:
        rows.append(("root", "the result of its computation"))
    if instruction.literal:
        rows.append(("literal", instruction.literal))
    for operand in instruction.operands:
        rows.append(("operand", operand.name if operand.shape is None else f"{operand.name}: {operand.shape}"))
    return rows + [("attribute", f"{name}={value}") for name, value in instruction.attributes]


def shape_data(shape: AnyShape) -> dict[str, Any]:
    """Return the parts and the memory of a shape as plain data with stable keys."""
    data: dict[str, Any] = {"shape": str(shape)}
    if isinstance(shape, Shape):
        data |= {
            "element_type": shape.element_type,
            "sizes": [size if size is None or isinstance(size, int) else str(size) for size in shape.sizes],
            "true_rank": shape.true_rank,
            "minor_to_major": list(shape.layout.minor_to_major),
            "tiles": [str(tile) for tile in shape.layout.tiles],
            "element_bits": element_bits(shape),
            "memory_space": shape.layout.memory_space.number,
        }
    if not any(None in array.sizes for array in arrays(shape)):
        sizes = footprint(shape)
        data |= {
            "elements": sizes.elements,
            "padded_elements": sizes.padded_elements,
            "logical_bytes": sizes.logical_bytes,
            "padded_bytes": sizes.padded_bytes,
            "array_size": sizes.array_size,
            "waste": round(sizes.waste, 6),
        }
    return data


def format_rows(rows: Rows) -> str:
    """Return labels and texts as lines with the texts in a column."""
    width = max(len(label) for label, _ in rows) + 2
    return "\n".join(f"{label:<{width}}{text}" for label, text in rows)


def _array_rows(shape: Shape) -> Rows:
    layout = shape.layout
    bits, width = element_bits(shape), bit_width(shape.element_type)
    stored = "" if bits == width else f", stored in {bits}"
    sizes = ", ".join(
        f"{letter}={'?' if size is None else size}" for letter, size in zip(shape.letters, shape.sizes, strict=True)
    )
    rows = [
        ("element type", f"{shape.element_type}, {width} bit{'s' * (width != 1)}{stored}"),
        ("dimensions", f"{shape.rank}{f' ({sizes})' if sizes else ''}, true rank {shape.true_rank}"),
        ("minor to major", ", ".join(map(str, layout.minor_to_major)) or "-"),
        ("tiles", " then ".join(map(str, layout.tiles)) or "none"),
    ]
    if layout.tiles and None not in shape.sizes:
        rows.append(("  expanded", "x".join(map(str, expanded_sizes(shape)))))
    if layout.tail_padding != 1:
        rows.append(("tail padding", f"to a multiple of {layout.tail_padding} elements"))
    for split in layout.splits:
        rows.append(("split", f"physical dimension {split.dimension} at {', '.join(map(str, split.indices))}"))
    return [*rows, ("memory space", f"{layout.memory_space.name} ({layout.memory_space})")]
