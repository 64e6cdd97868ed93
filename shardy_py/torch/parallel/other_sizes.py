"""Exported programs with dynamic sizes, propagated again at other sizes than those of their example."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve, field

from shardy_py.api.keywords import keywords
from shardy_py.api.main_function import arguments_of
from shardy_py.api.options import PropagateArguments
from shardy_py.api.propagate import propagate
from shardy_py.api.result import CoreResult, Result
from shardy_py.errors import Diagnostic
from shardy_py.ir.graph.types import static_shape
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.torch.modules.exported_trace import exported_trace
from shardy_py.torch.modules.joint import JointTrace
from shardy_py.torch.modules.symbolic_trace import SymbolicTrace
from shardy_py.torch.parallel.compiled import LocalTorchProgram, make_local_torch_program
from shardy_py.torch.parallel.explicit import explicit_program
from shardy_py.values import frozen


@frozen(eq=False)
class OtherSizes:
    """A propagated program with dynamic sizes, and how to propagate it at others.

    Attributes:
        result: The program at the sizes of its example.
        arguments: The arguments of its propagation.
        trace: The program with symbols for its dynamic sizes.
        strict: Whether an op without a local form is an error.
        optimize: Whether to send the fewest bytes.
    """

    result: CoreResult = field(repr=False)
    arguments: PropagateArguments = field(repr=False)
    trace: SymbolicTrace
    strict: bool
    optimize: bool

    def local(self, trace: JointTrace) -> tuple[Result, LocalTorchProgram]:
        """Return the propagated program of a trace at some sizes, and what each device runs of it."""
        result = self.propagated(trace)
        is_explicit = result.has_explicit_collectives
        explicit = result.program if is_explicit else explicit_program(result.program, result.registry)
        options = {"strict": self.strict, "optimize": self.optimize}
        return result, make_local_torch_program(explicit, result.registry, **options)

    def propagated(self, trace: JointTrace) -> Result:
        """Return the program of a trace at some sizes, with parameters and buffers where the example has them."""
        result = self._propagated(trace, self.arguments.in_shardings)
        if _state_shardings(result) != _state_shardings(self.result):
            given = self.arguments.in_shardings
            by_key = dict(given) if isinstance(given, Mapping) else dict(enumerate(given or ()))
            result = self._propagated(trace, {**by_key, **_state_shardings(self.result)})
        return result

    def new_warnings(self, result: CoreResult) -> list[Diagnostic]:
        """Return the warnings of the program at some sizes that the example does not have."""
        known = set(map(str, self.result.warnings))
        return [item for item in result.warnings if str(item) not in known]

    def _propagated(self, trace: JointTrace, in_shardings: Any) -> Result:
        is_explicit = self.result.has_explicit_collectives
        changed = evolve(
            self.arguments,
            module=trace,
            in_shardings=in_shardings,
            explicit_collectives=is_explicit,
            local=False,
            trace=False,
            dump_directory=None,
            on_pass=None,
            on_stage=None,
            on_progress=None,
        )
        return propagate(**keywords(changed))


def other_sizes(result: CoreResult, *, strict: bool, optimize: bool) -> OtherSizes | None:
    """Return how to propagate a program at other sizes, or None if it has no dynamic ones.

    Args:
        result: The program at the sizes of its example.
        strict: Whether an op without a local form is an error.
        optimize: Whether to send the fewest bytes.
    """
    arguments = result.given_arguments
    trace = None if arguments is None else exported_trace(getattr(result.program.origin, "native", None))
    if arguments is None or trace is None:
        return None
    return OtherSizes(result, arguments, trace, strict, optimize)


def _state_shardings(result: CoreResult) -> dict[str, TensorSharding]:
    """Return the shardings of what a program keeps from call to call, by name."""
    program, mesh = result.program, next(iter(result.program.meshes), Mesh())
    values = zip(program.origin.arguments, arguments_of(result.main), strict=True)
    return {
        argument.name: program.shardings.get(value.id) or TensorSharding.fully_closed(mesh, len(shape))
        for argument, value in values
        if argument.kind != "input" and (shape := static_shape(value.type)) is not None
    }
