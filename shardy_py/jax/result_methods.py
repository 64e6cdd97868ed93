"""Methods of `Result` that make programs for XLA and for the devices of JAX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, overload

from attrs import evolve

from shardy_py.api.keywords import method_takes
from shardy_py.api.options import LocalOptions
from shardy_py.errors import Diagnostic, OptionError, UnsupportedError
from shardy_py.frontends.select import frontend_of

if TYPE_CHECKING:
    from shardy_py.api.result import CoreResult as _Base
    from shardy_py.ir.graph.program import Program
    from shardy_py.jax.callable.device_program import DeviceProgram
    from shardy_py.jax.compiled import CompiledModule
    from shardy_py.jax.jit_comparison import JitComparison
    from shardy_py.jax.local import LocalProgram
else:
    _Base = object

Partitioner = Literal["shardy_py", "xla"]
"""The partitioner, which decides how data moves between devices."""


class JaxMethods(_Base):
    """Methods of a result that give the program to XLA, or run it on the devices of JAX."""

    def for_xla(self, *, leave_open: bool = False, warnings: list[Diagnostic] | None = None) -> Any:
        """Return a copy of the module in the form that XLA takes through JAX; ``str`` of it is its text.

        XLA reads the shardings of arguments, results and constraints only, so every tensor passes through a closed
        sharding constraint; a tensor that propagation left alone is constrained to be replicated.

        Args:
            leave_open: Whether tensors without a sharding are left to XLA's own propagation.
            warnings: Gets a diagnostic for each op that XLA's partitioner is known to compute wrongly, or not at all,
                with these shardings; without it, Python's `warnings` do.

        Returns:
            A native module; `module` stays as it is.

        Raises:
            UnsupportedError: the meshes of the program are over different devices.
        """
        from shardy_py.jax.form import form_module

        name = self.source_name or "-"
        return form_module(self._mlir, semantics=self.registry, leave_open=leave_open, name=name, warnings=warnings)

    def for_gspmd(self, *, warnings: list[Diagnostic] | None = None) -> Any:
        """Return a copy of the module for compilers that do not know Shardy; ``str`` of it is its text.

        Shardings are attributes ``mhlo.sharding``; constraints, reshards and manual computations are the custom calls
        that JAX writes without the Shardy partitioner. A tensor that propagation left alone is said to be replicated.

        Args:
            warnings: Gets one that lists what GSPMD has no words for; without it, Python's `warnings` do.

        Returns:
            A native module; `module` stays as it is.

        Raises:
            UnsupportedError: the module has ops of Shardy that have no counterpart.
        """
        from shardy_py.jax.gspmd.result import gspmd_module

        return gspmd_module(self._mlir, self.registry, warnings)

    @overload
    def to_jax(
        self, devices: Sequence[Any] | None = None, *, compiler_options: Mapping[str, Any] | None = None
    ) -> DeviceProgram: ...

    @overload
    def to_jax(
        self,
        devices: Sequence[Any] | None = None,
        *,
        partitioner: Literal["xla"],
        leave_open: bool = False,
        warnings: list[Diagnostic] | None = None,
        compiler_options: Mapping[str, Any] | None = None,
    ) -> CompiledModule: ...

    @overload
    def to_jax(
        self,
        devices: Sequence[Any] | None = None,
        *,
        partitioner: Partitioner,
        leave_open: bool = False,
        warnings: list[Diagnostic] | None = None,
        compiler_options: Mapping[str, Any] | None = None,
    ) -> DeviceProgram | CompiledModule: ...

    def to_jax(
        self,
        devices: Sequence[Any] | None = None,
        *,
        partitioner: Partitioner = "shardy_py",
        leave_open: bool = False,
        warnings: list[Diagnostic] | None = None,
        compiler_options: Mapping[str, Any] | None = None,
    ) -> DeviceProgram | CompiledModule:
        """Return the program as a function of JAX, for the devices of JAX.

        Each device runs its local program. With the partitioner of XLA, its form for XLA is compiled, and XLA decides
        how data moves.

        Args:
            devices: The devices, as many as the largest mesh has; by default those that a function of JAX was lowered
                for, or the first ones of ``jax.devices()``.
            partitioner: ``shardy_py`` for the local program, ``xla`` for XLA's partitioner.
            leave_open: With XLA's, whether tensors without a sharding are left to XLA's own propagation.
            warnings: With XLA's, gets the known faults of XLA's partitioner that the program meets, which are errors
                without it: for a program that is compiled to be measured.
            compiler_options: Options of XLA, as `jax.jit` takes them.

        Returns:
            What runs it. Call it as the function of JAX, with its trees, or with one array per argument of the main
            function; it returns a list of arrays, or the tree of results where that is not a flat list.

        Raises:
            UnsupportedError: the meshes are over different devices, XLA refuses the module, or its partitioner is known
                to compute an op wrongly.
            OptionError: fewer devices than the largest mesh has, or an option is not valid.
        """
        if partitioner not in ("shardy_py", "xla"):
            message = f"{partitioner!r} is not a valid partitioner"
            raise OptionError(Diagnostic("invalid-partitioner", message, hint="give 'shardy_py' or 'xla'"))
        if partitioner == "shardy_py":
            if leave_open or warnings is not None:
                message = f"{'leave_open' if leave_open else 'warnings'} is an option of XLA's partitioner"
                raise OptionError(Diagnostic("option-conflict", message, hint="give partitioner='xla', too"))
            if frontend_of(self.program).writes_local:
                raise _no_program_of_jax(self.program)
            from shardy_py.jax.callable.make import make_device_program
            from shardy_py.jax.local.native_form import FrontendForm
            from shardy_py.jax.unsupported_programs import refuse_what_cannot_run

            callbacks = 0 if self.signature is None else len(self.signature.host_callbacks)
            refuse_what_cannot_run(self.program, callbacks=callbacks)
            local = self.local()
            if isinstance(local.form, FrontendForm):
                raise _no_program_of_jax(self.program)
            program = make_device_program(local, self.main, self.registry, devices=devices, signature=self.signature)
            return evolve(program, compiler_options=dict(compiler_options or {}))
        from shardy_py.jax.compile import to_jax

        name = self.source_name or "-"
        return to_jax(
            self._mlir,
            semantics=self.registry,
            devices=devices,
            leave_open=leave_open,
            name=name,
            signature=self.signature,
            warnings=warnings,
            compiler_options=compiler_options,
        )

    @method_takes(LocalOptions)
    def local(self, options: LocalOptions) -> LocalProgram:
        """Return the program that each device runs, on its shards; ``run`` of it runs it on host devices.

        Returns:
            The local program; `module` stays as it is.

        Raises:
            UnsupportedError: MLIR does not know a dialect of the program.
            ShardyError: an op has no local form, or a sharded dimension is dynamic.
        """
        from shardy_py.jax.local.form import local_form

        if options not in self._local:
            name = self.source_name or "-"
            is_explicit = self.has_explicit_collectives
            self._local[options] = local_form(
                self.program, self.module, self.registry, options, name=name, is_explicit=is_explicit
            )
        return self._local[options]

    def in_specs(self, mesh: Any = None) -> Any:
        """Return the shardings of the arguments in the tree of the function's, without compiling.

        Args:
            mesh: A mesh of JAX, for a tree of ``NamedSharding`` over it; by default it is one of ``PartitionSpec``.

        Raises:
            OptionError: it is not a function of JAX.
        """
        from shardy_py.jax.result_shardings import shardings_in_tree

        return shardings_in_tree(self, mesh, of_results=False)

    def out_specs(self, mesh: Any = None) -> Any:
        """Return the shardings of the results in the tree of the function's, as `in_specs`.

        Args:
            mesh: A mesh of JAX, for a tree of ``NamedSharding`` over it.

        Raises:
            OptionError: it is not a function of JAX.
        """
        from shardy_py.jax.result_shardings import shardings_in_tree

        return shardings_in_tree(self, mesh, of_results=True)

    def compare_jit(self, source: Any = None, *, devices: Sequence[Any] | None = None) -> JitComparison:
        """Compile the program as `jax.jit` does, once, and compare what XLA decides with this result, op by op.

        Args:
            source: The program as it was given, where it was an ``ir.Module``, which this run has changed.
            devices: The devices, as many as the largest mesh has; the first ones of ``jax.devices()`` by default.

        Returns:
            What is equal and what is not; ``str`` of it is readable.

        Raises:
            UnsupportedError: XLA refuses the program before it propagates.
            OptionError: there are too few devices, or the program is not known any more.
        """
        from shardy_py.jax.jit_comparison import compare_with_jit

        return compare_with_jit(self, source, devices)

    @cached_property
    def jaxlib(self) -> str:
        """The version of the jaxlib whose XLA has converted the program; "" where none did."""
        if self.like == "passes":
            return ""
        from shardy_py.jax.like_jit import jaxlib_version

        return jaxlib_version()


def _no_program_of_jax(program: Program) -> UnsupportedError:
    message = f"JAX does not run programs of the frontend {frontend_of(program).name!r}"
    hint = "Result.local().run(*arrays), or shardy run FILE, runs the program of each device"
    return UnsupportedError(Diagnostic("no-xla-program", message, hint=hint))
