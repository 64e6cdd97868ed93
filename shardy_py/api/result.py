"""The result of a propagation."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

from attrs import evolve, field

from shardy_py.api.coverage import Coverage, Survey, report_coverage
from shardy_py.api.main_function import arguments_of
from shardy_py.api.options import Like, LocalOptions, PropagateArguments
from shardy_py.api.summary import Summary, count_communications, sharding_of, summarize
from shardy_py.errors import Diagnostic, OptionError, as_warnings
from shardy_py.extensions import load, result_method_homes
from shardy_py.frontends.select import frontend_of
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.plugins import Registry
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.support.arguments import as_integer, shown
from shardy_py.transforms.reduced_shardings import CODE as REDUCED
from shardy_py.values import define

if TYPE_CHECKING:
    import networkx as nx

    from shardy_py.api.names import ValueNames
    from shardy_py.api.run_again import GivenRun
    from shardy_py.extensions import ResultMethods
    from shardy_py.jax.local import LocalProgram
    from shardy_py.jax.signature import JaxSignature
    from shardy_py.trace.trace import Trace
    from shardy_py.transforms.constant_copies import ConstantCopy


@define(frozen=True, slots=False, eq=False)
class CoreResult:
    """A propagated program as the core knows it; leaves add the other methods of `Result`.

    Attributes:
        module: The annotated native module; the same object where one was given.
        program: The op graph, with the table of shardings.
        main: The main function.
        registry: The definitions of ops.
        surveyed: The ops without a rule in the program as it was given.
        warnings: What is worth knowing, but no error.
        trace: What propagated and what did not; None without ``trace``.
        has_explicit_collectives: Whether all communication is explicit.
        copies: The copies of constants, one per use, with reasons; None without ``record_copies``.
        given: The program and the options that it was propagated with; None without ``trace``.
        source_name: The name of the file that the program was read from, or "".
        like: What the program was propagated like: ``jit``, as `jax.jit` does it, or ``passes``; see `propagate`.
        given_arguments: The arguments of the run, with the program as it was given.
        signature: The trees of arguments and results of a function of JAX; None for other programs.
    """

    module: Any
    program: Program
    main: Op
    registry: Registry
    surveyed: Survey
    warnings: tuple[Diagnostic, ...] = field(default=(), converter=as_warnings)
    copies: tuple[ConstantCopy, ...] | None = None
    trace: Trace | None = None
    has_explicit_collectives: bool = False
    given: GivenRun | None = None
    source_name: str = ""
    like: Like = "passes"
    given_arguments: PropagateArguments | None = field(default=None, repr=False)
    signature: JaxSignature | None = field(default=None, repr=False)
    _local: dict[LocalOptions, LocalProgram] = field(factory=dict, init=False, repr=False)

    @cached_property
    def text(self) -> str:
        """The annotated module as MLIR text."""
        return frontend_of(self.program).print_text(self.module)

    @property
    def _mlir(self) -> Any:
        """The module of MLIR, or its text where another frontend made it."""
        return frontend_of(self.program).to_mlir(self.module)

    def to_networkx(self) -> nx.MultiDiGraph:
        """Return the def-use graph with the shardings as node attributes.

        It is as `shardy_py.ir.graph.graphs.to_networkx` says; a value node also has its printed ``name`` ("" where it
        has none), and its ``sharding`` may come from the other end of a data-flow edge.
        """
        from shardy_py.api.names import named_graph

        return named_graph(self.program, self.registry)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Result of @{self.main.attributes['sym_name']}>"

    def __reduce__(self) -> NoReturn:
        message = "a result cannot be pickled or copied: it holds a module of a library"
        raise OptionError(Diagnostic("not-picklable", message, hint="send its text, and str(result.sharding(name))"))

    def sharding(self, value: Any) -> TensorSharding | None:
        """Return the sharding of a value, or None where propagation did not reach it.

        Args:
            value: A `Value` of the program; a native value of the module; the number of an argument of the main
                function, counted without the token of ordered effects; or a name as the text prints it (``"%5"``,
                ``"%5#1"``, ``"arg0"``), or that an argument or a result of the main function has (``"params['w']"``,
                ``"result0"``).

        Raises:
            OptionError: there is no such value.
        """
        return sharding_of(self.program, self.value(value), self.registry)

    def devices(self, value: Any) -> tuple[tuple[slice, ...], ...]:
        """Return the part of a value that each device holds, by the number of the device: one slice per dimension.

        A value that propagation did not reach is whole on every device. The last parts of a dimension that does not
        divide are shorter.

        Args:
            value: As for `sharding`.

        Raises:
            OptionError: there is no such value.
            UnsupportedError: the value has no shape, or a dynamic size.
        """
        from shardy_py.api.device_parts import device_parts

        return device_parts(self.program, self.value(value), self.sharding(value))

    def value(self, value: Any) -> Value:
        """Return the value of the program with a number, a printed name or a native value.

        Raises:
            OptionError: there is no such value.
        """
        if isinstance(value, Value):
            op = value.owner.parent_op if isinstance(value.owner, Block) else value.owner
            if op is None or op.program is self.program:
                return value
        found = self._names.find(self._key_in_main(value))
        count = self._token_count
        if found in (*arguments_of(self.main)[:count], *self.main.function_results[:count]):
            message = f"{shown(value)} is the token that orders effects, which has no sharding"
            hint = "names of the text count it: give the next one, or the name that the function has for the value"
            raise OptionError(Diagnostic("unknown-value", message, hint=hint))
        return found

    def _key_in_main(self, value: Any) -> Any:
        """Return the number of an argument as the main function counts it, behind the token of ordered effects.

        What is not such a number is returned as it is.
        """
        number = as_integer(value)
        return value if number is None or number < 0 else number + self._token_count

    @property
    def _token_count(self) -> int:
        return 0 if self.signature is None else self.signature.tokens

    @property
    def arguments(self) -> tuple[TensorSharding | None, ...]:
        """The shardings of the arguments of the main function; that of the token of ordered effects is first, None."""
        return tuple(self.program.shardings.get(value.id) for value in arguments_of(self.main))

    @property
    def results(self) -> tuple[TensorSharding | None, ...]:
        """The shardings of the results of the main function; that of the token of ordered effects is first, None."""
        return tuple(self.program.shardings.get(value.id) for value in self.main.function_results)

    @cached_property
    def summary(self) -> Summary:
        """A few numbers about the run."""
        reduced = sum(item.code == REDUCED for item in self.warnings)
        return evolve(summarize(self.program, self.main, self.registry), shardings_reduced=reduced)

    @cached_property
    def communications(self) -> Mapping[str, int]:
        """The number of reshards and collectives by kind: those in the program, and those that a partitioner inserts.

        These are the communications that `shardy explain --reshard` numbers and `shardy cost` prices.
        """
        return count_communications(self.program, self.registry, are_explicit=self.has_explicit_collectives)

    @cached_property
    def coverage(self) -> Coverage:
        """The op kinds of the given program without a sharding rule, and what that costs."""
        return report_coverage(self.surveyed, self.program, self.registry)

    @cached_property
    def _names(self) -> ValueNames:
        from shardy_py.api.names import ValueNames

        return ValueNames.of(self.program, self.main)

    def arguments_again(self) -> PropagateArguments:
        """Return the arguments of the run, to do it again.

        Raises:
            OptionError: the run was not traced.
        """
        if self.given is None:
            from shardy_py.api.run_again import untraced

            raise untraced()
        return self.given.arguments()


if TYPE_CHECKING:

    class _ExtendedResult(ResultMethods):
        """The methods of all leaves, for type checkers."""

else:

    class _ExtendedResult(CoreResult):
        """A result that gets the methods of a leaf when one of them is looked up first."""

        def __getattr__(self, name):
            homes = result_method_homes()
            if name not in homes:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            setattr(_ExtendedResult, name, vars(load(homes[name]))[name])
            return getattr(self, name)

        def __dir__(self):
            return sorted({*super().__dir__(), *result_method_homes()})


class Result(_ExtendedResult):
    """A program with a sharding on every tensor that propagation reached; see `CoreResult` for its attributes."""
