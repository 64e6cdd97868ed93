"""The programs of a parallel module, one for each mode and autocast, and for the shapes that it is for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from operator import index
from typing import Any

from attrs import field

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.torch.caller_warnings import warn_caller
from shardy_py.torch.constraints import constraints_on
from shardy_py.torch.modules.automatic_plans import AutomaticPlan, PlanRequest, automatic_plan
from shardy_py.torch.modules.input_forms import InputForm, input_form
from shardy_py.torch.modules.joint import JointTrace, trace_joint
from shardy_py.torch.modules.program_keys import (
    AttributeNames,
    Attributes,
    Key,
    apply_to_tensors,
    attribute_names,
    state_tensors,
)
from shardy_py.torch.modules.programs_by_size import ProgramsBySize
from shardy_py.torch.modules.recent_programs import RemakeCounter, keep, recent
from shardy_py.torch.modules.step import LocalStep, make_step
from shardy_py.torch.modules.symbolic_trace import Shapes, SymbolicTrace, make_symbols
from shardy_py.torch.parallel.draws import check_random_states, draws_numbers, random_state
from shardy_py.torch.parallel.process_groups import ProcessGroups
from shardy_py.values import define


@define(eq=False, slots=False)
class ParallelProgram:
    """The program of a parallel module: one step for all that it depends on, made when it is called so first.

    Attributes:
        model: The module that is traced, with tensors without elements.
        mode: The mode of these tensors.
        device_mesh: The devices.
        args: The example inputs, without elements; the last ones are those of the loss.
        kwargs: Those that are given by name.
        count: How many of the positional inputs the module takes.
        in_shardings: The shardings that the caller gave.
        loss: The function of the outputs of the module, or None.
        strict: Whether an op without a local form is an error.
        whole_outputs: Whether outputs are whole tensors; otherwise they are DTensors.
        dynamic_shapes: Whether inputs may have other shapes than the example's.
        bucket_bytes: The bytes that one call of a collective moves at most of several tensors; 0 for single ones.
        request: What a plan for the module has to keep to; None without one.
        options: Further options of `propagate`.
        plan: The plan for the first program.
        first: The first program: the parameters of all others are where it has them.
        steps: What a program depends on to the program, of those that were used last.
        symbolic: What programs depend on besides shapes to those for several shapes.
        form: The form in which the example gives its inputs.
        attributes: The names of the attributes that programs depend on.
        warned: The warnings so far.
    """

    model: Any
    mode: Any
    device_mesh: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    count: int
    in_shardings: Mapping[Any, Any]
    loss: Callable[..., Any] | None
    strict: bool
    whole_outputs: bool
    dynamic_shapes: bool
    bucket_bytes: float
    request: PlanRequest | None
    options: Mapping[str, Any]
    plan: AutomaticPlan | None = field(default=None, init=False)
    first: LocalStep | None = field(default=None, init=False)
    steps: dict[Key, LocalStep] = field(factory=dict, init=False)
    symbolic: dict[Hashable, ProgramsBySize] = field(factory=dict, init=False)
    form: InputForm = field(init=False)
    attributes: AttributeNames = field(init=False)
    warned: set[str] = field(factory=set, init=False)
    groups: ProcessGroups = field(init=False)
    _asks: tuple[bool, ...] = field(init=False)
    _remakes: RemakeCounter = field(init=False)
    _layers: list[tuple[str, type, int]] = field(init=False)
    """The name, the class and the number of hooks of each module."""

    def __attrs_post_init__(self) -> None:
        from torch.utils._pytree import tree_leaves

        self.groups = ProcessGroups(self.device_mesh)
        self.form = input_form(self.model, self.args, self.kwargs, self.count)
        self.attributes = attribute_names(self.model)
        modules = list(self.model.modules())
        tensors = [tensor for _, _, tensor in state_tensors(modules)]
        self._asks = _requires_gradients(tensors, tree_leaves((self.args, dict(self.kwargs))))
        self._remakes = RemakeCounter(self._difference, self._warn)
        self._layers = [(name, type(each), _hook_count(each)) for name, each in self.model.named_modules()]

    def __deepcopy__(self, memo: Any) -> ParallelProgram:
        """Return the program itself: it has no parameters, and copies of a module run the same."""
        return self

    def step(self, modules: Sequence[Any], leaves: Sequence[Any]) -> LocalStep:
        """Return what runs of a module on some inputs.

        Args:
            modules: The ``modules()`` of the module, or of a copy of it.
            leaves: The inputs, as the example has them, in order.

        Raises:
            OptionError: the module has other layers, parameters or buffers than when it was traced.
        """
        import torch

        if len(modules) != len(self._layers):
            raise _changed_structure("its layers are not those that it had")
        tensors = [tensor for _, _, tensor in state_tensors(modules)]
        if len(tensors) + len(leaves) != len(self._asks):
            raise _changed_structure("its parameters and buffers are not those that it had")
        key = (
            self.attributes.values_of(modules),
            tuple([getattr(tensor, "dtype", None) for tensor in (*tensors, *leaves)]),
            # No gradient is asked for in evaluation, whatever requires one.
            _requires_gradients(tensors, leaves) if torch.is_grad_enabled() else self._asks,
            _shapes(leaves) if self.dynamic_shapes else (),
            self.autocast_dtype(),
        )
        step = recent(self.steps, key)
        if step is None:
            self.add_step(key)
            step = self.steps[key]
        return step

    def autocast_dtype(self) -> Any:
        """Return the dtype that autocast computes in, where it is on, or None."""
        import torch

        kind = self.device_mesh.device_type
        return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None

    def add_step(self, key: Key) -> None:
        """Make what runs for some modes and shapes, also while a call of the module is compiled.

        Args:
            key: What the program depends on.
        """
        import torch

        # A compiler's own tensors without elements are of another mode.
        with torch._guards.tracing(None):
            keep(self.steps, key, self._make(key))
        if torch._guards.TracingContext.try_get() is not None:
            # The compiler knows the programs that there were, and begins again.
            raise torch._dynamo.exc.UnspecializeRestartAnalysis

    def _make(self, key: Key) -> LocalStep:
        attributes, dtypes, asks, shapes, cast = key
        self.attributes.apply(self.model, attributes)
        apply_to_tensors(self.model, self.mode, dtypes, asks)
        is_sized = self.dynamic_shapes and self.request is None
        step = self._programs((attributes, dtypes, asks, cast)).at(shapes) if is_sized else None
        if step is None:
            step = self._step_of(self._trace(*self._inputs(shapes, dtypes, asks), cast))
        if all(step.graphs is not other.graphs for other in self.steps.values()):
            self._remakes.note(key)
        self.first = self.first or step
        if any(map(draws_numbers, step.result.program.walk())):
            self._check_random_states()
        return step

    def _programs(self, key: tuple[Attributes, tuple[Any, ...], tuple[bool, ...], Any]) -> ProgramsBySize:
        """Return the programs for several shapes, of those that depend on the same besides."""
        _, dtypes, asks, cast = key

        def trace(shapes: Shapes) -> SymbolicTrace:
            symbols, symbolic_shapes = make_symbols(shapes, self.mode)
            before = len(self.mode.shape_env.guards)
            traced = self._trace(*self._inputs(symbolic_shapes, dtypes, asks), cast)
            guards = tuple(guard.expr for guard in self.mode.shape_env.guards[before:])
            return SymbolicTrace(traced, self.mode, symbols, guards)

        programs = recent(self.symbolic, key)
        if programs is None:
            programs = ProgramsBySize(self.groups, trace, self._step_of, self._warn)
            keep(self.symbolic, key, programs)
        return programs

    def _trace(self, args: tuple[Any, ...], kwargs: dict[str, Any], cast: Any) -> JointTrace:
        import torch

        kind = self.device_mesh.device_type
        autocast = torch.autocast(kind, dtype=cast, enabled=cast is not None, cache_enabled=False)
        with constraints_on(self.device_mesh), autocast:
            return trace_joint(
                self.model,
                args,
                kwargs,
                mode=self.mode,
                loss=self.loss,
                count=self.count,
            )

    def _step_of(self, trace: JointTrace) -> LocalStep:
        """Return the program of a trace, with parameters where those of the first program are."""
        first, shardings = self.first, dict(self.in_shardings)
        if first is not None:
            fixed = _names(first, ("parameter", "buffer") if self.plan is None else ("parameter", "buffer", "input"))
            shardings |= {port.name: port.placements for port in first.arguments if port.name in fixed}
        elif self.request is not None:
            self.plan = automatic_plan(trace, self.device_mesh, self.request, shardings, self.options)
        return make_step(
            trace,
            self.device_mesh,
            self.groups,
            in_shardings=shardings,
            plan=self.plan if first is None else None,
            bucket_bytes=self.bucket_bytes,
            strict=self.strict,
            warn=self._warn,
            options=self.options,
        )

    def _warn(self, item: Diagnostic) -> None:
        """Warn once of what the program does at each of several sizes."""
        text = item.show("warning")
        if text not in self.warned:
            self.warned.add(text)
            warn_caller(text)

    def check_layers(self, modules: Sequence[Any]) -> None:
        """Check that layers are those that were traced, and warn of hooks that they got later.

        Args:
            modules: The ``modules()`` of the parallel module.

        Raises:
            OptionError: a layer has been replaced.
        """
        for number, (layer, (name, cls, count)) in enumerate(zip(modules, self._layers, strict=False)):
            if not isinstance(layer, cls):
                raise _changed_structure(f"{name} is a {type(layer).__name__}, and was a {cls.__name__}")
            if number and _hook_count(layer) > count:
                message = f"the hooks of {name} that were registered after sdy.parallelize do not run"
                hint = "register them on the module before, so that they are traced, or on the parallel module itself"
                self._warn(Diagnostic("hooks-not-called", message, hint=hint))

    def _difference(self, before: Key, after: Key) -> str:
        """Return in words what a program depends on that another one does not."""
        names = [] if self.first is None else [name for name, _ in self.first.trace.inputs]
        if before[0] != after[0]:
            return self.attributes.difference(before[0], after[0])
        if before[3] != after[3]:
            changed = [item for item in zip(names, before[3], after[3], strict=False) if item[1] != item[2]]
            return " and ".join(f"the input {name} has the shape {new}, and had {old}" for name, old, new in changed)
        if before[2] != after[2]:
            return "other parameters or inputs require a gradient than before"
        return "parameters or inputs have other dtypes than before" if before[1] != after[1] else "autocast has changed"

    def _inputs(
        self, shapes: Sequence[tuple[Any, ...]], dtypes: Sequence[Any], asks: Sequence[bool]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return inputs like the examples, without elements; of some shapes, if there are any.

        Args:
            shapes: The shapes of the inputs, or none for those of the examples.
            dtypes: The dtypes of parameters, buffers and inputs.
            asks: Which of these require a gradient.
        """
        import torch
        from torch.utils import _pytree as pytree

        leaves, spec = pytree.tree_flatten((self.args, dict(self.kwargs)))
        count = len(asks) - len(leaves)
        with self.mode:
            leaves = [
                (
                    torch.empty_strided(leaf.shape, leaf.stride(), dtype=dtype, device=leaf.device)
                    if not shapes
                    else torch.empty(shapes[number], dtype=dtype, device=leaf.device)
                ).requires_grad_(has_gradient)
                if isinstance(leaf, torch.Tensor)
                else leaf
                for number, (leaf, dtype, has_gradient) in enumerate(
                    zip(leaves, dtypes[count:], asks[count:], strict=True)
                )
            ]
        args, kwargs = pytree.tree_unflatten(leaves, spec)
        return args, kwargs

    def _check_random_states(self) -> None:
        """Check that the processes would draw the same numbers."""
        import torch

        device = torch.device(self.device_mesh.device_type)
        check_random_states(self.groups.gather(random_state(device).to(device)))


def _requires_gradients(tensors: Sequence[Any], leaves: Sequence[Any]) -> tuple[bool, ...]:
    """Return what requires a gradient: of parameters and buffers, and of inputs."""
    inputs = [bool(getattr(leaf, "requires_grad", False)) for leaf in leaves]
    return (*[tensor.requires_grad for tensor in tensors], *inputs)


def _hook_count(module: Any) -> int:
    forward = len(module._forward_hooks) + len(module._forward_pre_hooks)
    return forward + len(module._backward_hooks) + len(module._backward_pre_hooks)


def _changed_structure(message: str) -> OptionError:
    message = f"the parallel module has changed: {message} when sdy.parallelize was called"
    hint = "change the module first, and call sdy.parallelize with it"
    return OptionError(Diagnostic("module-structure", message, hint=hint))


def _shapes(leaves: Sequence[Any]) -> Shapes:
    # A compiler that lets sizes vary makes numbers of them here.
    return tuple(tuple(map(index, getattr(leaf, "shape", ()))) for leaf in leaves)


def _names(step: LocalStep, kinds: Collection[str]) -> set[str]:
    return {item.name for _, item in step.trace.arguments if item.kind in kinds}
