"""Methods of `Result` that explain the run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from shardy_py.api.run_again import order_of, untraced
from shardy_py.explain.answer.explanations import NotSettled, OpExplanation, ValueExplanation
from shardy_py.explain.explaining import Explainer
from shardy_py.schedule.from_options import ScheduleLike
from shardy_py.support.arguments import checked

if TYPE_CHECKING:
    from shardy_py.api.result import CoreResult as _Base
    from shardy_py.explain.explore.page import Page
    from shardy_py.explain.picture import ShardingPicture
else:
    _Base = object


class ExplainMethods(_Base):
    """Methods of a result that explain why tensors have their shardings."""

    def _repr_html_(self) -> str:
        from shardy_py.explain.result_html import result_html

        return result_html(self)

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
        return self.explainer.explain(self._key_in_main(value), dim, names=names)

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
        if self.trace is None:
            raise untraced()
        return Explainer(self.program, self.main, self.registry, self.trace, self.value)

    @checked
    def picture(self, value: Any) -> ShardingPicture:
        """Return which device holds which part of a tensor; ``str`` of it is a table, a notebook shows it in colors.

        Args:
            value: What `sharding` takes, or the name of a result of the main function, such as ``"result0"``.

        Raises:
            OptionError: there is no such value, or it is no tensor over one mesh of the program.
        """
        from shardy_py.explain.picture import draw_sharding

        return draw_sharding(self, value)

    @checked
    def explore(
        self,
        *,
        against: ScheduleLike | None = None,
        variants: Mapping[str, Any] | None = None,
        machine: Any = None,
        proposals: int = 3,
        title: str = "",
    ) -> Page:
        """Return a page that shows the program: shardings, the reasons for them, costs.

        In a notebook it shows itself; ``html`` of it is one file that needs no network. The program is propagated
        again, as it was given.

        Args:
            against: Another order of ops, to show beside that of the run.
            variants: Names to modules of the same program with other shardings, to show beside, such as
                ``{"plan": plan.to_mlir()}``.
            machine: What the program runs on, for times: a machine, its name, or a TOML file.
            proposals: For how many transfers other annotations are tried; each trial takes as long as propagating.
            title: The title of the page.

        Raises:
            OptionError: the run was not traced.
            ShardyError: an option is not valid.
        """
        from shardy_py.explain.explore.explore import ExploreOptions, explore_again
        from shardy_py.explain.explore.variants import Variant

        arguments = self.arguments_again()
        options = ExploreOptions(
            schedule=order_of(arguments),
            against=against,
            variants=[Variant(name, module) for name, module in (variants or {}).items()],
            machine=machine,
            proposals=proposals,
            title=title,
        )
        return explore_again(arguments, options)
