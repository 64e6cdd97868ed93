"""From sources to extension modules: Cython, the specialized accesses, the C compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from compiled.modules import MODULES

HEADER = Path(__file__).with_name("specialized.h")
TYPES = Path(__file__).with_name("types")
"""Types of C for some modules, in files of Cython named like them."""
LEVEL = 2
"""How much the C compiler optimizes: more takes longer and brings nothing."""
_EXTENSIONS = Path(__file__).with_name("extensions.py")
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


def build(root: Path, modules: Iterable[str] = MODULES, *, level: int = LEVEL) -> list[Path]:
    """Compile modules in place, those whose extension module is not newer than their source and what it is built with.

    Args:
        root: The folder of the sources; it has to be on its own, as Python takes an extension module before its source.
        modules: Paths of sources in it.
        level: How much the C compiler optimizes, of 0 to 3.

    Returns:
        The extension modules of all of them, in order.

    Raises:
        subprocess.CalledProcessError: Cython or the C compiler refuses a module; either says why on stderr.
    """
    sources = [root / path for path in modules]
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    made = [source.with_suffix(suffix) for source in sources]
    stale = [source for source, path in zip(sources, made, strict=True) if not _is_current(path, source)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(_write_c, stale))
    if stale:
        names = [".".join(source.relative_to(root).with_suffix("").parts) for source in stale]
        subprocess.run([sys.executable, str(_EXTENSIONS), str(root), str(level), *names], check=True)
    return made


def _is_current(made: Path, source: Path) -> bool:
    inputs = (source, HEADER, Path(__file__), _EXTENSIONS, *_types_of(source))
    return made.exists() and made.stat().st_mtime > max(path.stat().st_mtime for path in inputs)


def _types_of(source: Path) -> list[Path]:
    """Return the file with types of C for a module, if there is one."""
    path = TYPES / f"{source.stem}.pxd"
    return [path] if path.exists() else []


def _write_c(source: Path) -> None:
    """Translate a module to C, and let its own code use the specialized accesses.

    The header comes between what Cython needs and the code of the module, and is taken back behind it.
    """
    target = source.with_suffix(".c")
    for types in _types_of(source):
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
