"""Programs in files: ``.mlir``, ``.mlir.gz``, and folders of them."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

from benchmarks.programs import Program

SUFFIXES = (".mlir", ".mlir.gz")


def programs_in(path: Path) -> Iterator[Program]:
    """Yield the program in a file, or those in a folder, in the order of their names.

    Raises:
        FileNotFoundError: there is neither a file nor a folder.
        ValueError: a file has another suffix.
    """
    if path.is_dir():
        for file in sorted(path.iterdir()):
            if file.name.endswith(SUFFIXES):
                yield from programs_in(file)
        return
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    if not path.name.endswith(SUFFIXES):
        raise ValueError(f"{path}: not one of {', '.join(SUFFIXES)}")
    yield Program(path.name.removesuffix(".gz").removesuffix(".mlir"), lambda: _read(path), is_file=True)


def _read(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
