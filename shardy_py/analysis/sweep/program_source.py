"""A program on its way to another process: all that is needed to open its session there."""

from __future__ import annotations

import hashlib
import zlib
from typing import Any

from attrs import evolve, field, frozen

from shardy_py.analysis.session import Session
from shardy_py.api.given_shardings import InShardings, OutShardings
from shardy_py.api.main_function import find_main
from shardy_py.api.options import Strategy
from shardy_py.api.registries import load_registry
from shardy_py.api.run_input import give_shardings
from shardy_py.api.source import complete_registry, read_program
from shardy_py.frontends.select import find_frontend, frontend_of, named_frontend
from shardy_py.ir.graph import Program
from shardy_py.ir.shardings import store_shardings
from shardy_py.plugins import Registry, RuleOptions
from shardy_py.plugins.plugin_files import PluginFile


@frozen
class SessionOptions:
    """The options of a session that any process understands.

    Args:
        strategy: ``basic``, ``aggressive``, ``op-priority`` or ``user-priority``.
        conservative: Leave out factors that could be sharded unevenly.
        extended_rules: Give rules to ops that the reference leaves without one.
        dedup_functions_fully: Let all calls of a function share its shardings.
        inline_calls: Put the bodies of functions in the places of their calls first.
        plugins: More plugins besides the installed ones; what is sent to other processes must be importable there, or
            be pickled by cloudpickle.
        plugin_files: Files with more of them.
        blocked: The names of plugins that are not loaded.
    """

    strategy: Strategy = "user-priority"
    conservative: bool = False
    extended_rules: bool = False
    dedup_functions_fully: bool = False
    inline_calls: bool = False
    plugins: tuple[object, ...] = ()
    plugin_files: tuple[PluginFile, ...] = ()
    blocked: tuple[str, ...] = ()

    def load_registry(self) -> Registry:
        """Return the definitions of ops.

        Raises:
            PluginError: a plugin is broken.
        """
        return load_registry(
            plugins=[*self.plugins, *(item.load() for item in self.plugin_files)],
            blocked=self.blocked,
            options=RuleOptions(self.conservative, self.extended_rules),
        )

    def open(
        self,
        module: Any,
        mesh: Any = None,
        *,
        in_shardings: InShardings | None = None,
        out_shardings: OutShardings | None = None,
        keep_names: bool = False,
    ) -> Session:
        """Return the session of a module; see `Session.open`."""
        return Session.open(
            module,
            mesh,
            in_shardings=in_shardings,
            out_shardings=out_shardings,
            strategy=self.strategy,
            conservative=self.conservative,
            extended_rules=self.extended_rules,
            dedup_functions_fully=self.dedup_functions_fully,
            inline_calls=self.inline_calls,
            registry=self.load_registry(),
            keep_names=keep_names,
        )


DEFAULT_OPTIONS = SessionOptions()


@frozen
class ProgramSource:
    """A module as compressed text, with its mesh and the shardings of its inputs, and the options of its session.

    Args:
        module: The text or bytecode.
        frontend: The name of the frontend that reads it.
        options: The options.
    """

    module: bytes = field(repr=False)
    frontend: str
    options: SessionOptions

    @classmethod
    def of(
        cls,
        module: Any,
        mesh: Any = None,
        *,
        in_shardings: InShardings | None = None,
        out_shardings: OutShardings | None = None,
        options: SessionOptions = DEFAULT_OPTIONS,
    ) -> ProgramSource:
        """Return the source of a module in any form that `propagate` takes.

        Raises:
            ShardyError: the module, the mesh or the shardings are not valid.
        """
        registry = options.load_registry()
        if isinstance(module, Program) and module.frontend is not None:
            module = module.frontend.write_back(module)
        frontend = find_frontend(module, registry)
        # The shardings of a program that was built are in its table only; reading it copies it.
        built = module if isinstance(module, Program) else None
        data = b"" if built is not None else frontend.to_bytes(module)
        if built is not None or any(given is not None for given in (mesh, in_shardings, out_shardings)):
            source = frontend.from_bytes(data) if built is None else built
            program = _with_shardings(source, registry, mesh, in_shardings, out_shardings)
            frontend = frontend_of(program)
            data = frontend.to_bytes(frontend.write_back(program))
        return cls(zlib.compress(data), frontend.name, options)

    @property
    def key(self) -> str:
        """A text that is equal for equal sources, in all processes."""
        options = evolve(self.options, plugins=())
        # A plugin object is known by its name only; that of an installed one by its distribution and version.
        plugins = [getattr(item, "__name__", type(item).__qualname__) for item in self.options.plugins]
        installed = [(info.name, info.origin, info.status) for info in self.options.load_registry().plugins]
        parts = (zlib.decompress(self.module), self.frontend, options, plugins, installed)
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def open(self) -> Session:
        """Return the session of the program."""
        frontend = named_frontend(self.frontend, self.options.load_registry())
        return self.options.open(frontend.from_bytes(zlib.decompress(self.module)))


def _with_shardings(
    source: Any,
    registry: Registry,
    mesh: Any,
    in_shardings: InShardings | None,
    out_shardings: OutShardings | None,
) -> Program:
    """Return a program with what the caller gives written into it."""
    program = read_program(source, registry)
    semantics = complete_registry(program, registry)
    give_shardings(
        program, find_main(program), semantics, mesh=mesh, in_shardings=in_shardings, out_shardings=out_shardings
    )
    store_shardings(program, semantics)
    return program
