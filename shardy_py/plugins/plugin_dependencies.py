"""Files on which a plugin depends: modules that it imports, versions of packages, and files that it reads.

The results of a sweep depend on them, so they belong to the key of its store. Names are read from the source, so that
an import inside a function counts before the function runs, and taken from `sys.modules`, so that a module whose name
is computed counts, too. Other files count where a plugin of a file reads them while it is loaded.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.util import resolve_name
from pathlib import Path
from threading import get_ident
from types import MappingProxyType, ModuleType
from typing import Any

from attrs import field

from shardy_py.values import define, frozen

_OWN = frozenset(("shardy_py", "shardy_dialects"))
"""The packages of this distribution, whose version is a part of every key."""
_LIBRARIES = frozenset(("site-packages", "dist-packages"))
_IMPORTERS = frozenset(("import_module", "__import__"))


@frozen
class ImportedModules:
    """Modules that a plugin imports, itself among them.

    Args:
        files: The files of modules outside of installed packages, by module name.
        packages: The names of the installed packages.
    """

    files: dict[str, str] = field(factory=dict)
    packages: set[str] = field(factory=set)

    @property
    def versions(self) -> dict[str, tuple[str, ...]]:
        """Versions of the installed packages, each with the names of its distributions."""
        if not self.packages:
            return {}
        from importlib.metadata import packages_distributions, version

        owners = packages_distributions()
        return {
            name: tuple(f"{item} {version(item)}" for item in sorted(set(owners.get(name, ()))))
            for name in sorted(self.packages)
        }


def digest_file(file: str) -> str:
    """Return a digest of a file's content; "" where it cannot be read."""
    from hashlib import sha256

    try:
        return sha256(Path(file).read_bytes()).hexdigest()
    except OSError:
        return ""


def loaded_modules(before: Iterable[str] = ()) -> dict[str, str]:
    """Return the files of the modules outside of installed packages that this process has loaded, by module name.

    Args:
        before: Names of modules that do not count.
    """
    names = set(sys.modules).difference(before)
    files = ((name, _file_of(sys.modules[name])) for name in sorted(names) if name.partition(".")[0] not in _OWN)
    return {name: file for name, file in files if file and not is_installed(file)}


def find_imported_modules(
    module: ModuleType,
    *,
    source: str | bytes | None = None,
    known: Mapping[str, str] = MappingProxyType({}),
    folder: str = "",
) -> ImportedModules:
    """Return the modules that a plugin imports directly or indirectly, imports inside functions included.

    Args:
        module: The module of the plugin.
        source: Its source where that is not what its file has now; the file then does not count.
        known: Files of modules by name, as the plugin has imported them.
        folder: The folder that the plugin finds modules in besides `sys.path`, if any.
    """
    imported = ImportedModules()
    module_name, file = module.__name__, _file_of(module)
    if module_name.partition(".")[0] in _OWN or (file and is_installed(file)):
        return imported
    imported.files.update(known)
    pending: list[tuple[str, str, str | bytes | None]] = [(name, file, None) for name, file in known.items()]
    if source is not None or file:
        pending.append((module_name, str(module.__file__), source))
    while pending:
        importer, file, text = pending.pop()
        for name in _imported_names(importer, file, text):
            for part, path in _locate(name, known, folder):
                if is_installed(path):
                    imported.packages.add(part.partition(".")[0])
                elif part not in imported.files:
                    imported.files[part] = path
                    pending.append((part, path, None))
    if source is None and file:
        imported.files[module_name] = file
    else:
        imported.files.pop(module_name, None)
    return imported


@cache
def is_installed(file: str) -> bool:
    """Return whether a file is of the standard library or of an installed distribution."""
    path = Path(file).resolve()
    return not _LIBRARIES.isdisjoint(path.parts) or path.is_relative_to(Path(os.__file__).resolve().parent)


def _file_of(module: object) -> str:
    """Return the file of a module's source, "" for one without."""
    file = getattr(module, "__file__", None)
    return os.path.abspath(file) if isinstance(file, str) and os.path.isfile(file) else ""


def _imported_names(importer: str, file: str, source: str | bytes | None) -> set[str]:
    """Return the full names of all that a module imports; some are of attributes of modules."""
    if not file.endswith(".py"):
        return set()
    try:
        tree = ast.parse(Path(file).read_bytes() if source is None else source)
    except (OSError, SyntaxError, ValueError, RecursionError):
        return set()
    package = importer if os.path.basename(file) == "__init__.py" else importer.rpartition(".")[0]
    names = {name for node in ast.walk(tree) for name in _names_of(node)}
    absolute = {_absolute(name, package) for name in names}
    return {name for name in absolute if name and name.partition(".")[0] not in _OWN | sys.stdlib_module_names}


def _names_of(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node imports, relative ones with their dots."""
    match node:
        case ast.Import(names=names):
            yield from (item.name for item in names)
        case ast.ImportFrom(module=module, names=names, level=level):
            base = "." * level + (module or "")
            yield base
            yield from (f"{base}{'.' if module else ''}{item.name}" for item in names)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[ast.Constant(value=str(given)), *_]):
            if name in _IMPORTERS:
                yield given


def _absolute(name: str, package: str) -> str:
    try:
        return resolve_name(name, package)
    except (ImportError, ValueError):
        return ""


def _locate(name: str, known: Mapping[str, str], folder: str) -> Iterator[tuple[str, str]]:
    """Yield the packages that a module is in, and the module, with their files; a package without a file has none."""
    path = [*sys.path, *([folder] if folder else [])]
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        part = ".".join(parts[:end])
        loaded = sys.modules.get(part)
        file = known.get(part) or _file_of(loaded)
        if loaded is not None or file:
            path = list(getattr(loaded, "__path__", ())) or _path_of_package(file)
        else:
            spec = _find_spec(part, path)
            if spec is None:
                return
            file = spec.origin if spec.origin and os.path.isfile(spec.origin) else ""
            path = list(spec.submodule_search_locations or ())
        if file:
            yield part, file
        if not path or (file and is_installed(file)):
            return


def _path_of_package(file: str) -> list[str]:
    return [os.path.dirname(file)] if os.path.basename(file) == "__init__.py" else []


def _find_spec(name: str, path: list[str]) -> ModuleSpec | None:
    """Return the spec of a module; unlike `importlib.util.find_spec` import no package that it is in."""
    for finder in sys.meta_path:
        try:
            spec = finder.find_spec(name, path)
        except (ImportError, AttributeError, ValueError, OSError):
            spec = None
        if spec is not None:
            return spec
    return None


_OF_IMPORTS = (".pyc", ".so", ".pyd")
_CHANGING = ("/proc/", "/sys/", "/dev/")
"""Folders whose files say something about the machine at this moment."""


@define(eq=False)
class _Recorder:
    thread: int
    paths: dict[str, None]


_RECORDERS: list[_Recorder] = []


@contextmanager
def record_read_files() -> Iterator[dict[str, None]]:
    """Note the absolute paths of the files that this thread opens for reading in a block.

    Files of installed packages do not count, nor do those that hold compiled modules. What is imported in the block
    does, as far as Python reads its source.
    """
    _install()
    recorder = _Recorder(get_ident(), {})
    _RECORDERS.append(recorder)
    try:
        yield recorder.paths
    finally:
        _RECORDERS.remove(recorder)
    for path in list(recorder.paths):
        if path.startswith(_CHANGING) or not os.path.isfile(path) or is_installed(path):
            del recorder.paths[path]


@cache
def _install() -> None:
    """Add the audit hook that sees opened files; it stays as long as the process."""
    sys.addaudithook(_note_opened)


def _note_opened(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "open" or not _RECORDERS:
        return
    path, mode, flags = arguments
    is_write = set("wax+").intersection(mode) if isinstance(mode, str) else flags & (os.O_WRONLY | os.O_RDWR)
    if is_write or not isinstance(path, (str, bytes)):
        return
    name = os.fsdecode(path)
    if name.endswith(_OF_IMPORTS):
        return
    for recorder in _RECORDERS:
        if recorder.thread == get_ident():
            recorder.paths[os.path.abspath(name)] = None
