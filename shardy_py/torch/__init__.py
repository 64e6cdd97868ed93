"""Programs of PyTorch: read, placed, and run on the processes of a device mesh."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shardy_py.torch.constraints import with_sharding_constraint
    from shardy_py.torch.local_functions import local_map

__all__ = ["local_map", "with_sharding_constraint"]
_MODULES = {"local_map": "local_functions", "with_sharding_constraint": "constraints"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
