"""The programs of a module for several sizes of its inputs, made when a size comes first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

from attrs import field

from shardy_py.errors import Diagnostic, ShardyError
from shardy_py.torch.modules.joint import JointTrace
from shardy_py.torch.modules.recent_programs import keep
from shardy_py.torch.modules.step import LocalStep
from shardy_py.torch.modules.symbolic_step import SymbolicStep, make_symbolic_step
from shardy_py.torch.modules.symbolic_trace import Shapes, SymbolicTrace
from shardy_py.torch.parallel.process_groups import ProcessGroups
from shardy_py.values import define


@define(eq=False, slots=False)
class ProgramsBySize:
    """The programs of a module, each of which is for several sizes.

    Attributes:
        groups: The process groups: all processes take the same decisions.
        trace: Traces the module with symbols for the sizes in some shapes of its inputs.
        make: Makes the program of a trace at some sizes.
        warn: Gets the warning that no program is for several sizes.
        is_unfit: Whether that is known.
    """

    groups: ProcessGroups
    trace: Callable[[Shapes], SymbolicTrace]
    make: Callable[[JointTrace], LocalStep]
    warn: Callable[[Diagnostic], None]
    is_unfit: bool = field(default=False, init=False)
    _example: Shapes | None = field(default=None, init=False)
    _by_remainders: dict[Shapes, list[SymbolicStep | None]] = field(factory=dict, init=False)
    """The programs by the remainders of sizes by the number of devices; None where each further shape has its own."""

    def at(self, shapes: Shapes) -> LocalStep | None:
        """Return the program for several shapes at some, or None if each has another program."""
        if self.is_unfit:
            return None
        self._example = self._example or shapes
        for symbolic in chain.from_iterable(self._by_remainders.values()):
            step = self._at(symbolic, shapes)
            if step is not None:
                return step
        count = len(self.groups.ranks)
        # PyTorch treats sizes of 0 and 1 apart.
        remainders = tuple(tuple(size % count if size > 1 else size - 2 for size in shape) for shape in shapes)
        tried = self._by_remainders.get(remainders, [])
        keep(self._by_remainders, remainders, tried)
        if None in tried:
            return None
        reason = "it is another one, or has other numbers, at other sizes"
        names: Sequence[str] = ()
        try:
            trace = self.trace(shapes)
            names = [name for name, _ in trace.trace.inputs]
            symbolic = make_symbolic_step(trace, self.groups, self.make)
        except ShardyError as error:
            # A program of its own for these shapes may be made, or says what is wrong with them.
            symbolic, reason = None, error.diagnostics[0].message if error.diagnostics else str(error)
        step = self._at(symbolic, shapes)
        tried += [symbolic] if step is not None else [symbolic, None]
        self._warn_of_small_sizes(names, shapes, symbolic if step is None else None)
        is_small = any(size < 2 for shape in shapes for size in shape)
        if not is_small and not any(chain.from_iterable(self._by_remainders.values())):
            # To try again at other remainders takes some ten programs each time.
            self.is_unfit = True
            message = f"no program of the module is for several shapes, so that each shape gets its own: {reason}"
            hint = "give an example of large sizes that divide by the number of devices, or sizes by tensor.shape"
            self.warn(Diagnostic("program-per-shape", message, hint=hint))
        return step

    def _warn_of_small_sizes(self, names: Sequence[str], shapes: Shapes, larger: SymbolicStep | None) -> None:
        """Warn of sizes for which a program of their own is made, as they are small.

        Args:
            names: The names of the inputs.
            shapes: Their shapes.
            larger: The program for several shapes, if it is for larger ones.
        """
        is_example = shapes == self._example
        has_own = is_example and not any(chain.from_iterable(self._by_remainders.values()))
        for name, shape, example in zip(names, shapes, self._example or (), strict=False):
            for dim, (size, first) in enumerate(zip(shape, example, strict=False)):
                if first < 2 and (has_own or size != first):
                    message = f"the input {name} has the size {first} in dimension {dim} of its example, which"
                    message += " PyTorch treats apart: the program of the example is for this size only"
                    self.warn(
                        Diagnostic("small-example", message, hint=f"give an example with {name}.shape[{dim}] > 1")
                    )
        for name, dim, size, least in [] if larger is None else larger.too_small(names, shapes):
            message = f"the input {name} has the size {size} in dimension {dim}, and the program for several shapes is"
            message += f" for {least} or more: each smaller shape gets a program of its own"
            self.warn(
                Diagnostic("small-example", message, hint="give an example as large as the inputs of later calls")
            )

    def _at(self, symbolic: SymbolicStep | None, shapes: Shapes) -> LocalStep | None:
        """Return a program at some shapes of inputs, or None if it is not for these on every process."""
        step = None if symbolic is None else symbolic.at(shapes)
        return step if symbolic is not None and self.groups.all_agree(step is not None) else None
