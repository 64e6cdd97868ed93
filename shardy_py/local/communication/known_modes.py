"""Modes that are found once for all ops of a kind in the same surroundings: the layers of a model repeat."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from attrs import field

from shardy_py.ir.graph.attributes import shared_key
from shardy_py.ir.graph.kinds import identity_key
from shardy_py.ir.graph.program import Op
from shardy_py.ir.interfaces.ops import Contraction, Elementwise, OpSemantics
from shardy_py.local.communication.mode_choice import ModeChoice
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.support.identity import identity
from shardy_py.values import define


@define(eq=False)
class KnownModes:
    """The modes of ops along some axes, by their kind, the shardings around them and how often they run."""

    _known: dict[Hashable, ModeChoice] = field(factory=dict, init=False)
    _rules: dict[int, OpShardingRule] = field(factory=dict, init=False)
    """Rules whose identities are in keys: they live as long."""

    def key(
        self,
        op: Op,
        semantics: OpSemantics,
        rule: OpShardingRule | None,
        shardings: Sequence[TensorSharding | None],
        *others: Hashable,
    ) -> Hashable | None:
        """Return what the modes of an op follow from; None where they may depend on more, such as constant operands.

        Args:
            op: The op.
            semantics: What is known about ops.
            rule: Its rule.
            shardings: The shardings around it; equal ones are one object, which lives as long as the modes.
            others: What else counts.
        """
        if op.regions or rule is None:
            return None
        if len(op.operands) > 1 and not (semantics.has_trait(op, Elementwise) or semantics.has_trait(op, Contraction)):
            return None
        attributes = shared_key(op.attributes)
        if attributes is None:
            return None
        self._rules[identity(rule)] = rule
        kind = identity_key(attributes, op.name, op.operands, op.results)
        return (kind, identity(rule), *map(identity, shardings), others)

    def recall(self, key: Hashable | None, op: Op, choice: ModeChoice) -> bool:
        """Give an op the modes that are known under a key; return whether there are some."""
        similar_choice = None if key is None else self._known.get(key)
        if similar_choice is None:
            return False
        choice.operand_modes.update(
            {(op.id, number): modes for (_, number), modes in similar_choice.operand_modes.items()}
        )
        choice.value_modes.update(
            zip((value.id for value in op.results), similar_choice.value_modes.values(), strict=True)
        )
        choice.modes, choice.current, choice.work = similar_choice.modes, similar_choice.current, similar_choice.work
        choice.partial, choice.reduction, choice.sent = (
            similar_choice.partial,
            similar_choice.reduction,
            list(similar_choice.sent),
        )
        choice.collected = {(op.id, number): sent for (_, number), sent in similar_choice.collected.items()}
        return True

    def remember(self, key: Hashable | None, choice: ModeChoice) -> None:
        """Keep the modes of an op under a key."""
        if key is not None:
            self._known[key] = choice
