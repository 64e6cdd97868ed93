"""Programs of PyTorch: read, placed, and run on the processes of a device mesh."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shardy_py.torch.constraints import with_sharding_constraint

__all__ = ["with_sharding_constraint"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from shardy_py.torch import constraints

    return getattr(constraints, name)
