"""Libraries that kernels need."""

from __future__ import annotations

from shardy_py.errors import require_library


def require_xdsl() -> None:
    """Check that the xDSL is installed whose dialects kernels are written in.

    Raises:
        OptionError: it is missing, or older than the dialects; other parts of the package do with less.
    """
    require_library("xdsl", purpose="kernels need", extra="codegen", at_least=(0, 74))
