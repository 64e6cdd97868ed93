"""Results in notebooks: the arguments and results of the main function with their shardings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from shardy_py.api.main_function import argument_names, arguments_of, result_names
from shardy_py.ir.graph.program import Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.report.sharding_html import ShardedTensor, sharding_table

if TYPE_CHECKING:
    from shardy_py.api.result import CoreResult


def result_html(result: CoreResult) -> str:
    """Return the table of a result."""
    main = result.main
    tensors = [
        *_tensors(result, argument_names(main), arguments_of(main)),
        *_tensors(result, result_names(main), main.function_results),
    ]
    axes = [(axis.name, axis.size) for mesh in result.program.meshes.values() for axis in mesh.axes]
    return sharding_table(repr(result), axes, tensors)


def _tensors(result: CoreResult, names: Sequence[str], values: Sequence[Value]) -> Iterator[ShardedTensor]:
    for name, value in zip(names, values, strict=True):
        shape = value.type.shape if isinstance(value.type, TensorType) else ()
        yield ShardedTensor(name, result.program.shardings.get(value.id), str(value.type), shape)
