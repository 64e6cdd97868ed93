"""Methods of `Result` that price the program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from shardy_py.api.run_again import order_of
from shardy_py.layout.policies import LayoutPolicy
from shardy_py.support.arguments import checked

if TYPE_CHECKING:
    from shardy_py.api.result import CoreResult as _Base
    from shardy_py.cost.advice.constraints import Advice
    from shardy_py.cost.estimates import Cost
    from shardy_py.cost.expressions import CostExpressions
    from shardy_py.cost.local_cost import Partitioner
    from shardy_py.cost.memory import MemoryReport
else:
    _Base = object


class CostMethods(_Base):
    """Methods of a result that say what the program costs, and what would make it cheaper."""

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
        from shardy_py.cost.advice.advise import advise_again
        from shardy_py.cost.advice.arguments import AdviceOptions

        arguments = self.arguments_again()
        options = AdviceOptions(
            machine=machine,
            schedule=order_of(arguments),
            minimise=minimise,
            budget_memory=budget_memory,
            trials=trials,
            limit=limit,
        )
        return advise_again(arguments, options)

    @checked
    def cost(
        self,
        machine: Any = None,
        *,
        axes: Any = None,
        layout: str | LayoutPolicy | None = None,
        profile: Any = None,
        partitioner: Partitioner = "shardy_py",
    ) -> Cost:
        """Return what the program costs on one device: the collectives of its local program, counted.

        Where there is no local program the cost is estimated from shardings, and a note says why.

        Args:
            machine: What the program runs on: a machine, its name, or a TOML file; without one there are no times.
            axes: The links of the machine that the axes of the mesh run over, where that does not follow from their
                order.
            layout: The policy, or its name, that chooses layouts to count bytes with padding; None for plain bytes.
            profile: The profile of a backend, or its name: ``xla-cpu``, ``xla-gpu`` or ``none``; None for that of the
                machine.
            partitioner: ``shardy_py`` for the local program, ``xla`` for an estimate of what XLA's partitioner makes.

        Raises:
            ShardyError: an option is not valid.
        """
        from shardy_py.cost.result_cost import price_result

        setting = {"axes": axes, "layout": layout, "profile": profile}
        return price_result(self, machine, partitioner, **setting)  # type: ignore[arg-type]

    def cost_expressions(self) -> CostExpressions:
        """Return what the program costs on one device as polynomials in the sizes that are not known.

        Raises:
            UnsupportedError: all sizes are known, or too many are not; or a size does not follow from the arguments.
            OptionError: the program as it was given is gone; see `arguments_again`.
        """
        from shardy_py.cost.expressions import cost_expressions

        return cost_expressions(self)  # type: ignore[arg-type]

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
