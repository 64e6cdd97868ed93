"""The coverage report: which ops have no sharding rule, and what that costs."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, ClassVar

from attrs import evolve

from shardy_py.api.stub_rules import (
    Condition,
    Made,
    condition_of,
    has_tensors_inside,
    is_unmarked_terminator,
    stub_rules,
)
from shardy_py.api.summary import is_sharded, sharding_of
from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph import kinds
from shardy_py.ir.graph.kinds import SharedOpKind
from shardy_py.ir.graph.op_names import CALL, FUNCTION
from shardy_py.ir.graph.program import Op, Program, Region, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.graph.walk import all_ops, ops_among
from shardy_py.ir.interfaces.ops import ConstantLike, IsTerminator, OpFacts, OpSemantics, Trait
from shardy_py.support.identity import identity
from shardy_py.values import frozen

_NO_TRAITS: frozenset[Trait] = frozenset()
_EXCLUDED = frozenset((IsTerminator, ConstantLike))
"""The traits of ops that cannot propagate."""


@frozen
class MissingRule:
    """One op kind without a sharding rule.

    Args:
        name: The op name; of an op whose kinds an attribute tells apart, as the target of a custom call, with its value
            behind an at sign.
        count: How often it occurs with several tensors that have dimensions, or with a number made of one.
        unsharded: How many values of the result are without an axis although another value at the same op has one.
        example: The types at the first occurrence, for example ``(tensor<8xf32>) -> tensor<8xf32>``.
        location: Where that is.
        stub: The text of a plugin with a guessed rule to start from.
    """

    name: str
    count: int
    unsharded: int
    example: str
    location: str
    stub: str


@frozen
class Coverage:
    """Coverage of a program by rules, as it was given, before any pass.

    Args:
        ops: How many ops a rule concerns: those with several tensors that have dimensions, among which shardings pass,
            and those that reduce one to a number, which without a rule is gathered first; calls and terminators aside.
        missing: The op kinds without a rule, those that cost most values first.
        stubs: The text of one plugin with a guessed rule for each of them.
    """

    ops: int
    missing: tuple[MissingRule, ...]
    stubs: str

    @property
    def covered(self) -> int:
        """The number of `ops` with a rule or data-flow edges."""
        return self.ops - sum(item.count for item in self.missing)

    @property
    def is_complete(self) -> bool:
        """True where no rule is missing."""
        return not self.missing


def find_uncovered(program: Program, semantics: OpSemantics) -> tuple[int, dict[str, list[Op]]]:
    """Return the number of ops that could propagate, and those without a rule by name, in program order."""
    total = 0
    uncovered: dict[str, list[Op]] = {}
    facts_of = semantics.facts_of(program)
    excluded = _excluded_names(program, semantics)
    # Ops that are alike share their facts.
    with_rule: dict[int, tuple[OpFacts, bool]] = {}
    # And those of a kind mostly do, so that they need not be asked for.
    counted: dict[SharedOpKind | None, bool] = {}
    ops = all_ops(program)
    for op, kind in zip(ops, kinds.kinds_of(program, ops), strict=True):
        count = counted.get(kind)
        if count is not None:
            total += count
            continue
        if op.name in excluded:
            if kind is not None:
                counted[kind] = False
            continue
        facts = facts_of(op)
        if facts.rule is not None:
            known = with_rule.get(identity(facts))
            if known is None:
                known = with_rule[identity(facts)] = facts, _EXCLUDED.isdisjoint(facts.traits) and _needs_rule(op)
            total += known[1]
            if kind is not None and kinds.shares_facts(kind, op.program, facts):
                counted[kind] = known[1]
        elif _could_propagate(op, semantics) or _is_opaque(op, semantics):
            total += 1
            if semantics.get_data_flow(op) is None:
                uncovered.setdefault(kind_of(op, semantics), []).append(op)
    return total, uncovered


def kind_of(op: Op, semantics: OpSemantics) -> str:
    """Return the name of an op, with the value of the attribute that distinguishes kinds of the same name."""
    condition = condition_of(op, semantics.told_apart_by(op.name))
    return f"{op.name} @{condition[0][1]}" if condition else op.name


@frozen(eq=False)
class _OpFingerprint:
    """An op as it was when the program was given: passes give ops other operands, and erase them.

    Args:
        name: The name.
        operands: The operands.
        results: The results.
        condition: What tells it from others of its name.
    """

    name: str
    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    condition: Condition = ()
    regions: ClassVar[tuple[Region, ...]] = ()
    parent: ClassVar[None] = None

    @classmethod
    def of(cls, op: Op, condition: Condition) -> _OpFingerprint:
        return cls(op.name, tuple(op.operands), tuple(op.results), condition)


class Survey:
    """Ops without a rule in a program that no pass has changed; the report on them is written when it is asked for.

    Args:
        ops: How many ops could propagate.
        uncovered: Those without a rule by name, in program order.
        stub_ops: The ops that a stub has to fit.
        semantics: The definitions of ops.
    """

    def __init__(
        self, ops: int, uncovered: dict[str, list[Op]], stub_ops: list[Op], semantics: OpSemantics | None = None
    ) -> None:
        self._ops = ops
        self._semantics = semantics
        self._locations = {name: same[0].location for name, same in uncovered.items()}
        self._uncovered: dict[str, list[Any]] = {**uncovered}
        self._stub_ops: list[Any] = stub_ops
        if any(op.regions or is_unmarked_terminator(op) for op in stub_ops):
            # What a stub says of regions needs them as they are now.
            self.coverage  # noqa: B018
        self._uncovered = {name: list(map(self._fingerprint, same)) for name, same in uncovered.items()}
        self._stub_ops = list(map(self._fingerprint, stub_ops))

    def _fingerprint(self, op: Op) -> _OpFingerprint:
        return _OpFingerprint.of(op, self._condition(op))

    def _condition(self, op: Any) -> Condition:
        if isinstance(op, _OpFingerprint):
            return op.condition
        return () if self._semantics is None else condition_of(op, self._semantics.told_apart_by(op.name))

    def __repr__(self) -> str:
        return f"<Survey: {len(self._uncovered)} kinds of ops without a rule among {self._ops} ops>"

    @cached_property
    def coverage(self) -> Coverage:
        """The report, without the tensors that missing rules leave unsharded."""
        known_stubs: Made = {}
        missing = [
            _missing(name, ops, self._locations[name], stub_rules(ops, stubs=known_stubs, condition=self._condition))
            for name, ops in self._uncovered.items()
        ]
        stubs = stub_rules(self._stub_ops, stubs=known_stubs, condition=self._condition)
        return Coverage(self._ops, tuple(missing), stubs)


def survey_rules(program: Program, semantics: OpSemantics) -> Survey:
    """Look for ops without a rule in a program that no pass has changed."""
    total, uncovered = find_uncovered(program, semantics)
    return Survey(total, uncovered, _stub_ops(program, uncovered, semantics) if uncovered else [], semantics)


def _stub_ops(program: Program, uncovered: dict[str, list[Op]], semantics: OpSemantics) -> list[Op]:
    """Return the ops that a stub has to fit: all of the given names, and the terminators of their regions."""
    names = dict.fromkeys(ops[0].name for ops in uncovered.values())
    for ops in uncovered.values():
        for op in ops:
            ends = [block.terminator for region in op.regions for block in region.blocks]
            unmarked = [end.name for end in ends if end is not None and is_unmarked_terminator(end)]
            names.update(dict.fromkeys(name for name in unmarked if not _is_marked(name, semantics)))
    by_name: dict[str, list[Op]] = {name: [] for name in names}
    for op in ops_among(program, names):
        kind = kind_of(op, semantics)
        # Of ops that are told apart, those of other kinds may have rules.
        if kind == op.name or kind in uncovered:
            by_name[op.name].append(op)
    return [op for ops in by_name.values() for op in ops]


def _is_marked(name: str, semantics: OpSemantics) -> bool:
    traits = semantics.traits_of_name(name)
    return traits is not None and IsTerminator in traits


def report_coverage(survey: Survey, program: Program, semantics: OpSemantics) -> Coverage:
    """Add the tensors left unsharded by missing rules to a survey.

    Args:
        survey: What `survey_rules` found.
        program: The program after propagation.
        semantics: Answers questions about ops.
    """
    surveyed = survey.coverage
    names = {item.name for item in surveyed.missing}
    ops: dict[str, list[Op]] = {name: [] for name in names}
    for op in program.walk() if names else ():
        kind = kind_of(op, semantics)
        if kind in names:
            ops[kind].append(op)
    missing = [
        evolve(item, unsharded=_count_unsharded(program, ops[item.name], semantics)) for item in surveyed.missing
    ]
    return evolve(surveyed, missing=tuple(sorted(missing, key=_by_cost)))


def _by_cost(item: MissingRule) -> tuple[int, int, str]:
    return -item.unsharded, -item.count, item.name


def require_coverage(program: Program, semantics: OpSemantics) -> None:
    """Refuse a program with ops that have no rule.

    Raises:
        UnsupportedError: there are some; one diagnostic for each op kind.
    """
    _, uncovered = find_uncovered(program, semantics)
    if uncovered:
        raise UnsupportedError(*(_refusal(name, ops) for name, ops in uncovered.items()))


def signature(op: Op) -> str:
    """Return the types of an op in MLIR's notation."""
    results = ", ".join(str(value.type) for value in op.results)
    operands = ", ".join(str(value.type) for value in op.operands)
    return f"({operands}) -> {results}" if len(op.results) == 1 else f"({operands}) -> ({results})"


def _excluded_names(program: Program, semantics: OpSemantics) -> set[str]:
    """Return the names of ops that cannot propagate, whatever their types."""
    return {name for name in program.op_names if _is_of_the_core(name)} | {
        name for name in program.op_names if not (semantics.traits_of_name(name) or _NO_TRAITS).isdisjoint(_EXCLUDED)
    }


def _is_of_the_core(name: str) -> bool:
    """Return whether the core itself handles ops: constraints, groups and other ops that only carry shardings."""
    return name in (FUNCTION, "builtin.module", CALL) or name.startswith("sdy.")


def _could_propagate(op: Op, semantics: OpSemantics) -> bool:
    if not (_EXCLUDED.isdisjoint(semantics.get_traits(op)) and _needs_rule(op)):
        return False
    if _has_several_tensors(op):
        return True
    # The reference has no rule for some ops that take no more than the size of a tensor: nothing is lost there.
    extended = semantics.with_options(evolve(semantics.options, extended=True))
    return extended.get_sharding_rule(op) is None


def _is_opaque(op: Op, semantics: OpSemantics) -> bool:
    """Return whether shardings stop at an op because no data flow is known for its regions or its terminator.

    Its operands and results need not be tensors: its regions may use those from outside.
    """
    if op.regions:
        return _EXCLUDED.isdisjoint(semantics.get_traits(op)) and has_tensors_inside(op)
    return is_unmarked_terminator(op) and any(map(_has_dims, op.operands)) and _hands_out(op, semantics)


def _hands_out(op: Op, semantics: OpSemantics) -> bool:
    """Return whether an op at the end of a block should be marked as one: the op around it has, or needs, data flow."""
    parent = op.parent_op
    if parent is None or IsTerminator in semantics.get_traits(op):
        return False
    return semantics.get_sharding_rule(parent) is None


def _needs_rule(op: Op) -> bool:
    """Return whether shardings pass through an op of these types, or a tensor is reduced to a number."""
    return _has_several_tensors(op) or (any(map(_has_dims, op.operands)) and any(map(_is_number, op.results)))


def _has_several_tensors(op: Op) -> bool:
    """Return whether an op has several tensors with dimensions; with one there is nothing to propagate to."""
    has_one = False
    for value in (*op.operands, *op.results):
        type_ = value.type
        if isinstance(type_, TensorType) and type_.shape != ():
            if has_one:
                return True
            has_one = True
    return False


def _has_dims(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.type.shape != ()


def _is_number(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.type.rank == 0


def _missing(name: str, ops: list[Op], location: str, stub: str) -> MissingRule:
    first = ops[0]
    return MissingRule(
        name=name,
        count=len(ops),
        unsharded=0,
        example=signature(first),
        location=location,
        stub=stub,
    )


def _count_unsharded(program: Program, ops: Iterable[Op], semantics: OpSemantics) -> int:
    """Return the number of values at these ops without an axis, beside values that have one."""
    unsharded: set[int] = set()
    for op in ops:
        values = [value for value in (*op.operands, *op.results) if _has_dims(value)]
        without = [value.id for value in values if not is_sharded(sharding_of(program, value, semantics))]
        if len(without) < len(values):
            unsharded.update(without)
    return len(unsharded)


def _refusal(name: str, ops: list[Op]) -> Diagnostic:
    _, _, kind = name.partition(" ")
    subject = f"the op {kind}" if kind else "the op"
    times = "once" if len(ops) == 1 else f"{len(ops)} times"
    lack = "no sharding rule"
    if ops[0].regions:
        lack = "regions, but no data flow,"
    elif is_unmarked_terminator(ops[0]):
        lack = "the place of a terminator, but not the trait IsTerminator,"
    return Diagnostic(
        "missing-rule",
        f"{subject} has {lack} and occurs {times}, first as {signature(ops[0])}",
        location=ops[0].location,
        op=ops[0].name,
        hint="write a rule in a plugin, from the stub of --stubs or Result.coverage.stubs, or propagate without strict",
    )
