"""The program that each device runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NoReturn

from attrs import field

from shardy_py.errors import Diagnostic, OptionError, UnsupportedError, as_warnings, require_library
from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.shardings import entry_arguments
from shardy_py.ir.interfaces.communication import CommunicationChange
from shardy_py.ir.interfaces.local import LocalOps
from shardy_py.ir.interfaces.local_ops import LocalCollective
from shardy_py.jax.arguments import array_values, refuse_index
from shardy_py.jax.local.child import run_in_child
from shardy_py.jax.local.native_form import FrontendForm, MlirForm, NativeForm
from shardy_py.jax.local.port import Port
from shardy_py.jax.local.replicas import as_replicas
from shardy_py.jax.unsupported_programs import refuse_what_cannot_run, refuse_what_xla_partitions
from shardy_py.sharding.mesh import Mesh
from shardy_py.support.arguments import as_integer, shown
from shardy_py.values import frozen


@frozen(slots=False, eq=False)
class LocalProgram:
    """The program that each device runs, on its shards.

    Attributes:
        module: The native module, with partition ids, and groups of devices in its collectives: a module of MLIR, or
            what the frontend writes; a text in MLIR's generic form where it writes nothing.
        program: Its op graph; values have the shardings of the global ones.
        mesh: The mesh over all devices; of several the first one.
        arguments: The arguments of the main function, with the shapes of shards.
        results: Its results.
        ops: The ops for communication.
        warnings: The ops that run on gathered operands.
        communication: What was changed so that less is sent, with the bytes before and after.
        form: How the module is written.
        of_sizes: Returns the local program of the same program in which dynamic sizes are numbers, by argument and
            dimension (``arg0.1``); None where no size is dynamic, or the frontend runs the program as it is.
        pads: Whether dynamic sizes without equal parts are padded.
    """

    module: Any
    program: Program
    mesh: Mesh
    arguments: tuple[Port, ...]
    results: tuple[Port, ...]
    ops: LocalOps
    warnings: tuple[Diagnostic, ...] = field(default=(), converter=as_warnings)
    communication: tuple[CommunicationChange, ...] = ()
    form: NativeForm = field(factory=MlirForm, repr=False)
    of_sizes: Callable[[Mapping[str, int]], LocalProgram] | None = field(default=None, repr=False)
    pads: bool = False

    @property
    def device_count(self) -> int:
        """The number of devices."""
        return self.mesh.total_size

    @cached_property
    def text(self) -> str:
        """The module as text: of MLIR, or as its frontend prints it."""
        return self.form.text(self.module)

    @cached_property
    def shard_program(self) -> Program:
        """The op graph without shardings, as costs and layouts read it: all types are those of shards already."""
        program = self.copied_program()
        program.shardings.clear()
        return program

    @cached_property
    def collectives(self) -> tuple[LocalCollective, ...]:
        """The collectives in the order of the text, each with its groups of devices."""
        collectives = (self.ops.read_collective(op) for op in self.program.walk())
        return tuple(item for item in collectives if item is not None)

    def per_device(self, device: int) -> Any:
        """Return a copy of the module for one device: its number, and the offsets that follow from it, are constants.

        Args:
            device: The number of the device.

        Returns:
            A native module; `module` stays as it is.

        Raises:
            OptionError: there is no such device.
        """
        if as_integer(device) is None or not 0 <= device < self.device_count:
            message = f"there is no device {shown(device)}; there are {self.device_count}, numbered from 0"
            raise OptionError(Diagnostic("unknown-device", message, hint="give the number of one of them"))
        program = self.copied_program()
        self.ops.fold_device(program, device)
        return self.form.write(program)

    def run(self, *arrays: Any) -> list[Any]:
        """Run the program on host devices of JAX, in a process of its own, or as the frontend of another IR runs it.

        No partitioner is involved: each device runs the text as a replica.

        Args:
            arrays: One global array per argument of the main function.

        Returns:
            The global results, as arrays of numpy.

        Raises:
            OptionError: an array is missing, or has another shape or dtype.
            UnsupportedError: an op calls into Python, two devices have different values of the same part of a result,
                or XLA has no arrays of the type of an argument or result.
            WorkerError: XLA refuses the program, or ends its process.
        """
        if not isinstance(self.form, FrontendForm) and self.of_sizes is None:
            self._refuse_what_jax_cannot_run()
        if len(arrays) != len(self.arguments):
            message = f"the program has {len(self.arguments)} arguments, given are {len(arrays)}"
            raise OptionError(Diagnostic("argument-count", message, hint="give one global array per argument"))
        if self.of_sizes is not None:
            return self.of_sizes(self._sizes_of(arrays)).run(*arrays)
        pairs = enumerate(zip(self.arguments, arrays, strict=True))
        shards = [port.split(array, self.device_count, number) for number, (port, array) in pairs]
        if isinstance(self.form, FrontendForm):
            results = self.form.frontend.run_local(self.module, self.device_count, shards)
        else:
            results = run_in_child(self._replicas, self.device_count, shards)
        return [
            port.join(parts, number) for number, (port, parts) in enumerate(zip(self.results, results, strict=True))
        ]

    def _sizes_of(self, arrays: Sequence[Any]) -> dict[str, int]:
        """Return the sizes that arrays have in the places of dynamic ones; without padding all have equal parts."""
        sizes: dict[str, int] = {}
        for number, (port, array) in enumerate(zip(self.arguments, arrays, strict=True)):
            if port.is_dynamic:
                shape = port.checked_shape(array, number)
                if not self.pads:
                    port.of_shape(shape, number, may_pad=True)
                dims = enumerate(port.type.shape)
                sizes |= {f"arg{number}.{dim}": shape[dim] for dim, size in dims if size < 0}
        return sizes

    def _refuse_what_jax_cannot_run(self) -> None:
        require_library("jax", purpose="running a local program needs", extra="jax")
        refuse_what_cannot_run(self.program)
        self._refuse_tokens()
        refuse_what_xla_partitions(self.program)
        main = self.program.functions["main"]
        refuse_index(entry_arguments(main), "argument")
        refuse_index(main.function_results, "result")

    def _refuse_tokens(self) -> None:
        main = self.program.functions["main"]
        values = (*entry_arguments(main), *main.function_results)
        if len(array_values(values)) < len(values):
            message = "the program takes or gives a token, which no array is"
            hint = "run it with Result.to_jax, or leave ordered effects out"
            raise UnsupportedError(Diagnostic("no-array-type", message, main.location, main.name, hint))

    def copied_program(self) -> Program:
        """Return the op graph of a copy of the module; its locations are those of the program that was propagated."""
        return self.form.copy(self.program, self.module)

    @cached_property
    def _replicas(self) -> bytes:
        program = self.copied_program()
        for op in program.walk():
            self.ops.list_groups(op)
        return as_replicas(self.form.write(program))

    def __reduce__(self) -> NoReturn:
        message = "a local program cannot be pickled or copied: it holds a module of a library"
        raise OptionError(Diagnostic("not-picklable", message, hint="send its text, or str(local.per_device(number))"))

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<LocalProgram for {self.device_count} devices>"
