"""The result of a propagation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NoReturn
from warnings import warn

from attrs import evolve, field

from shardy_py.api.communications import count_communications
from shardy_py.api.coverage import Coverage, Survey, report_coverage
from shardy_py.api.keywords import method_takes
from shardy_py.api.local_options import LocalOptions
from shardy_py.api.main_function import arguments_of
from shardy_py.api.options import Like, PropagateArguments
from shardy_py.api.summary import Summary, sharding_of, summarize
from shardy_py.errors import Diagnostic, OptionError, as_warnings
from shardy_py.frontends.select import frontend_of
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.jax.signature import JaxSignature
from shardy_py.plugins import Registry
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.support.arguments import checked
from shardy_py.transforms.reduced_shardings import CODE as REDUCED
from shardy_py.values import define

if TYPE_CHECKING:
    import networkx as nx

    from shardy_py.api.given_run import GivenRun
    from shardy_py.api.names import ValueNames
    from shardy_py.cost.advice.constraints import Advice
    from shardy_py.cost.memory import MemoryReport
    from shardy_py.explain.answer.op_explanation import OpExplanation
    from shardy_py.explain.answer.unsettled import NotSettled
    from shardy_py.explain.answer.value_explanation import ValueExplanation
    from shardy_py.explain.explaining import Explainer
    from shardy_py.explain.explore.page import Page
    from shardy_py.jax import CompiledModule
    from shardy_py.jax.jit_comparison import JitComparison
    from shardy_py.jax.local import LocalProgram
    from shardy_py.layout.policies import LayoutPolicy
    from shardy_py.schedule.given import ScheduleLike
    from shardy_py.torch.parallel import ParallelPlan, Placement, Redistribution, TorchProgram
    from shardy_py.torch.result_forms import TorchForms
    from shardy_py.trace.trace import Trace
    from shardy_py.transforms.constant_copies import ConstantCopy


@define(frozen=True, slots=False, eq=False)
class Result:
    """A program with a sharding on every tensor that propagation reached.

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
    def jaxlib(self) -> str:
        """The version of the jaxlib whose XLA has converted the program; "" where none did."""
        if self.like == "passes":
            return ""
        from shardy_py.jax.like_jit import jaxlib_version

        return jaxlib_version()

    @cached_property
    def text(self) -> str:
        """The annotated module as MLIR text."""
        return frontend_of(self.program).print_text(self.module)

    def for_xla(self, *, leave_open: bool = False) -> Any:
        """Return a copy of the module in the form that XLA takes through JAX; ``str`` of it is its text.

        XLA reads the shardings of arguments, results and constraints only, so every tensor passes through a closed
        sharding constraint; a tensor that propagation left alone is constrained to be replicated.

        Args:
            leave_open: Whether tensors without a sharding are left to XLA's own propagation.

        Returns:
            A native module; `module` stays as it is.

        Raises:
            UnsupportedError: the meshes of the program are over different devices.
        """
        from shardy_py.jax import for_xla

        return for_xla(self._mlir, semantics=self.registry, leave_open=leave_open).origin.module

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

    def to_jax(self, devices: Sequence[Any] | None = None, *, leave_open: bool = False) -> CompiledModule:
        """Compile the form for XLA, for the devices of JAX.

        Args:
            devices: The devices, as many as the largest mesh has; the first ones of ``jax.devices()`` by default.
            leave_open: Whether tensors without a sharding are left to XLA's own propagation.

        Returns:
            What runs it. Call it as the function of JAX, with its trees, or with one array per argument of the main
            function; it returns a list of arrays, or the tree of results where that is no flat list.

        Raises:
            UnsupportedError: the meshes are over different devices, or XLA refuses the module.
            OptionError: fewer devices than the largest mesh has.
        """
        from shardy_py.jax import to_jax

        name = self.source_name or "-"
        return to_jax(
            self._mlir,
            semantics=self.registry,
            devices=devices,
            leave_open=leave_open,
            name=name,
            signature=self.signature,
        )

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

    @method_takes(LocalOptions)
    def local(self, options: LocalOptions) -> LocalProgram:
        """Return the program that each device runs, on its shards; ``run`` of it runs it on host devices.

        Returns:
            The local program; `module` stays as it is.

        Raises:
            OptionError: the program was propagated without explicit collectives.
            UnsupportedError: MLIR does not know a dialect of the program.
            ShardyError: an op has no local form, or a sharded dimension is dynamic.
        """
        from shardy_py.jax.local.form import local_form

        if not self.has_explicit_collectives:
            message = "a local program needs explicit collectives"
            raise OptionError(Diagnostic("no-collectives", message, hint="propagate(..., local=True)"))
        if options not in self._local:
            self._local[options] = local_form(self._mlir, self.registry, options, name=self.source_name or "-")
        return self._local[options]

    @property
    def _mlir(self) -> Any:
        """The module of MLIR, or its text where another frontend made it."""
        return frontend_of(self.program).to_mlir(self.module)

    def placements(self, value: Any) -> tuple[Placement, ...]:
        """Return how a tensor is placed along each dimension of the mesh, in DTensor's words.

        Args:
            value: What `sharding` takes, such as the fully qualified name of a parameter.

        Raises:
            OptionError: there is no such value.
            UnsupportedError: placements cannot say it.
        """
        return self._torch.placements(self.value(value), str(value))

    def parallelize_plan(
        self, *, axis: str | None = None, verify: bool = True, warnings: list[Diagnostic] | None = None
    ) -> ParallelPlan:
        """Return the style of each linear and embedding layer of a program of PyTorch, by module path.

        `shardy_py.torch.parallel.to_parallel_styles` makes of it what ``parallelize_module`` takes. A layer whose output
        an op behind it cannot take in shards gathers it. Parameters that are sharded, but by no style, are warned of.

        Args:
            axis: The dimension of the mesh; by default the only one along which weights of such layers are sharded.
            verify: Whether to check that a module by the plan computes what it computes without one.
            warnings: Gets what no style says; without it, Python's `warnings` do.

        Raises:
            OptionError: it is no program of PyTorch, or weights are sharded along several dimensions.
            VerificationError: the plan does not compute what the program does.
        """
        plan = self._torch.plan(axis, verify=verify)
        if warnings is not None:
            warnings.extend(plan.warnings)
        else:
            for item in plan.warnings:
                warn(str(item), stacklevel=2)
        return plan

    def distribute(self, module: Any, device_mesh: Any) -> dict[str, Any]:
        """Return the parameters and buffers of a module as DTensors, by fully qualified name.

        Args:
            module: The module that was exported.
            device_mesh: A ``DeviceMesh`` with the dimensions of the mesh.

        Raises:
            OptionError: it is no program of PyTorch, or module or mesh do not fit it.
        """
        return self._torch.distribute(module, device_mesh)

    @cached_property
    def redistributions(self) -> tuple[Redistribution, ...]:
        """The communication of a program of PyTorch, by node, module and source line.

        Raises:
            OptionError: it is no program of PyTorch.
        """
        return self._torch.redistributions()

    def to_torch(
        self, device_mesh: Any, *, state: Mapping[str, Any] | None = None, strict: bool = False
    ) -> TorchProgram:
        """Return the program on the processes of a device mesh: each runs it on its shards, with collectives between.

        Call it with the whole inputs; it returns the whole outputs. Gradients are not recorded: a training step holds
        its own backward pass.

        Args:
            device_mesh: A ``DeviceMesh`` with the dimensions of the mesh; every process calls this.
            state: The parameters and buffers by name; by default those of the exported program.
            strict: Whether an op without a local form is an error; otherwise it runs on gathered operands.

        Raises:
            OptionError: it is no program of PyTorch, or the device mesh does not fit.
            ShardyError: an op has no local form.
        """
        return self._torch.on_processes(device_mesh, state=state, strict=strict)

    @cached_property
    def _torch(self) -> TorchForms:
        from shardy_py.torch.result_forms import TorchForms

        return TorchForms(self.program, self.main, self.registry, is_explicit=self.has_explicit_collectives)

    @property
    def _explicit(self) -> Program:
        """The program of PyTorch with its collectives."""
        return self._torch.explicit

    def to_networkx(self) -> nx.MultiDiGraph:
        """Return the def-use graph with the shardings as node attributes.

        It is as `shardy_py.ir.graph.networkx.to_networkx` says; a value node also has its printed ``name`` ("" where it has
        none), and its ``sharding`` may come from the other end of a data-flow edge.
        """
        from shardy_py.api.named_graph import named_graph

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
                function; or a name as the text prints it (``"%5"``, ``"%5#1"``, ``"arg0"``).

        Raises:
            OptionError: there is no such value.
        """
        return sharding_of(self.program, self.value(value), self.registry)

    def value(self, value: Any) -> Value:
        """Return the value of the program that a number, a name or a native value stands for.

        Raises:
            OptionError: there is no such value.
        """
        if isinstance(value, Value):
            op = value.owner.parent_op if isinstance(value.owner, Block) else value.owner
            if op is None or op.program is self.program:
                return value
        return self._names.find(value)

    @checked
    def explain(
        self, value: Any, dim: int | None = None, *, names: Literal["result", "input"] = "result"
    ) -> ValueExplanation:
        """Return why a value is sharded as it is; ``str`` of it is readable.

        Args:
            value: What `sharding` takes; ``"result0"`` for a result of the main function; the name of an op, with a
                number where there are several (``"stablehlo.dot_general#2"``), or a part of its location
                (``"model.py:12"``), for its first result. Names outside the main function begin with the function's:
                ``"@f:%2"``.
            dim: The dimension; None for all.
            names: Whether names are those of the result's text or those of the given module, as MLIR prints it.

        Raises:
            OptionError: there is no such value or dimension, or the run was not traced.
        """
        return self.explainer.explain(value, dim, names=names)

    @property
    def not_settled(self) -> tuple[NotSettled, ...]:
        """The axes that one more visit of an op would bring, in the names of the result; ``str`` of one is readable.

        The reference does not put back every op that sees a change, and ends there. With ``schedule="settled"`` there
        are none.

        Raises:
            OptionError: the run was not traced.
        """
        return self.explainer.unsettled(names="result")

    @checked
    def explain_op(self, op: str, *, names: Literal["result", "input"] = "result") -> OpExplanation:
        """Return the updates and refusals at an op, or why nothing propagates through it; ``str`` of it is readable.

        Args:
            op: The name of a result; the name of the op, with a number where there are several
                (``"stablehlo.dot_general#2"``); or a part of its location (``"model.py:12"``).
            names: Whether names are those of the result's text or those of the given module, as MLIR prints it.

        Raises:
            OptionError: there is no such op, or the run was not traced.
        """
        return self.explainer.explain_op(op, names=names)

    @cached_property
    def explainer(self) -> Explainer:
        """The explainer of the run.

        Raises:
            OptionError: the run was not traced.
        """
        from shardy_py.api.run_again import untraced
        from shardy_py.explain.explaining import Explainer

        if self.trace is None:
            raise untraced()
        return Explainer(self.program, self.main, self.registry, self.trace, self.value)

    @checked
    def explore(
        self, *, against: ScheduleLike | None = None, machine: Any = None, proposals: int = 3, title: str = ""
    ) -> Page:
        """Return a page that shows the program: shardings, the reasons for them, costs.

        In a notebook it shows itself; ``html`` of it is one file that needs no network. The program is propagated
        again, as it was given.

        Args:
            against: Another order of ops, to show beside that of the run.
            machine: What the program runs on, for times: a machine, its name, or a TOML file.
            proposals: For how many transfers other annotations are tried; each trial takes as long as propagating.
            title: The title of the page.

        Raises:
            OptionError: the run was not traced.
            ShardyError: an option is not valid.
        """
        from shardy_py.api.run_again import page_of

        return page_of(self.given, against=against, machine=machine, proposals=proposals, title=title)

    @checked
    def advise(
        self,
        machine: Any = None,
        *,
        minimise: Literal["time", "bytes", "memory"] | None = None,
        budget_memory: float | None = None,
        trials: int = 200,
        limit: int = 4,
    ) -> Advice:
        """Return sharding constraints that make the program cheaper, each verified by solving it again.

        Args:
            machine: What the program runs on: a machine, its name, or a TOML file; without one there are no times.
            minimise: The measure to make small; by default time, and bytes where there is no machine.
            budget_memory: The bytes that a device may use at most; by default all that the machine has.
            trials: The largest number of outcomes to price.
            limit: The largest number of constraints in the set.

        Raises:
            OptionError: the run was not traced.
            ShardyError: an option is not valid.
        """
        from shardy_py.api.run_again import advice_for

        return advice_for(
            self.given, machine=machine, minimise=minimise, budget_memory=budget_memory, trials=trials, limit=limit
        )

    @checked
    def memory(self, layout: str | LayoutPolicy = "tpu-v5e") -> MemoryReport:
        """Return the bytes of inputs and outputs on one device, with padding.

        Args:
            layout: The policy that chooses the layouts of the shards, or its name: ``tpu-v5e`` or ``row-major``.

        Raises:
            OptionError: there is no policy of that name.
        """
        from shardy_py.cost.memory import report_memory

        return report_memory(self.program, self.main, layout)

    @property
    def arguments(self) -> tuple[TensorSharding | None, ...]:
        """The shardings of the arguments of the main function."""
        return tuple(self.program.shardings.get(value.id) for value in arguments_of(self.main))

    @property
    def results(self) -> tuple[TensorSharding | None, ...]:
        """The shardings of the results of the main function."""
        return tuple(self.program.shardings.get(value.id) for value in self.main.function_results)

    @cached_property
    def summary(self) -> Summary:
        """A few numbers about the run."""
        reduced = sum(item.code == REDUCED for item in self.warnings)
        return evolve(summarize(self.program, self.main, self.registry), shardings_reduced=reduced)

    @cached_property
    def communications(self) -> Mapping[str, int]:
        """The number of reshards and collectives that the program needs, by kind, those that are not written too.

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
