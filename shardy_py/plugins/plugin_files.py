"""Plugins in files: reading and running them, in every command and in every process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from threading import RLock
from types import ModuleType

from attrs import evolve

from shardy_py.errors import Diagnostic, PluginError, ShardyError
from shardy_py.guards.error_texts import describe_error, location_in_trace
from shardy_py.plugins.load_errors import Candidate, as_broken, call_hint
from shardy_py.plugins.plugin_dependencies import digest_file, find_imported_modules, loaded_modules, record_read_files
from shardy_py.values import frozen

_INIT = "__init__.py"
_NAME = "__shardy_name__"
_CONTENT = "__shardy_content__"
_DIGESTS = "__shardy_digests__"
"""The attribute of a plugin module with the files that it has imported and their digests, by module name."""
_BEFORE = "__shardy_before__"
"""The attribute of a plugin module with the names of the modules that were there before it."""
_RUNNING = RLock()
"""Held while a file runs: the search path, the directory and the output are those of the whole process."""


def load_plugin_file(path: str | Path) -> ModuleType:
    """Run a Python file, or the package in a directory, as a plugin module.

    The module is named after the file and is in `sys.modules`, its directory is on `sys.path`. A file that has not
    changed, nor a module that it imports or a file that it reads meanwhile, runs once in a process. What it prints
    goes to stderr.

    Args:
        path: A file that ends in ``.py``, or a directory with an ``__init__.py``.

    Raises:
        PluginError: it cannot be read, or it fails.
    """
    return PluginFile.read(path).load()


@frozen
class PluginFile:
    """A plugin in a file or a package, with everything that another process needs to run it.

    Args:
        name: The path it was read from.
        text: The text of the file, or of the ``__init__.py`` of the package.
        files: The other Python files of the package, by their paths in it.
    """

    name: str
    text: str | bytes
    files: tuple[tuple[str, bytes], ...] = ()

    @classmethod
    def read(cls, path: str | Path) -> PluginFile:
        """Return the plugin of a file or a directory.

        Raises:
            PluginError: it cannot be read, or is not Python.
        """
        file = Path(path)
        is_package = file.is_dir()
        if not is_package and file.suffix != ".py":
            hint = "give a file that ends in .py, or the directory of a package"
            raise PluginError(Diagnostic("plugin-import", f"{path} is not a Python file", hint=hint))
        if is_package and not (file / _INIT).is_file():
            message = f"{path} is a directory without {_INIT}"
            raise PluginError(Diagnostic("plugin-import", message, hint="give the directory of a package, or a file"))
        try:
            text = (file / _INIT if is_package else file).read_bytes()
            files = [(str(item.relative_to(file)), item.read_bytes()) for item in _others(file)] if is_package else []
        except OSError as error:
            reason = error.strerror or str(error)
            raise PluginError(Diagnostic("plugin-import", f"{path} cannot be read: {reason}")) from None
        return cls(str(path), text, tuple(files))

    @property
    def stem(self) -> str:
        """The name of the plugin: that of the file or directory."""
        return Path(self.name).resolve().stem

    def load(self) -> ModuleType:
        """Run it; one that ran already is not run again unless it has changed, or a module that it has imported.

        Raises:
            PluginError: it fails.
        """
        with _RUNNING:
            known = self._loaded()
            return self._run() if known is None or _has_changed_imports(known) else known

    def imported_modules(self) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
        """Return digests of the modules that the plugin imports, and the versions of installed packages among them.

        The digests are those of the files when they were loaded.

        Raises:
            PluginError: it fails.
        """
        with _RUNNING:
            module = self._loaded() or self.load()
            folder, loaded = _home(Path(str(module.__file__))), vars(module)[_DIGESTS]
            # A function of the plugin may have imported more since the plugin was loaded.
            late = loaded_modules({*vars(module)[_BEFORE], module.__name__})
            known = {name: file for name, file in late.items() if Path(file).is_relative_to(folder)}
            known.update((name, file) for name, (file, _) in loaded.items())
            imported = find_imported_modules(module, source=self.text, known=known, folder=str(folder))
            for name, file in imported.files.items():
                if name not in loaded:
                    loaded[name] = file, digest_file(file)
            return {name: digest for name, (_, digest) in sorted(loaded.items())}, imported.versions

    @property
    def _content(self) -> str:
        import hashlib

        return hashlib.sha256(repr((str(Path(self.name).resolve()), self.text, self.files)).encode()).hexdigest()

    def _loaded(self) -> ModuleType | None:
        """Return the module of the plugin where this process has run it."""
        content = self._content
        return next((item for item in list(sys.modules.values()) if vars(item).get(_CONTENT) == content), None)

    def _run(self) -> ModuleType:
        content, file = self._content, self._file()
        name = _free_name(self.stem, file, content)
        search = [str(file.parent)] if file.name == _INIT else None
        spec = spec_from_file_location(name, file, submodule_search_locations=search)
        if spec is None:
            raise PluginError(Diagnostic("plugin-import", f"{self.name} is not a Python file"))
        module = module_from_spec(spec)
        setattr(module, _NAME, self.stem)
        home = _home(file)
        if _DIGESTS in vars(sys.modules.get(name, module)):
            _forget_changed_imports(sys.modules[name])
        before = frozenset(sys.modules)
        sys.modules[name] = module
        try:
            with self._blame(), _siblings(home), redirect_stdout(sys.stderr), record_read_files() as read:
                # The file is as it was read, in its own encoding, and inherits nothing of this module.
                exec(compile(self.text, str(file), "exec", dont_inherit=True), vars(module))
        except BaseException:
            del sys.modules[name]
            raise
        setattr(module, _CONTENT, content)
        setattr(module, _BEFORE, before)
        imported = loaded_modules({*before, name})
        # Whether the source of a module is read depends on whether it was compiled before.
        sources = {getattr(item, "__file__", None) for item in list(sys.modules.values())}
        imported |= {f"file {os.path.relpath(path, home)}": path for path in read if path not in sources}
        setattr(module, _DIGESTS, {name: (file, digest_file(file)) for name, file in imported.items()})
        return module

    def _file(self) -> Path:
        """Return the file on this machine; a package that came from another one is written to a new directory."""
        file = Path(self.name).absolute()
        if not self.files:
            return file / _INIT if file.is_dir() else file
        if file.is_dir() and PluginFile.read(file).files == self.files:
            return file / _INIT
        import atexit
        import shutil
        import tempfile

        folder = tempfile.mkdtemp(prefix="shardy-plugin-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        copy = Path(folder) / self.stem
        for relative, data in ((_INIT, self.text), *self.files):
            (copy / relative).parent.mkdir(parents=True, exist_ok=True)
            (copy / relative).write_bytes(data if isinstance(data, bytes) else data.encode())
        return copy / _INIT

    @contextmanager
    def _blame(self) -> Iterator[None]:
        """Turn every exception of the file into an error with its location; an interrupt passes.

        Raises:
            PluginError: something else came out.
        """
        try:
            yield
        except KeyboardInterrupt:
            raise
        except ShardyError as error:
            candidate = Candidate(self.stem, "", ModuleType)  # type: ignore[arg-type]
            problem = as_broken(candidate, error)
            raise PluginError(evolve(problem, location=problem.location or self.name)) from error
        except SystemExit as error:
            message = f"the plugin ends the program: sys.exit({error.code!r})"
            hint = "a plugin is imported; put what is to run as a program under if __name__ == '__main__':"
            location = location_in_trace(error) or self.name
            raise PluginError(Diagnostic("plugin-import", message, location, hint=hint)) from error
        except BaseException as error:
            message = f"the plugin failed with {describe_error(error)}"
            raise PluginError(
                Diagnostic("plugin-import", message, location_in_trace(error) or self.name, hint=_hint(error))
            ) from error


def plugin_files(paths: Iterable[str | Path]) -> tuple[PluginFile, ...]:
    """Return the plugins of files.

    Raises:
        PluginError: one cannot be read.
    """
    return tuple(map(PluginFile.read, paths))


def _hint(error: BaseException) -> str:
    if isinstance(error, ImportError) and "relative import" in str(error):
        return "relative imports need a package: give its directory, or import files beside the plugin by their names"
    return call_hint(error)


def _others(package: Path) -> list[Path]:
    files = sorted(package.rglob("*.py"))
    return [item for item in files if item != package / _INIT and "__pycache__" not in item.parts]


def _free_name(stem: str, file: Path, content: str) -> str:
    """Return a name of a module: the stem, unless a module of another file has it."""
    other = sys.modules.get(stem)
    if other is not None:
        return stem if _is_at(getattr(other, "__file__", None), file) else f"{stem}_{content[:8]}"
    try:
        spec = find_spec(stem)
    except (ImportError, ValueError):
        spec = None
    return stem if spec is None or _is_at(spec.origin, file) else f"{stem}_{content[:8]}"


def _home(file: Path) -> Path:
    """Return the folder that the modules beside a plugin are in."""
    return file.parent.parent if file.name == _INIT else file.parent


def _has_changed_imports(module: ModuleType) -> bool:
    """Return whether a file that a plugin has imported has changed since."""
    return any(digest_file(file) != digest for file, digest in vars(module)[_DIGESTS].values())


def _forget_changed_imports(module: ModuleType) -> None:
    """Take what a plugin has imported out of `sys.modules` if any of it has changed since."""
    if not _has_changed_imports(module):
        return
    for name, (file, _) in vars(module)[_DIGESTS].items():
        if name in sys.modules and _is_at(getattr(sys.modules[name], "__file__", None), Path(file)):
            del sys.modules[name]
            # The package has it as an attribute, which an import would take.
            package, _, attribute = name.rpartition(".")
            vars(sys.modules.get(package, module)).pop(attribute, None)


def _is_at(origin: str | None, file: Path) -> bool:
    return origin is not None and Path(origin).resolve() == file.resolve()


@contextmanager
def _siblings(home: Path) -> Iterator[None]:
    """Let a plugin import the files beside it, also later, and hide those beside other plugins."""
    homes = {Path(item.__file__).parent for item in _plugin_modules() if item.__file__}
    for path in home.glob("*"):
        other = sys.modules.get(path.stem)
        file = getattr(other, "__file__", None)
        if file and not hasattr(other, _NAME) and Path(file).parent != home and Path(file).parent in homes:
            del sys.modules[path.stem]
    was_there, here = str(home) in sys.path, os.getcwd()
    sys.path.insert(0, str(home))
    try:
        yield
    finally:
        # Files that a command names later are where they were.
        os.chdir(here)
        sys.path.remove(str(home))
        if not was_there:
            sys.path.append(str(home))


def _plugin_modules() -> list[ModuleType]:
    return [item for item in list(sys.modules.values()) if _NAME in vars(item)]
