"""A program on its way to another process: all that is needed to open its session there."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from attrs import evolve, field, frozen

from shardy_py.analysis.session import Session
from shardy_py.api.entry import find_main
from shardy_py.api.in_shardings import InShardings
from shardy_py.api.options import Strategy
from shardy_py.api.registries import load_registry
from shardy_py.api.setup import give_shardings
from shardy_py.api.source import complete_registry, read_program
from shardy_py.frontends.select import SUFFIX, frontend_of
from shardy_py.ir.shardings import store_shardings
from shardy_py.plugins import Registry, RuleOptions


@frozen
class PluginFile:
    """A Python file with a plugin.

    Args:
        name: The path it was read from, for errors.
        text: What is in it.
    """

    name: str
    text: str

    @classmethod
    def read(cls, path: str | Path) -> PluginFile:
        """Return the plugin of a file."""
        return cls(str(path), Path(path).read_text(encoding="utf-8"))

    def load(self) -> ModuleType:
        """Run the file as a module."""
        module = ModuleType(Path(self.name).stem)
        module.__file__ = self.name
        exec(compile(self.text, self.name, "exec"), module.__dict__)  # a plugin is code that the user gives
        return module


@frozen
class SessionOptions:
    """The options of a session that any process understands.

    Args:
        strategy: ``basic``, ``aggressive``, ``op-priority`` or ``user-priority``.
        conservative: Leave out factors that could be sharded unevenly.
        extended_rules: Give rules to ops that the reference leaves without one.
        dedup_functions_fully: Let all calls of a function share its shardings.
        plugins: More plugins besides the installed ones; what is sent to other processes must be importable there, or
            be pickled by cloudpickle.
        plugin_files: Files with more of them.
        blocked: The names of plugins that are not loaded.
    """

    strategy: Strategy = "user-priority"
    conservative: bool = False
    extended_rules: bool = False
    dedup_functions_fully: bool = False
    plugins: tuple[object, ...] = ()
    plugin_files: tuple[PluginFile, ...] = ()
    blocked: tuple[str, ...] = ()

    def load_registry(self) -> Registry:
        """Return what is known about ops.

        Raises:
            PluginError: a plugin is broken.
        """
        return load_registry(
            plugins=[*self.plugins, *(item.load() for item in self.plugin_files)],
            blocked=self.blocked,
            options=RuleOptions(self.conservative, self.extended_rules),
        )

    def open(self, module: Any, mesh: Any = None, *, in_shardings: InShardings | None = None) -> Session:
        """Return the session of a module; see `Session.open`."""
        return Session.open(
            module,
            mesh,
            in_shardings=in_shardings,
            strategy=self.strategy,
            conservative=self.conservative,
            extended_rules=self.extended_rules,
            dedup_functions_fully=self.dedup_functions_fully,
            registry=self.load_registry(),
        )


DEFAULT_OPTIONS = SessionOptions()


@frozen
class ProgramSource:
    """A module as compressed text, with its mesh and the shardings of its inputs, and the options of its session.

    Args:
        module: The text or bytecode.
        is_xdsl: Whether xDSL reads it.
        options: The options.
    """

    module: bytes = field(repr=False)
    is_xdsl: bool
    options: SessionOptions

    @classmethod
    def of(
        cls,
        module: Any,
        mesh: Any = None,
        *,
        in_shardings: InShardings | None = None,
        options: SessionOptions = DEFAULT_OPTIONS,
    ) -> ProgramSource:
        """Return the source of a module in any form that `propagate` takes.

        Raises:
            ShardyError: the module, the mesh or the shardings are not valid.
        """
        frontend = frontend_of(module)
        if mesh is None and in_shardings is None:
            data = _content(module, frontend)
        else:
            data = _with_shardings(_content(module, frontend), frontend, options, mesh, in_shardings)
        return cls(zlib.compress(data), frontend.__name__.endswith(".xdsl"), options)

    @property
    def key(self) -> str:
        """A text that is equal for equal sources, in all processes."""
        options = evolve(self.options, plugins=())
        # A plugin object is known by its name only; that of an installed one by its distribution and version.
        plugins = [getattr(item, "__name__", type(item).__qualname__) for item in self.options.plugins]
        installed = [(info.name, info.origin, info.status) for info in self.options.load_registry().plugins]
        parts = (zlib.decompress(self.module), self.is_xdsl, options, plugins, installed)
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def open(self) -> Session:
        """Return the session of the program."""
        data = zlib.decompress(self.module)
        if not self.is_xdsl:
            return self.options.open(data)
        from shardy_py.frontends.xdsl import parse_module

        return self.options.open(parse_module(data.decode()))


def plugin_files(paths: Iterable[str | Path]) -> tuple[PluginFile, ...]:
    """Return the plugins of files."""
    return tuple(map(PluginFile.read, paths))


def _content(module: Any, frontend: ModuleType) -> bytes:
    """Return a module as text or bytecode; one that is given as an object stays as it is."""
    if isinstance(module, Path):
        # Bytes that are no text are refused where the module is read, with a better message.
        return module.read_bytes() if module.suffix == SUFFIX or module.is_file() else b""
    if isinstance(module, str | bytes):
        return module.encode() if isinstance(module, str) else module
    return str(frontend.print_module(frontend.to_module(module))).encode()


def _with_shardings(
    data: bytes, frontend: ModuleType, options: SessionOptions, mesh: Any, in_shardings: InShardings | None
) -> bytes:
    """Return a module with what the caller gives written into it."""
    is_xdsl = frontend.__name__.endswith(".xdsl")
    program = read_program(frontend.parse_module(data.decode()) if is_xdsl else data)
    registry = complete_registry(program, options.load_registry())
    give_shardings(program, find_main(program), registry, mesh=mesh, in_shardings=in_shardings)
    store_shardings(program, registry)
    return str(frontend.print_module(frontend.write_back(program))).encode()
