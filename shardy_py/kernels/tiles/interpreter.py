"""Running kernels at the level of tiles: many tiles at once, as arrays whose first dimension counts tiles.

What a tile reads outside of its buffer is poison: a NaN, or an unlikely integer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Any, cast

import ml_dtypes
import numpy as np
from xdsl.dialects import arith, builtin, tensor
from xdsl.ir import Block, Operation, SSAValue

from shardy_py.errors import Diagnostic, UnsupportedError, VerificationError
from shardy_py.kernels.locations import file_line
from shardy_py.kernels.run import casts, floats, indices, integers
from shardy_py.kernels.run.kernel import Output
from shardy_py.kernels.run.values import (
    array_dtype,
    from_words,
    low_bits,
    narrow_bits,
    to_words,
    word_dtype,
)
from shardy_py.kernels.tiles.dialect import EntryFuncOp, MaskOp, TileExtractOp, TileInsertOp, TilingInfoAttr
from shardy_py.kernels.tiles.tensor_ops import BroadcastInDimOp, IotaOp, ReshapeOp, TensorReduceOp, TransposeOp, dims_of
from shardy_py.values import frozen

ELEMENTS_AT_ONCE = 1 << 18
"""The most elements of all tiles that run at once, of the op with the largest tiles."""
_POISON = 0xA5


@frozen(eq=False)
class _Buffer:
    """The memory of an argument.

    Args:
        words: Its elements as bits, in the shape of the argument.
        writes: How often each was written; None for a parameter.
    """

    words: Any
    writes: Any = None


def run_tiles(module: builtin.ModuleOp, inputs: Sequence[Any], outputs: Sequence[Output]) -> list[Any]:
    """Return what the entry function of a module writes, by running it for all tiles.

    Args:
        module: The module.
        inputs: An array of numpy for every parameter.
        outputs: Shape and dtype of every result.

    Raises:
        VerificationError: there is no entry function, it takes other buffers, or not exactly one tile writes an
            element of a result.
        UnsupportedError: an op that the interpreter does not know.
    """
    entry = next((op for op in module.body.block.ops if isinstance(op, EntryFuncOp)), None)
    tiling = None if entry is None else entry.attributes.get(TilingInfoAttr.name)
    shapes = [np.shape(array) for array in inputs] + [tuple(shape) for shape, _ in outputs]
    types: Sequence[Any] = () if entry is None else [argument.type for argument in entry.body.block.args[:-1]]
    if entry is None or not isinstance(tiling, TilingInfoAttr) or [type_.get_shape() for type_ in types] != shapes:
        message = f"the module has no entry function for tiles of buffers of the shapes {shapes}"
        raise VerificationError(Diagnostic("run-arguments", message, hint="give an array per parameter"))
    buffers = [_Buffer(_words_of(array, type_)) for array, type_ in zip(inputs, types, strict=False)]
    for shape, type_ in zip(shapes[len(inputs) :], types[len(inputs) :], strict=True):
        buffers.append(_Buffer(np.zeros(shape, word_dtype(type_.element_type)), np.zeros(shape, np.uint8)))
    count, block = tiling.data[0], entry.body.block
    step = max(1, ELEMENTS_AT_ONCE // max(_size(value) for op in block.ops for value in (*op.operands, *op.results)))
    with np.errstate(all="ignore"):
        for first in range(0, count, step):
            ids = np.arange(first, min(count, first + step), dtype=np.int64)
            frame = _TileFrame(len(ids))
            frame.run(block, [*buffers, ids])
    results = buffers[len(inputs) :]
    for number, buffer in enumerate(results):
        if (buffer.writes != 1).any():
            place = np.unravel_index(int(np.argmax(buffer.writes != 1)), buffer.writes.shape)
            times = int(buffer.writes[place])
            message = f"{times} tiles write the element {[int(item) for item in place]} of result {number}, not one"
            raise VerificationError(Diagnostic("unwritten-element", message, op=entry.sym_name.data))
    return [buffer.words.view(dtype) for buffer, (_, dtype) in zip(results, outputs, strict=True)]


def _words_of(array: Any, type_: Any) -> Any:
    array = np.ascontiguousarray(array).reshape(np.shape(array))
    return low_bits(array) if narrow_bits(array.dtype) else array.view(word_dtype(type_.element_type))


def _size(value: SSAValue) -> int:
    return prod(_shape(value))


class _TileFrame:
    """The values of some tiles: arrays whose first dimension counts the tiles, or that all tiles have in common.

    Has what the handlers of scalar ops use of `shardy_py.kernels.run.frame.Frame`.

    Args:
        count: The number of tiles.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._values: dict[SSAValue, Any] = {}

    def get(self, value: SSAValue) -> Any:
        """Return the value of all tiles."""
        return self._values[value]

    def gets(self, values: Sequence[SSAValue]) -> list[Any]:
        """Return several values."""
        return [self._values[value] for value in values]

    def tile(self, value: SSAValue) -> Any:
        """Return a value with a dimension for the tiles."""
        return np.broadcast_to(self._values[value], (self.count, *_shape(value)))

    def merged(self, condition: Any, then: Any, otherwise: Any, _: SSAValue) -> Any:
        """Return the elements of one of two values."""
        return np.where(condition, then, otherwise)

    def require(self, condition: Any, op: Operation, code: str, message: Any) -> None:
        """Check that a condition holds for all elements."""
        if not np.all(condition):
            text = message if isinstance(message, str) else message(0)
            raise VerificationError(Diagnostic(code, text, file_line(op), op.name))

    def run(self, block: Block, arguments: Sequence[Any]) -> list[Any]:
        """Run a block and return what its terminator gives."""
        self._values |= dict(zip(block.args, arguments, strict=True))
        last = block.last_op
        assert last is not None
        for op in block.ops:
            if op is last:
                continue
            handler = HANDLERS.get(op.name)
            if handler is None:
                hint = "the ops that 'shardy emit --level tile' prints can be run"
                message = "the interpreter of tiles does not know the op"
                raise UnsupportedError(Diagnostic("run-unknown-op", message, file_line(op), op.name, hint))
            self._values |= zip(op.results, self._results(handler, op), strict=True)
        return self.gets(last.operands)

    def _results(self, handler: _Handler, op: Operation) -> Sequence[Any]:
        """Return what an op computes.

        Raises:
            VerificationError: the shapes that its text gives do not fit together.
        """
        try:
            results = handler(self, op)
        except (ValueError, IndexError):
            operands = ", ".join(str(value.type) for value in op.operands)
            raise _misfit(op, f"its operands, {operands}, do not fit it") from None
        # Regions combine several elements of a tile at once.
        is_typed = isinstance(op.parent_op(), EntryFuncOp)
        for value, result in zip(op.results, results, strict=True) if is_typed else ():
            shape, actual = _shape(value), np.shape(result)
            # What all tiles have in common has no dimension for them.
            if shape not in (actual, actual[1:]) and actual:
                raise _misfit(op, f"it computes a tile of {list(actual[1:])}, its result is {value.type}")
        return results


def _shape(value: SSAValue) -> tuple[int, ...]:
    return value.type.get_shape() if isinstance(value.type, builtin.TensorType) else ()


def _misfit(op: Operation, message: str) -> VerificationError:
    hint = "change the shapes of the op and of those that use it together"
    return VerificationError(Diagnostic("run-shapes", message, file_line(op), op.name, hint))


def _places(frame: _TileFrame, op: TileExtractOp | TileInsertOp, shape: Sequence[int]) -> tuple[tuple[Any, ...], Any]:
    """Return the index of each element of a tile in its buffer, and whether it is inside."""
    sizes, strides = op.full_tile_shape.get_values(), op.strides.get_values()
    rank = len(sizes)
    inside: Any = np.ones((frame.count, *(1,) * rank), bool)
    places = []
    for number, offset in enumerate(op.offsets):
        along = (1,) * (1 + number) + (-1,) + (1,) * (rank - number - 1)
        first = frame.tile(offset).reshape(-1, *(1,) * rank)
        place = first + (np.arange(sizes[number]) * strides[number]).reshape(along)
        is_inside = (place >= 0) & (place < shape[number])
        inside = inside & is_inside
        places.append(np.where(is_inside, place, 0))
    full = (frame.count, *sizes)
    return tuple(np.broadcast_to(place, full) for place in places), np.broadcast_to(inside, full)


def extract(frame: _TileFrame, op: TileExtractOp) -> list[Any]:
    """Read a tile; what overhangs is poison."""
    words, element = frame.get(op.source).words, cast(Any, op.source.type).element_type
    places, inside = _places(frame, op, words.shape)
    content = np.where(inside, words[places] if places else words, _poison(element, words.dtype))
    return [from_words(np.ascontiguousarray(content), element)]


def _poison(element: Any, word: Any) -> Any:
    """Return the bits of a NaN, of the least number of a float that has none, or of an unlikely integer."""
    if isinstance(element, builtin.IntegerType):
        return np.int64(_POISON & (1 << element.width.data) - 1).astype(word)
    number = np.full((), np.nan).astype(array_dtype(element))
    least = number if np.isnan(number) else ml_dtypes.finfo(number.dtype).min
    return to_words(np.asarray(least), element).astype(word)


def insert(frame: _TileFrame, op: TileInsertOp) -> list[Any]:
    """Write a tile, where it does not overhang."""
    buffer, element = frame.get(op.destination), cast(Any, op.destination.type).element_type
    places, inside = _places(frame, op, buffer.words.shape)
    content = to_words(np.ascontiguousarray(frame.tile(op.source)), element)
    chosen = tuple(place[inside] for place in places)
    if places:
        buffer.words[chosen] = content[inside]
        np.add.at(buffer.writes, chosen, np.uint8(1))
    else:
        buffer.words[...] = content[-1]
        buffer.writes[...] += np.uint8(min(frame.count, 2))
    return []


def mask(frame: _TileFrame, op: MaskOp) -> list[Any]:
    """Give the elements behind the bounds another value."""
    content = frame.tile(op.source)
    kept: Any = np.True_
    for number, bound in enumerate(op.bounds.get_values()):
        along = (-1,) + (1,) * (content.ndim - 2 - number)
        kept = kept & (np.arange(content.shape[number + 1]) < bound).reshape(along)
    value = frame.tile(op.value).reshape(-1, *(1,) * (content.ndim - 1))
    return [np.where(kept, content, value)]


def constant(_: _TileFrame, op: arith.ConstantOp) -> list[Any]:
    """Return a number, or a tensor of numbers."""
    value = op.value
    if isinstance(value, builtin.DenseIntOrFPElementsAttr) and value.is_splat():
        return [np.broadcast_to(indices.number(next(value.iter_attrs())), value.get_shape())]
    return [indices.number(value)]


def iota(_: _TileFrame, op: IotaOp) -> list[Any]:
    """Return the numbers of elements along a dimension."""
    type_: Any = op.result.type
    shape, number = type_.get_shape(), op.iota_dimension.value.data
    along = np.arange(shape[number], dtype=array_dtype(type_)).reshape(-1, *(1,) * (len(shape) - number - 1))
    return [np.broadcast_to(along, shape)]


def splat(frame: _TileFrame, op: tensor.SplatOp) -> list[Any]:
    """Return a tensor of one number per tile."""
    shape = cast(Any, op.result.type).get_shape()
    value = frame.tile(op.input).reshape(-1, *(1,) * len(shape))
    return [np.broadcast_to(value, (frame.count, *shape))]


def element(frame: _TileFrame, op: tensor.ExtractOp) -> list[Any]:
    """Return the only element of a tensor without dimensions."""
    return [frame.get(op.tensor)]


def reshape(frame: _TileFrame, op: ReshapeOp) -> list[Any]:
    """Return the same elements in another shape."""
    return [frame.tile(op.operand).reshape(frame.count, *cast(Any, op.result.type).get_shape())]


def transpose(frame: _TileFrame, op: TransposeOp) -> list[Any]:
    """Return the dimensions in another order."""
    return [frame.tile(op.operand).transpose(0, *(number + 1 for number in dims_of(op)))]


def broadcast(frame: _TileFrame, op: BroadcastInDimOp) -> list[Any]:
    """Return elements several times."""
    shape, dims = cast(Any, op.result.type).get_shape(), dims_of(op)
    content = frame.tile(op.operand)
    order = sorted(range(len(dims)), key=dims.__getitem__)
    content = content.transpose(0, *(number + 1 for number in order))
    sizes = dict(zip(sorted(dims), content.shape[1:], strict=True))
    spread = content.reshape(frame.count, *(sizes.get(number, 1) for number in range(len(shape))))
    return [np.broadcast_to(spread, (frame.count, *shape))]


def reduce(frame: _TileFrame, op: TensorReduceOp) -> list[Any]:
    """Combine the halves of tiles until one element is left, then with the initial values."""
    count, dims = len(op.outputs), op.dimensions.get_values()
    contents = []
    for value in op.arguments[:count]:
        content = np.moveaxis(frame.tile(value), [number + 1 for number in dims], range(len(dims)))
        contents.append(content.reshape(-1, *content.shape[len(dims) :]))
    block = op.body.block
    while (size := len(contents[0])) > 1:
        half = size // 2
        halves = [content[:half] for content in contents] + [content[half : 2 * half] for content in contents]
        combined = frame.run(block, halves)
        odd = [content[2 * half :] for content in contents]
        contents = [
            np.concatenate([np.broadcast_to(item, like[:half].shape), rest])
            for item, like, rest in zip(combined, contents, odd, strict=True)
        ]
    inits = [frame.tile(value) for value in op.arguments[count:]]
    rank = contents[0].ndim - 2
    inits = [init.reshape(-1, *(1,) * rank) for init in inits]
    return frame.run(block, [*inits, *(content[0] for content in contents)])


_Handler = Callable[[Any, Any], Sequence[Any]]

HANDLERS: Mapping[str, _Handler] = MappingProxyType(
    {
        **casts.HANDLERS,
        **floats.HANDLERS,
        **integers.HANDLERS,
        "arith.constant": constant,
        "stablehlo.broadcast_in_dim": broadcast,
        "stablehlo.iota": iota,
        "stablehlo.reduce": reduce,
        "stablehlo.reshape": reshape,
        "stablehlo.transpose": transpose,
        "tensor.extract": element,
        "tensor.splat": splat,
        "xla_gpu.apply_indexing": indices.apply_indexing,
        "xtile.extract": extract,
        "xtile.insert": insert,
        "xtile.mask": mask,
    }
)
