"""The programs of a parallel module, one for each mode and autocast, and for the shapes that it is for."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from operator import index
from typing import Any

from attrs import field

from shardy_py.errors import Diagnostic
from shardy_py.torch.constraints import constraints_on
from shardy_py.torch.modules.automatic_plans import AutomaticPlan, PlanRequest, automatic_plan
from shardy_py.torch.modules.joint import JointTrace, trace_joint
from shardy_py.torch.modules.programs_by_size import ProgramsBySize
from shardy_py.torch.modules.step import LocalStep, make_step
from shardy_py.torch.modules.symbolic_trace import SymbolicTrace, make_symbols
from shardy_py.torch.parallel.draws import check_random_states, draws_numbers, random_state
from shardy_py.torch.parallel.process_groups import ProcessGroups
from shardy_py.values import define

Flags = tuple[bool, ...]
"""Modes of the modules of a module, in training or not, in the order of ``modules()``."""
Shapes = tuple[tuple[int, ...], ...]
"""The shapes of the inputs; empty where they are those of the example."""
Key = tuple[Flags, Shapes, Any]
"""Modes, shapes, and the dtype that autocast computes in, or None, on which a program depends."""


@define(eq=False, slots=False)
class ParallelProgram:
    """The program of a parallel module: one step for each of its modes, made when it is called first.

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
        symbolic: Modes and dtype to the programs for several shapes.
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
    steps: dict[Key, LocalStep] = field(factory=dict, init=False)
    symbolic: dict[tuple[Flags, Any], ProgramsBySize] = field(factory=dict, init=False)
    warned: set[str] = field(factory=set, init=False)
    groups: ProcessGroups = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.groups = ProcessGroups(self.device_mesh)

    def __deepcopy__(self, memo: Any) -> ParallelProgram:
        """Return the program itself: it has no parameters, and copies of a module run the same."""
        return self

    def step(self, flags: Flags, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> LocalStep:
        """Return what runs while modules are in training or not, as flags say.

        Args:
            flags: Which modules are in training.
            args: The inputs.
            kwargs: Those that are given by name.
        """
        key = flags, self._shapes(args, kwargs) if self.dynamic_shapes else (), self.autocast_dtype()
        step = self.steps.get(key)
        if step is None:
            self.add_step(key)
            step = self.steps[key]
        return step

    def autocast_dtype(self) -> Any:
        """Return the dtype that autocast computes in, where it is on, or None."""
        import torch

        kind = self.device_mesh.device_type
        return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None

    def _shapes(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Shapes:
        from torch.utils import _pytree as pytree

        # A compiler that lets sizes vary makes numbers of them here.
        return tuple(tuple(map(index, getattr(leaf, "shape", ()))) for leaf in pytree.tree_leaves((args, dict(kwargs))))

    def add_step(self, key: Key) -> None:
        """Make what runs for some modes and shapes, also while a call of the module is compiled.

        Args:
            key: What the program depends on.
        """
        import torch

        # A compiler's own tensors without elements are of another mode.
        with torch._guards.tracing(None):
            self.steps[key] = self._make(*key)
        if torch._guards.TracingContext.try_get() is not None:
            # The compiler knows the programs that there were, and begins again.
            raise torch._dynamo.exc.UnspecializeRestartAnalysis

    def _make(self, flags: Flags, shapes: Shapes, cast: Any) -> LocalStep:
        for module, flag in zip(self.model.modules(), flags, strict=True):
            module.training = flag
        is_sized = self.dynamic_shapes and self.request is None
        step = self._programs(flags, cast).at(shapes) if is_sized else None
        if step is None:
            step = self._step_of(self._trace(*self._inputs(shapes), cast))
        if any(map(draws_numbers, step.result.program.walk())):
            self._check_random_states()
        return step

    def _programs(self, flags: Flags, cast: Any) -> ProgramsBySize:
        """Return the programs for several shapes in some modes."""

        def trace(shapes: Shapes) -> SymbolicTrace:
            symbols, symbolic_shapes = make_symbols(shapes, self.mode)
            before = len(self.mode.shape_env.guards)
            traced = self._trace(*self._inputs(symbolic_shapes), cast)
            guards = tuple(guard.expr for guard in self.mode.shape_env.guards[before:])
            return SymbolicTrace(traced, self.mode, symbols, guards)

        if (flags, cast) not in self.symbolic:
            self.symbolic[flags, cast] = ProgramsBySize(self.groups, trace, self._step_of, self._warn)
        return self.symbolic[flags, cast]

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
        first, shardings = next(iter(self.steps.values()), None), dict(self.in_shardings)
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
            warnings.warn(text, stacklevel=7)

    def _inputs(self, shapes: Sequence[tuple[Any, ...]]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return inputs like the examples, without elements; of some shapes, if there are any."""
        import torch
        from torch.utils import _pytree as pytree

        leaves, spec = pytree.tree_flatten((self.args, dict(self.kwargs)))
        if shapes and len(shapes) == len(leaves):
            with self.mode:
                leaves = [
                    torch.empty(shape, dtype=leaf.dtype, device=leaf.device, requires_grad=leaf.requires_grad)
                    if isinstance(leaf, torch.Tensor)
                    else leaf
                    for leaf, shape in zip(leaves, shapes, strict=True)
                ]
        args, kwargs = pytree.tree_unflatten(leaves, spec)
        return args, kwargs

    def _check_random_states(self) -> None:
        """Check that the processes would draw the same numbers."""
        import torch

        device = torch.device(self.device_mesh.device_type)
        check_random_states(self.groups.gather(random_state(device).to(device)))


def _names(step: LocalStep, kinds: Collection[str]) -> set[str]:
    return {item.name for _, item in step.trace.arguments if item.kind in kinds}
