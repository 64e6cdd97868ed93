"""From sources to extension modules: Cython, the specialized accesses, the C compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from compiled.modules import MODULES

HEADER = Path(__file__).with_name("specialized.h")
TYPES = Path(__file__).with_name("types")
"""Types of C for some modules, in files of Cython named like them."""
NEEDS = ("cython>=3.3,<4", "setuptools>=77")
"""The packages that the build needs, besides a C compiler."""
_DIRECTIVES = {"language_level": 3, "binding": True, "annotation_typing": False}
_FOLDERS = ("benchmarks", "compiled", "dialects", "docs", "examples", "shardy_py", "tests")
_OWN_CODE = "/* #### Code section: module_code ### */"
_BEHIND_OWN_CODE = "/* #### Code section: module_exttypes ### */"


def copy_checkout(source: Path, target: Path) -> None:
    """Copy what belongs to a checkout, with the times of its files.

    Args:
        source: The checkout.
        target: The folder of the copy; files that are in it already are replaced.
    """
    ignored = shutil.ignore_patterns("__pycache__", "*.c", "*.so", "*.pyd")
    for folder in _FOLDERS:
        if (source / folder).is_dir():
            shutil.copytree(source / folder, target / folder, ignore=ignored, dirs_exist_ok=True)
    for path in source.iterdir():
        if path.is_file():
            shutil.copy2(path, target)


def build(root: Path, modules: Iterable[str] = MODULES) -> list[Path]:
    """Compile modules in place, those whose extension module is not newer than their source and the header.

    Args:
        root: The folder of the sources; it has to be on its own, as Python takes an extension module before its source.
        modules: Paths of sources in it.

    Returns:
        The extension modules of all of them, in order.

    Raises:
        Exception: what Cython or the C compiler refuses, as either says it.
    """
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    names = [path.removesuffix(".py").replace("/", ".") for path in modules]
    command = build_ext(Distribution())
    made = [root / command.get_ext_filename(name) for name in names]
    stale = [name for name, path in zip(names, made, strict=True) if not _is_current(path, _source(root, name))]
    processes = os.cpu_count() or 1
    with ThreadPoolExecutor(processes) as pool:
        sources = list(pool.map(lambda name: _write_c(_source(root, name)), stale))
    extensions = [
        Extension(name, [str(source)], include_dirs=[str(HEADER.parent)], extra_compile_args=_flags())
        for name, source in zip(stale, sources, strict=True)
    ]
    command = build_ext(Distribution({"ext_modules": extensions}))
    command.build_lib, command.build_temp = str(root), str(root / "build" / "objects")
    command.parallel = processes
    command.force = True
    command.ensure_finalized()
    command.run()
    return made


def _flags() -> list[str]:
    """Return what is asked of the C compiler beyond Python's own flags; more takes longer and brings nothing."""
    return [] if sys.platform == "win32" else ["-O2", "-g0", "-Wno-array-bounds"]


def _source(root: Path, name: str) -> Path:
    return root.joinpath(*name.split(".")).with_suffix(".py")


def _is_current(made: Path, source: Path) -> bool:
    inputs = (source, HEADER, Path(__file__), *TYPES.glob(f"{source.stem}.pxd"))
    newest = max(path.stat().st_mtime for path in inputs)
    return made.exists() and made.stat().st_mtime > newest


def _write_c(source: Path) -> Path:
    """Translate a module to C, and let its own code use the specialized accesses.

    The header comes between what Cython needs and the code of the module, and is taken back behind it.
    """
    target = source.with_suffix(".c")
    for types in TYPES.glob(f"{source.stem}.pxd"):
        shutil.copy2(types, source.parent)
    options = [part for name, value in _DIRECTIVES.items() for part in ("-X", f"{name}={value}")]
    subprocess.run([sys.executable, "-m", "cython", "-3", *options, str(source), "-o", str(target)], check=True)
    before, rest = target.read_text("utf-8").split(_OWN_CODE, 1)
    own, behind = rest.split(_BEHIND_OWN_CODE, 1)
    include = f'#include "{HEADER.name}"\n'
    parts = (
        before,
        _OWN_CODE,
        "\n",
        include,
        own,
        "#define SHARDY_BEHIND_OWN_CODE\n",
        include,
        _BEHIND_OWN_CODE,
        behind,
    )
    target.write_text("".join(parts), "utf-8")
    return target
