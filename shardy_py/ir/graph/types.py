"""Types of values: shape, element type and text."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import field

from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.support.arguments import as_integer, shown
from shardy_py.support.element_types import ARRAY_ELEMENT_TYPES
from shardy_py.values import frozen


@frozen(cache_hash=True)
class TensorType:
    """A shaped type.

    Args:
        shape: One size per dimension; None for a dynamic one.
        element_type: The element type in MLIR's notation, for example ``f32``.
        text: The whole type in MLIR's notation.
    """

    shape: tuple[int | None, ...]
    element_type: str
    text: str = field(default="", eq=True)

    def __attrs_post_init__(self) -> None:
        if not self.text:
            sizes = ["?" if size is None else str(size) for size in self.shape]
            object.__setattr__(self, "text", f"tensor<{'x'.join([*sizes, self.element_type])}>")

    @property
    def is_foreign(self) -> bool:
        """True for a type of a dialect, whose shape a plugin gave; False for a builtin tensor."""
        return self.text.startswith("!")

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def is_static(self) -> bool:
        """True if every size is known."""
        return None not in self.shape

    def __str__(self) -> str:
        return self.text


@frozen(cache_hash=True)
class OpaqueType:
    """Any type without a shape (tokens, tuples, types of unknown dialects, unranked tensors)."""

    text: str

    @property
    def is_foreign(self) -> bool:
        """True for a type of a dialect, such as ``!torch.vtensor<[2,3],f32>``; only plugins know its shape."""
        return self.text.startswith("!")

    @property
    def name(self) -> str:
        """The name without parameters: ``!torch.vtensor`` of ``!torch.vtensor<[2,3],f32>``."""
        return self.text.partition("<")[0]

    @property
    def parameters(self) -> str:
        """The text between the outer angle brackets: ``[2,3],f32``; "" where there are none."""
        return self.text.partition("<")[2].removesuffix(">")

    @property
    def is_tuple(self) -> bool:
        """True for the builtin tuple type."""
        return self.text.startswith("tuple<")

    def __str__(self) -> str:
        return self.text


Type = TensorType | OpaqueType


def tensor(*shape: int | None, dtype: str = "f32") -> TensorType:
    """Return a ranked tensor type.

    >>> str(tensor(8, 16))
    'tensor<8x16xf32>'

    Args:
        shape: The size of each dimension; None for one that is not known.
        dtype: The element type.

    Raises:
        VerificationError: a size is none, or the element type is not in MLIR's notation.
    """
    if type(dtype) is not str or dtype in ARRAY_ELEMENT_TYPES:
        raise _no_element_type(dtype)
    for size in shape:
        number = as_integer(size)
        if size is not None and (number is None or number < 0):
            message, hint = (
                f"{shown(size)} is not the size of a dimension",
                "give one number per dimension: tensor(8, 16)",
            )
            raise VerificationError(Diagnostic("invalid-type", message, hint=hint))
    return TensorType(shape, dtype)


def _no_element_type(value: object) -> VerificationError:
    name = value if isinstance(value, str) else getattr(value, "name", getattr(value, "__name__", ""))
    hint = f'write it as MLIR does: dtype="{ARRAY_ELEMENT_TYPES.get(str(name), "f32")}"'
    return VerificationError(Diagnostic("invalid-type", f"{shown(value)} is not an element type", hint=hint))


def are_same_tensors(type_: Type, other: Type) -> bool:
    """Return whether two types have one element type and the same sizes; a dynamic size is any size."""
    if type_ is other or type_ == other:
        return True
    if not isinstance(type_, TensorType) or not isinstance(other, TensorType):
        return False
    if type_.element_type != other.element_type or type_.rank != other.rank:
        return False
    return all(size == wanted or None in (size, wanted) for size, wanted in zip(type_.shape, other.shape, strict=True))


def static_shape(type_: Type) -> tuple[int, ...] | None:
    """Return the sizes of a shaped type whose sizes are all known, else None."""
    if isinstance(type_, TensorType) and None not in type_.shape:
        return type_.shape  # type: ignore[return-value]
    return None


def is_scalar(type_: Type) -> bool:
    """Return whether this is a tensor without dimensions."""
    return isinstance(type_, TensorType) and not type_.shape


def function_type(arguments: Sequence[Type], results: Sequence[Type]) -> OpaqueType:
    """Return the type of a function.

    >>> str(function_type([tensor(8)], [tensor(8), tensor(4)]))
    '(tensor<8xf32>) -> (tensor<8xf32>, tensor<4xf32>)'
    """
    outputs = ", ".join(str(type_) for type_ in results)
    if len(results) != 1:
        outputs = f"({outputs})"
    return OpaqueType(f"({', '.join(str(type_) for type_ in arguments)}) -> {outputs}")
