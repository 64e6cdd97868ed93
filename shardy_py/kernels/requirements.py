"""Libraries that kernels need: xDSL, and NVIDIA's library of functions for devices."""

from __future__ import annotations

import importlib.util
import os
from functools import cache
from pathlib import Path

from shardy_py.errors import Diagnostic, OptionError, require_library


@cache
def require_xdsl() -> None:
    """Check, until it was found, that the xDSL is installed whose dialects kernels are written in.

    Raises:
        OptionError: it is missing, or older than the dialects; other parts of the package do with less.
    """
    require_library("xdsl", purpose="kernels need", extra="codegen", at_least=(0, 74))


FILE = "libdevice.10.bc"
VARIABLE = "SHARDY_LIBDEVICE"
_PLACES = ("cuda_nvcc/nvvm/libdevice", "cu13/nvvm/libdevice", "cuda_nvvm/nvvm/libdevice", "nvvm/libdevice")


def find_libdevice(path: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the file of libdevice, or None where there is none.

    Args:
        path: The file, or its folder. By default the variable ``SHARDY_LIBDEVICE``, then NVIDIA's wheels, then
            ``CUDA_HOME``.

    Raises:
        OptionError: the path that was given has no such file.
    """
    configured = path if path is not None else os.environ.get(VARIABLE)
    if configured:
        libdevice = Path(configured)
        libdevice = libdevice / FILE if libdevice.is_dir() else libdevice
        if not libdevice.is_file():
            hint = f"give the path of {FILE}, or install nvidia-cuda-nvcc-cu12"
            raise OptionError(Diagnostic("no-libdevice", f"there is no file {libdevice}", hint=hint))
        return libdevice
    return next((file for file in _candidates() if file.is_file()), None)


def _candidates() -> list[Path]:
    roots: list[Path] = []
    spec = importlib.util.find_spec("nvidia")
    if spec is not None:
        roots += [Path(item) for item in spec.submodule_search_locations or ()]
    candidates = [root / place / FILE for root in roots for place in _PLACES]
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(name):
            candidates.append(Path(os.environ[name]) / "nvvm" / "libdevice" / FILE)
    return candidates
