"""The programs of a module for several sizes of its inputs, made when a size comes first."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from attrs import field

from shardy_py.errors import Diagnostic, ShardyError
from shardy_py.torch.modules.joint import JointTrace
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
    _by_remainders: dict[Shapes, list[SymbolicStep | None]] = field(factory=dict, init=False)
    """The programs by the remainders of sizes by the number of devices; None where each further shape has its own."""

    def at(self, shapes: Shapes) -> LocalStep | None:
        """Return the program for several shapes at some, or None if each has another program."""
        if self.is_unfit:
            return None
        for symbolic in chain.from_iterable(self._by_remainders.values()):
            step = self._at(symbolic, shapes)
            if step is not None:
                return step
        remainders = tuple(tuple(size % len(self.groups.ranks) for size in shape) for shape in shapes)
        tried = self._by_remainders.setdefault(remainders, [])
        if None in tried:
            return None
        reason = "it is another one, or has other numbers, at other sizes"
        try:
            symbolic = make_symbolic_step(self.trace(shapes), self.groups, self.make)
        except ShardyError as error:
            # A program of its own for these shapes may be made, or says what is wrong with them.
            symbolic, reason = None, error.diagnostics[0].message if error.diagnostics else str(error)
        step = self._at(symbolic, shapes)
        tried += [symbolic] if step is not None else [symbolic, None]
        if not any(chain.from_iterable(self._by_remainders.values())):
            # To try again at other remainders takes some ten programs each time.
            self.is_unfit = True
            message = f"no program of the module is for several shapes, so that each shape gets its own: {reason}"
            hint = "give an example of large sizes that divide by the number of devices, or sizes by tensor.shape"
            self.warn(Diagnostic("program-per-shape", message, hint=hint))
        return step

    def _at(self, symbolic: SymbolicStep | None, shapes: Shapes) -> LocalStep | None:
        """Return a program at some shapes of inputs, or None if it is not for these on every process."""
        step = None if symbolic is None else symbolic.at(shapes)
        return step if symbolic is not None and self.groups.all_agree(step is not None) else None
