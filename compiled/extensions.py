"""Extension modules from C files, in a process of its own: ``extensions.py ROOT LEVEL MODULE...``.

Another process may have imported parts of another distutils, which setuptools does not get along with.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

HEADERS = Path(__file__).parent


def main(root: Path, level: str, names: Sequence[str]) -> None:
    """Compile the C file beside the source of each module, in place.

    Args:
        root: The folder of the sources.
        level: How much the C compiler optimizes.
        names: The names of the modules.
    """
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    extensions = [
        Extension(
            name,
            [str(root.joinpath(*name.split(".")).with_suffix(".c"))],
            include_dirs=[str(HEADERS)],
            extra_compile_args=_flags(level),
        )
        for name in names
    ]
    command = build_ext(Distribution({"ext_modules": extensions}))
    command.build_lib, command.build_temp = str(root), str(root / "build" / "objects")
    command.parallel = os.cpu_count() or 1
    command.force = True
    command.ensure_finalized()
    command.run()


def _flags(level: str) -> list[str]:
    """Return what is asked of the C compiler beyond Python's own flags."""
    return [] if sys.platform == "win32" else [f"-O{level}", "-g0", "-Wno-array-bounds"]


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
