"""A program on its way to another process: all that is needed to open its session there."""

from __future__ import annotations

import sys
import zlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

from attrs import astuple, evolve, field

from shardy_py.api.keywords import keywords, narrow
from shardy_py.api.options import ProgramInput, ProgramOptions
from shardy_py.api.registries import check_given, load_registry
from shardy_py.api.run_input import RunInput, give_shardings, read_input, resolve_like
from shardy_py.extensions import function
from shardy_py.frontends.select import bundled_frontend, find_frontend, frontend_of, named_frontend
from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.shardings import store_shardings
from shardy_py.plugins import Registry, RuleOptions
from shardy_py.plugins.plugin_dependencies import digest_file, find_imported_modules
from shardy_py.plugins.plugin_files import PluginFile
from shardy_py.values import frozen

if TYPE_CHECKING:
    from shardy_py.cost.session import Session

_IN_REGISTRY = frozenset(("plugins", "blocked", "strict_plugins"))


@frozen(slots=False, kw_only=True)
class SessionOptions(ProgramOptions):
    """Options of a session that any process understands.

    Plugins that are sent to other processes must be importable there, or be pickled by cloudpickle.

    Args:
        plugin_files: Files with more plugins.
    """

    plugin_files: tuple[PluginFile, ...] = ()

    def load_registry(self) -> Registry:
        """Return the definitions of ops.

        Raises:
            PluginError: a plugin is broken.
        """
        return load_registry(
            plugins=[*check_given(self.plugins), *(item.load() for item in self.plugin_files)],
            blocked=self.blocked,
            options=RuleOptions(self.conservative, self.extended_rules),
            strict_plugins=self.strict_plugins,
        )

    def open(self, program_input: ProgramInput, *, keep_names: bool = False) -> Session:
        """Return the session of a program.

        Args:
            program_input: The program.
            keep_names: Whether the session keeps the names of values for reports.
        """
        # Only commands that solve again need sessions, which bring the whole cost model.
        session: Session = function("session").open(
            **keywords(program_input), **self.run_options(), keep_names=keep_names
        )
        return session

    def run_options(self) -> dict[str, Any]:
        """Return the keywords of `propagate` and `Session.open`, with the registry in place of the plugins."""
        options = keywords(narrow(self, ProgramOptions))
        rest = {name: value for name, value in options.items() if name not in _IN_REGISTRY}
        return {**rest, "registry": self.load_registry()}


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
    def of(cls, program_input: ProgramInput, options: SessionOptions = DEFAULT_OPTIONS) -> ProgramSource:
        """Return the source of a program as a caller gives it.

        Raises:
            ShardyError: the module, the mesh or the shardings are not valid.
        """
        registry = options.load_registry()
        module = program_input.module
        if isinstance(module, Program) and module.frontend is not None:
            module = module.frontend.write_back(module)
        frontend = find_frontend(module, registry)
        # The shardings of a program that was built are in its table only; reading it copies it.
        built = module if isinstance(module, Program) else None
        has_args = program_input.args is not None or program_input.kwargs is not None
        like = "passes" if has_args else resolve_like(program_input.like, module, frontend)
        is_read = built is not None or has_args or like == "jit"
        data = b"" if is_read else frontend.to_bytes(module)
        if is_read or any(item is not None for item in astuple(program_input, recurse=False)[1:]):
            read = _with_shardings(
                evolve(program_input, module=module if is_read else frontend.from_bytes(data)), registry
            )
            frontend = bundled_frontend("jit") if read.like == "jit" else frontend_of(read.program)
            data = frontend.to_bytes(frontend.write_back(read.program))
        return cls(zlib.compress(data), frontend.name, options)

    @property
    def key(self) -> str:
        """A text that is equal for sources whose sessions do the same, in all processes."""
        return _digest((self.program_key, self.plugins_key))

    @property
    def program_key(self) -> str:
        """A text that is equal for the same program, options and names of given plugins."""
        options = evolve(self.options, plugins=(), plugin_files=())
        plugins = [*map(_name_of, self.options.plugins), *(item.stem for item in self.options.plugin_files)]
        return _digest((zlib.decompress(self.module), self.frontend, options, plugins))

    @property
    def plugins_key(self) -> str:
        """A text that is equal for plugins of the same code: their files, all that they import, and their versions."""
        plugin_files = self.options.plugin_files
        files = [(item.stem, item.text, item.files, item.imported_modules()) for item in plugin_files]
        # A plugin object is known by its name, and the module of its class or function.
        objects = [(_name_of(item), _code_of(_module_of(item))) for item in self.options.plugins]
        infos = self.options.load_registry().plugins
        sources = {getattr(item, "__file__", None): item for item in list(sys.modules.values())}
        installed = [
            (info.name, info.origin, info.status, _code_of(sources.get(info.source))) for info in infos if info.origin
        ]
        return _digest((files, objects, installed))

    def open(self) -> Session:
        """Return the session of the program."""
        frontend = named_frontend(self.frontend, self.options.load_registry())
        return self.options.open(ProgramInput(frontend.from_bytes(zlib.decompress(self.module))))


def _digest(parts: object) -> str:
    import hashlib

    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _name_of(plugin: object) -> str:
    return str(getattr(plugin, "__name__", type(plugin).__qualname__))


def _module_of(plugin: object) -> ModuleType | None:
    """Return the module of a plugin object, itself where it is one."""
    return plugin if isinstance(plugin, ModuleType) else sys.modules.get(str(getattr(plugin, "__module__", "")))


def _code_of(module: ModuleType | None) -> object:
    """Return digests of a module and of all that it imports from outside of installed packages, and their versions."""
    if module is None:
        return None
    imported = find_imported_modules(module)
    return {name: digest_file(file) for name, file in sorted(imported.files.items())}, imported.versions


def _with_shardings(program_input: ProgramInput, registry: Registry) -> RunInput:
    """Return the input of a run with the mesh and the shardings of the caller written into its program."""
    read = read_input(program_input, registry)
    give_shardings(read, program_input)
    store_shardings(read.program, read.registry)
    return read
